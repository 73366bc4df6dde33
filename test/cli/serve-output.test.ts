import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, constants, existsSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { lockDataDirectory } from '../../db/sqlite/lock.ts';
import { temporaryDirectory } from '../accounts/support.ts';
import { eventually } from '../support/eventually.ts';
import { MAIN } from '../support/program.ts';
import { MODEL_TEST_TIMEOUT_MS, POLL_MS } from '../support/service.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

/** More lines than a pipe and the log's own buffer hold together. */
const REQUESTS = 8_000;
const REQUESTS_AT_ONCE = 50;

let root: ReturnType<typeof temporaryDirectory>;
let data: string;
beforeEach(() => {
  root = temporaryDirectory();
  data = join(root.path, 'data');
});
afterEach(() => root.remove());

/** Opens both ends of a new pipe, because opening one end waits for the other. */
function openPipe(): { readonly path: string; readonly reader: number; readonly writer: number } {
  const path = join(root.path, 'pipe');
  if (!Bun.spawnSync(['mkfifo', path]).success) throw new Error('there is no mkfifo');
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { path, reader, writer: openSync(path, constants.O_WRONLY) };
}

/** Returns a port that was just free, because the address of a server without readable output is unknown otherwise. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Starts `tds serve` with its output there, and has it log that many requests. */
async function serveInto(stdout: number, requests: number) {
  const port = await freePort();
  const flags = [
    ...['--init', '--data', data, '--port', String(port)],
    ...['--gpu', 'none', '--threads', '1', '--model', TINY_WEIGHTS],
  ];
  const child = Bun.spawn([process.execPath, MAIN, 'serve', ...flags], {
    stdin: 'ignore',
    stdout,
    stderr: 'pipe',
  });
  closeSync(stdout);
  const key_file = join(data, 'first-api-key.txt');
  while (!existsSync(key_file) || readFileSync(key_file, 'utf8') === '') {
    if (child.exitCode !== null) throw new Error(await new Response(child.stderr).text());
    await Bun.sleep(POLL_MS);
  }
  const headers = { 'x-api-key': readFileSync(key_file, 'utf8').trim() };
  for (let sent = 0; sent < requests; sent += REQUESTS_AT_ONCE) {
    await Promise.all(
      Array.from({ length: REQUESTS_AT_ONCE }, async () => {
        const response = await fetch(`http://127.0.0.1:${port}/v1/models`, { headers });
        expect(response.status).toBe(200);
        await response.text();
      }),
    );
  }
  return child;
}

/** A server that was sent SIGTERM comes to its end, and another one can start. */
async function expectOrderlyEnd(child: Awaited<ReturnType<typeof serveInto>>) {
  const said = await new Response(child.stderr).text();
  expect({ code: await child.exited, signal: child.signalCode, said }).toEqual({
    code: 0,
    signal: null,
    said: '',
  });
  lockDataDirectory(data)();
}

test.skipIf(!existsSync('/dev/full'))('a server whose output is a full disk serves and ends', async () => {
  const child = await serveInto(openSync('/dev/full', 'w'), REQUESTS_AT_ONCE);
  child.kill('SIGTERM');
  await expectOrderlyEnd(child);
});

test('a server whose output nobody has open any more serves and ends', async () => {
  const { reader, writer } = openPipe();
  closeSync(reader);
  const child = await serveInto(writer, REQUESTS_AT_ONCE);
  child.kill('SIGTERM');
  await expectOrderlyEnd(child);
});

test('a server whose output nobody reads serves and ends', async () => {
  const { reader, writer } = openPipe();
  const child = await serveInto(writer, REQUESTS);
  child.kill('SIGTERM');
  await expectOrderlyEnd(child);
  closeSync(reader);
});

test('the data directory is given back before the log waits for a reader, who still gets what is left', async () => {
  const { path, reader, writer } = openPipe();
  const child = await serveInto(writer, REQUESTS);
  child.kill('SIGTERM');
  await eventually(() => isFree(data));
  const text = await new Response(Bun.spawn(['cat', path], { stdin: 'ignore' }).stdout).text();
  closeSync(reader);
  await expectOrderlyEnd(child);
  // More than the pipe and one write hold: the rest waited in the server.
  expect(text.length).toBeGreaterThan(4 * 65_536);
  expect(text).toContain('were lost');
});

test('a reader that comes back gets every line that was kept, and the number of those that were not', async () => {
  const { path, reader, writer } = openPipe();
  const child = await serveInto(writer, REQUESTS);
  const cat = Bun.spawn(['cat', path], { stdin: 'ignore' });
  let text = '';
  let is_told = false;
  const decoder = new TextDecoder();
  for await (const part of cat.stdout) {
    text += decoder.decode(part, { stream: true });
    if (is_told || !text.includes('were lost')) continue;
    is_told = true;
    child.kill('SIGTERM');
  }
  closeSync(reader);
  await expectOrderlyEnd(child);
  const lines = text.split('\n').filter((line) => line.startsWith('{"level"'));
  const entries = lines.map((line): { msg: string; lines?: number } => JSON.parse(line));
  const lost = entries.filter(({ msg }) => msg.includes('were lost')).map((entry) => entry.lines ?? 0);
  const kept = entries.filter(({ msg }) => msg === 'request').length;
  // The lines of the last requests may come after the reader, and be lost once more.
  expect(lost.length).toBeGreaterThan(0);
  expect(kept + lost.reduce((sum, lines) => sum + lines, 0)).toBe(REQUESTS);
  // The kept output is bounded by the buffer, the pipe and one write, and not by the logged output.
  expect(text.length).toBeLessThan(1_048_576 + 2 * 65_536 + 65_536);
  // A request may be logged after its response, and so after the stop that followed.
  expect(entries.findLast(({ msg }) => msg !== 'request')?.msg).toBe('stopped');
});

function isFree(directory: string): boolean {
  try {
    lockDataDirectory(directory)();
    return true;
  } catch {
    return false;
  }
}
