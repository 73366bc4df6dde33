import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockDataDirectory } from '../../db/sqlite/lock.ts';
import { findAddress } from '../../src/cli/server-addresses.ts';
import { ChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { openPipe } from './support.ts';

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

/** Starts `tds serve` with its output there, and has it log that many requests. */
async function serveInto(stdout: number, requests: number) {
  const server = new ChildServer(data, ['--init'], { stdout });
  closeSync(stdout);
  const key_file = join(data, 'first-api-key.txt');
  const is_filled = eventually(() => existsSync(key_file) && readFileSync(key_file, 'utf8') !== '');
  await Promise.race([is_filled, server.ready()]);
  const address = findAddress(data, 'service');
  const headers = { 'x-api-key': readFileSync(key_file, 'utf8').trim() };
  for (let sent = 0; sent < requests; sent += REQUESTS_AT_ONCE) {
    await Promise.all(
      Array.from({ length: REQUESTS_AT_ONCE }, async () => {
        const response = await fetch(`${address}/v1/models`, { headers });
        expect(response.status).toBe(200);
        await response.text();
      }),
    );
  }
  return server;
}

/** A server that was sent SIGTERM comes to its end, and another one can start. */
async function expectOrderlyEnd(server: ChildServer) {
  expect([await server.ended(), server.output()]).toEqual([0, '']);
  lockDataDirectory(data)();
}

test.skipIf(!existsSync('/dev/full'))('a server whose output is a full disk serves and ends', async () => {
  const server = await serveInto(openSync('/dev/full', 'w'), REQUESTS_AT_ONCE);
  server.signal('SIGTERM');
  await expectOrderlyEnd(server);
});

test('a server whose output nobody has open any more serves and ends', async () => {
  const { reader, writer } = openPipe(root.path);
  closeSync(reader);
  const server = await serveInto(writer, REQUESTS_AT_ONCE);
  server.signal('SIGTERM');
  await expectOrderlyEnd(server);
});

test('a server whose output nobody reads serves and ends', async () => {
  const { reader, writer } = openPipe(root.path);
  const server = await serveInto(writer, REQUESTS);
  server.signal('SIGTERM');
  await expectOrderlyEnd(server);
  closeSync(reader);
});

test('the data directory is given back before the log waits for a reader, who still gets what is left', async () => {
  const { path, reader, writer } = openPipe(root.path);
  const server = await serveInto(writer, REQUESTS);
  server.signal('SIGTERM');
  await eventually(() => isFree(data));
  const text = await new Response(Bun.spawn(['cat', path], { stdin: 'ignore' }).stdout).text();
  closeSync(reader);
  await expectOrderlyEnd(server);
  // More than the pipe and one write hold: the rest waited in the server.
  expect(text.length).toBeGreaterThan(4 * 65_536);
  expect(text).toContain('were lost');
});

test('a reader that comes back gets every line that was kept, and the number of those that were not', async () => {
  const { path, reader, writer } = openPipe(root.path);
  const server = await serveInto(writer, REQUESTS);
  const cat = Bun.spawn(['cat', path], { stdin: 'ignore' });
  let text = '';
  let is_told = false;
  const decoder = new TextDecoder();
  for await (const part of cat.stdout) {
    text += decoder.decode(part, { stream: true });
    if (is_told || !text.includes('were lost')) continue;
    is_told = true;
    server.signal('SIGTERM');
  }
  closeSync(reader);
  await expectOrderlyEnd(server);
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
