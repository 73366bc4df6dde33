import { describe, expect, test } from 'bun:test';
import { closeSync, constants, copyFileSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { ChildServer, startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { POLL_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { expectClean, expectKept } from './kept.ts';
import { underLoad } from './under-load.ts';

const TEST_TIMEOUT_MS = 120_000;

test.each([
  ['SIGTERM', '0'],
  ['SIGINT', '30'],
] as const)(
  'a stop by %s under load, with %s s to finish, ends every hold itself, and charges exactly what was answered',
  async (signal, seconds) => {
    await using setup = await underLoad('--drain-seconds', seconds);
    setup.server.signal(signal);
    expect(await setup.server.ended()).toBe(0);
    await setup.load.ended();
    // No other process has run since: the stop left nothing to the next start.
    expectClean(setup.db);
    for (const seen of setup.load.seen) expectKept(setup.db, seen);
    const statuses = new Set(setup.load.seen.map(({ status }) => status));
    expect([...statuses].filter((status) => ![200, 402, 422, 429, 502, 503].includes(status))).toEqual([]);
    if (seconds === '30') expect(statuses).not.toContain(502);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a second signal ends the process at once, and the next start ends the holds: no money is lost',
  async () => {
    let left_open = 0;
    // Once the process has ended, holds are open or not by chance.
    for (let round = 0; round < 10 && left_open === 0; round += 1) {
      await using setup = await underLoad();
      // Both wait for it while it stands still: else its stop may be done before the second one is sent.
      setup.server.signal('SIGSTOP');
      setup.server.signal('SIGTERM');
      setup.server.signal('SIGINT');
      setup.server.signal('SIGCONT');
      expect([128 + 2, 128 + 15]).toContain(await setup.server.ended());
      await setup.load.ended();
      left_open += runAudit(setup.db).open_holds;
      await using next = new ChildServer(setup.data);
      await next.ready();
      expectClean(setup.db);
      for (const seen of setup.load.seen) expectKept(setup.db, seen);
    }
    expect(left_open).toBeGreaterThan(0);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a served process refuses new requests while it finishes the one in flight',
  async () => {
    using root = temporaryDirectory();
    const server = await startChildServer(join(root.path, 'data'), root.path);
    const { hostname, port } = new URL(server.address);
    const socket = connect({ host: hostname, port: Number(port) });
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const body = JSON.stringify(SMALL_REQUEST);
    socket.write(
      `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nX-API-Key: ${server.key}\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    while (!received.includes('100 Continue')) await new Promise((resolve) => socket.once('data', resolve));
    const stopped = server.stop();
    const list = () => fetch(`${server.address}/v1/models`, { headers: { 'x-api-key': server.key ?? '' } });
    let response = await list();
    while (response.status === 200) response = await list();
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    socket.write(body);
    await closed;
    expect(received).toContain('HTTP/1.1 200');
    expect(await stopped).toBe(0);
  },
  TEST_TIMEOUT_MS,
);

describe('with --drain-delay', () => {
  /** A server that is being stopped, once its stop has begun. */
  async function leaving(seconds: string) {
    const root = temporaryDirectory();
    const server = await startChildServer(join(root.path, 'data'), root.path, ['--drain-delay', seconds]);
    server.signal('SIGTERM');
    await eventually(() => server.output().includes('"msg":"stopping: '));
    return { root, server };
  }

  test(
    'a stop first fails /readyz, and requests are answered meanwhile, each as the last of its connection',
    async () => {
      const { root, server } = await leaving('3600');
      const ready = await fetch(`${server.address}/readyz`);
      expect([ready.status, await ready.json()]).toEqual([
        503,
        { status: 'not_ready', failing: ['draining'] },
      ]);
      const answered = await fetch(`${server.address}/v1/decisions`, {
        method: 'POST',
        headers: { 'x-api-key': server.key ?? '' },
        body: JSON.stringify(SMALL_REQUEST),
      });
      expect([answered.status, answered.headers.get('connection')]).toEqual([200, 'close']);
      // The second signal.
      expect(await server.stop()).toBe(128 + 15);
      root.remove();
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'the stop goes on by itself after that time',
    async () => {
      const { root, server } = await leaving('1');
      await eventually(() => server.output().includes('finishing the requests in flight'));
      expect(await server.ended()).toBe(0);
      expect(server.output()).not.toContain('cut');
      root.remove();
    },
    TEST_TIMEOUT_MS,
  );
});

describe('during the start', () => {
  /** A server on an empty directory. Its load waits for the checksums of its weights until `finishLoad`. */
  async function loading() {
    const root = temporaryDirectory();
    const data = join(root.path, 'data');
    const log = join(root.path, 'tds.log');
    const model = join(root.path, 'tiny.gguf');
    const checksums = join(root.path, 'SHA256SUMS');
    copyFileSync(TINY_WEIGHTS, model);
    expect(Bun.spawnSync(['mkfifo', checksums]).exitCode).toBe(0);
    const logged = ['--log-file', log, '--log-level', 'info'];
    const server = new ChildServer(data, ['--init', '--model', model, ...logged]);
    const writer = await openedForReader(checksums);
    return {
      data,
      server,
      async stopHasBegun() {
        await eventually(() => readFileSync(log, 'utf8').includes('"msg":"stopping: '));
      },
      finishLoad: () => closeSync(writer),
      async [Symbol.asyncDispose]() {
        await server.kill();
        root.remove();
      },
    };
  }

  /** Opens a named pipe for writing as soon as somebody reads it. */
  async function openedForReader(path: string): Promise<number> {
    for (;;) {
      try {
        return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
      } catch (error) {
        if (systemErrorCode(error) !== 'ENXIO') throw error;
        await Bun.sleep(POLL_MS);
      }
    }
  }

  test(
    'a stop gives up the load: nothing is announced, no key is made, and the exit code is 0',
    async () => {
      await using setup = await loading();
      setup.server.signal('SIGTERM');
      await setup.stopHasBegun();
      setup.finishLoad();
      expect(await setup.server.ended()).toBe(0);
      expect(setup.server.output()).toBe('');
      expect(readdirSync(setup.data)).not.toContain('first-api-key.txt');
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'a second signal ends the process at once',
    async () => {
      await using setup = await loading();
      setup.server.signal('SIGTERM');
      await setup.stopHasBegun();
      setup.server.signal('SIGINT');
      expect(await setup.server.ended()).toBe(128 + 2);
    },
    TEST_TIMEOUT_MS,
  );
});
