import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { execFileSync } from 'node:child_process';
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requireWritable, writeWholeFile } from '../../src/cli/write-whole-file.ts';
import { OWNER_ONLY_FILE } from '../../src/files/file-permissions.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

let folder: ReturnType<typeof temporaryDirectory>;
beforeEach(() => {
  folder = temporaryDirectory();
});
afterEach(() => folder.remove());

const path = (name: string) => join(folder.path, name);

async function* lines(last: () => Promise<string>): AsyncGenerator<string> {
  yield 'one\n';
  yield await last();
}

const CONTENTS: readonly (readonly [string, () => string | AsyncIterable<string>])[] = [
  ['a text', () => 'one\ntwo\n'],
  ['lines', () => lines(() => Promise.resolve('two\n'))],
];

describe.each(CONTENTS)('%s', (_, content) => {
  test('is a new file, with its mode', async () => {
    await writeWholeFile(path('new'), content(), OWNER_ONLY_FILE);
    expect(readFileSync(path('new'), 'utf8')).toBe('one\ntwo\n');
    expect(statSync(path('new')).mode & 0o777).toBe(OWNER_ONLY_FILE);
  });

  test('replaces the file that a symbolic link names, and the link stays', async () => {
    writeFileSync(path('target'), 'old');
    symlinkSync('target', path('link'));
    await writeWholeFile(path('link'), content());
    expect(lstatSync(path('link')).isSymbolicLink()).toBe(true);
    expect(readFileSync(path('target'), 'utf8')).toBe('one\ntwo\n');
    expect(readdirSync(folder.path).sort()).toEqual(['link', 'target']);
  });

  test('goes into a pipe, which stays', async () => {
    execFileSync('mkfifo', [path('pipe')]);
    const read = readFile(path('pipe'), 'utf8');
    await writeWholeFile(path('pipe'), content());
    expect(lstatSync(path('pipe')).isFIFO()).toBe(true);
    expect(await read).toBe('one\ntwo\n');
  });
});

test('lines that fail leave no file', async () => {
  const failing = lines(() => Promise.reject(new Error('no more')));
  await expect(writeWholeFile(path('new'), failing)).rejects.toThrow('no more');
  expect(readdirSync(folder.path)).toEqual([]);
});

describe('a file that is written later', () => {
  test.each([
    ['into a folder that is missing', 'missing/file', 'ENOENT'],
    ['below a file', 'file/other', 'ENOTDIR'],
    ['in place of a folder', 'folder', 'EISDIR'],
  ])('is refused %s', async (_, name, code) => {
    writeFileSync(path('file'), '');
    mkdirSync(path('folder'));
    await expect(requireWritable(path(name))).rejects.toThrow(`${path(name)} cannot be written (${code})`);
  });

  test('leaves no trace before, and keeps what is there', async () => {
    writeFileSync(path('file'), 'kept');
    execFileSync('mkfifo', [path('pipe')]);
    for (const name of ['new', 'file', 'pipe']) await requireWritable(path(name));
    expect(readdirSync(folder.path).sort()).toEqual(['file', 'pipe']);
    expect(readFileSync(path('file'), 'utf8')).toBe('kept');
  });
});
