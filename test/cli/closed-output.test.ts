import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { initializeData, openPipe } from './support.ts';

setDefaultTimeout(120_000);

const SIGPIPE_EXIT = 141;

let root: ReturnType<typeof temporaryDirectory>;
beforeEach(() => {
  root = temporaryDirectory();
});
afterEach(() => root.remove());

/** A pipe whose reader has gone, as `head` goes when it has enough. */
function closedPipe(): number {
  const { reader, writer } = openPipe(root.path);
  closeSync(reader);
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

test.skipIf(!existsSync('/dev/full'))('output that cannot be written is said in one sentence', async () => {
  expect(await runInto(openSync('/dev/full', 'w'), ['config'])).toEqual({
    code: 1,
    said: 'tds: Standard output cannot be written (ENOSPC).\n',
  });
});
