import { describe, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ROOT } from './source-files.ts';

/** The documents for people who work on the service, without model cards and licences. */
const DOCUMENTS = [
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'COMMANDS.md',
  'CONTRIBUTING.md',
  'METRICS.md',
  'OPERATIONS.md',
  'README.md',
  'SECURITY.md',
  'bench/README.md',
  'bench/capacity.md',
  'db/README.md',
  'db/postgres/README.md',
  'native/README.md',
  'native/addon/README.md',
  'native/models/README.md',
  'native/training/README.md',
  'src/binary/README.md',
  'src/console/README.md',
  'src/eval/README.md',
  'src/tuning/README.md',
  'src/upstreams/README.md',
  'test/contract/README.md',
  'test/README.md',
];

/** A path below one of the repository's folders. A `*` stands for any name; a `…` or `<` ends what is known of it. */
const PATH = /(?<![\w./@:-])(?:src|db|native|test|bench)\/[\w./*-]*/g;

/** The paths that a text names, without the full stop of a sentence that ends with one. */
function pathsIn(text: string): readonly string[] {
  return [...new Set([...text.matchAll(PATH)].map(([path]) => path.replace(/\.+$/, '')))];
}

/** Returns true if the path exists, from the root or from the document's folder. */
function isThere(path: string, document: string): boolean {
  return [ROOT, join(ROOT, dirname(document))].some((from) =>
    path.includes('*')
      ? !new Bun.Glob(path).scanSync({ cwd: from, onlyFiles: false }).next().done
      : existsSync(join(from, path)),
  );
}

describe('the reader of paths', () => {
  test('finds paths in prose, code and tables, and none in an address', () => {
    const text = `See \`src/errors/errors.ts\`, test/ledger. | \`db/sqlite/\` | bun bench/*.ts; https://x.org/src/no.ts build/src/no.ts`;
    expect(pathsIn(text)).toEqual(['src/errors/errors.ts', 'test/ledger', 'db/sqlite/', 'bench/*.ts']);
  });

  test('misses what is not there', () => {
    expect(isThere('src/errors/errors.ts', 'CONTRIBUTING.md')).toBe(true);
    expect(isThere('src/addon.cpp', 'native/addon/README.md')).toBe(true);
    expect(isThere('src/addon.cpp', 'CONTRIBUTING.md')).toBe(false);
    expect(isThere('bench/no-*.ts', 'CONTRIBUTING.md')).toBe(false);
  });
});

test.each(DOCUMENTS)('%s names only paths that are there', async (document) => {
  const paths = pathsIn(await Bun.file(join(ROOT, document)).text());
  expect(paths.filter((path) => !isThere(path, document))).toEqual([]);
});

describe('no folder is left out', () => {
  const foldersOf = async (parent: string): Promise<readonly string[]> =>
    (await readdir(join(ROOT, parent), { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${parent}/${name}/`);

  test.each([
    ['ARCHITECTURE.md', 'src'],
    ['db/README.md', 'db'],
    ['native/README.md', 'native'],
  ] as const)('%s has every folder of %s/', async (document, parent) => {
    const named = await Bun.file(join(ROOT, document)).text();
    expect((await foldersOf(parent)).filter((folder) => !named.includes(folder))).toEqual([]);
  });

  test('test/README.md has every folder of tests', async () => {
    const named = await Bun.file(join(ROOT, 'test/README.md')).text();
    const missing = (await foldersOf('test')).filter(
      (folder) => !named.includes(folder.slice('test/'.length)),
    );
    expect(missing).toEqual([]);
  });
});
