import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { field, initializeData, inProcess, openPipe, tdsJson, textField } from './support.ts';

setDefaultTimeout(120_000);

const SIGPIPE_EXIT = 141;

let root: ReturnType<typeof temporaryDirectory>;
beforeEach(() => {
  root = temporaryDirectory();
});
afterEach(() => root.remove());

/** A pipe whose reader has gone, as `head` goes when it has enough. */
function closedPipe(): number {
  const { path, reader, writer } = openPipe(root.path);
  closeSync(reader);
  rmSync(path);
  return writer;
}

/** Runs `tds …` with its output there. */
async function runInto(stdout: number, args: readonly string[]) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], { stdin: 'ignore', stdout, stderr: 'pipe' });
  closeSync(stdout);
  const said = await new Response(child.stderr).text();
  return { code: await child.exited, said };
}

test.each([
  ['a table', ['config']],
  ['JSON', ['config', '--json']],
  ['help', ['--help']],
  ['a text', ['config', '--example']],
  ['a stream', ['usage', 'export']],
])('%s that nobody reads to its end is no failure', async (_, args) => {
  const data = join(root.path, 'data');
  await initializeData(data);
  const flags = args[0] === 'usage' ? ['--data', data] : [];
  expect(await runInto(closedPipe(), [...args, ...flags])).toEqual({ code: SIGPIPE_EXIT, said: '' });
});

const isFullMissing = !existsSync('/dev/full');
const full = () => openSync('/dev/full', 'w');

/** The outputs that cannot be written, with their codes. */
const BROKEN = [
  ...(isFullMissing ? [] : [{ code: 'ENOSPC', open: full }]),
  { code: 'EPIPE', open: closedPipe },
];

test.each(BROKEN)(
  'money that was entered is said with the id of its repeat: $code',
  async ({ code, open }) => {
    const data = join(root.path, 'data');
    const organization = textField(await initializeData(data), 'organization_id');
    const credit = async () =>
      field(await tdsJson(['org', 'tier', organization, '--data', data], inProcess), 'paid_micros');
    for (const [words, paid_micros] of [
      [['org', 'credit', organization, '5'], 30_000_000],
      [['credit', 'refund', organization, '5'], 25_000_000],
    ] as const) {
      const failed = await runInto(open(), [...words, '--data', data]);
      const [, entry = ''] = /--entry (entry_\S+),/.exec(failed.said) ?? [];
      expect(failed).toEqual({
        code: 1,
        said: `tds: Standard output cannot be written (${code}). It was entered all the same: repeat it with --entry ${entry}, so that it is entered once.\n`,
      });
      expect(await inProcess([...words, '--data', data, '--entry', entry])).toMatchObject({ code: 0 });
      expect(await credit()).toBe(paid_micros);
    }
  },
);

test.each(BROKEN)('a key that cannot be printed is not made: $code', async ({ code, open }) => {
  const data = ['--data', join(root.path, 'data')];
  const refused = {
    code: 1,
    said: `tds: Standard output cannot be written (${code}). Nothing was changed.\n`,
  };
  expect(await runInto(open(), ['init', ...data])).toEqual(refused);
  const first = await tdsJson(['init', ...data], inProcess);
  expect(first).toMatchObject({ initialized: true });
  const keys = () => tdsJson(['key', 'list', ...data], inProcess);
  const before = await keys();
  const [project, key] = [textField(first, 'default_project_id'), textField(first, 'key_id')];
  for (const words of [
    ['key', 'create', project, 'Lost'],
    ['key', 'rotate', key, '--overlap', '1m'],
    ['key', 'rotate', key, '--overlap', 'none', '--json'],
  ])
    expect(await runInto(open(), [...words, ...data])).toEqual(refused);
  expect(await keys()).toEqual(before);
});

test.skipIf(isFullMissing)('output that cannot be written is said in one sentence', async () => {
  expect(await runInto(full(), ['config'])).toEqual({
    code: 1,
    said: 'tds: Standard output cannot be written (ENOSPC).\n',
  });
});
