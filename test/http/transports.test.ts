import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { RunningServer, ServerOptions } from '../../src/http/server.ts';
import { eventually } from '../support/eventually.ts';
import { GET, parseRaw } from '../support/raw-http.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { TIMEOUTS } from './timeouts.ts';
import { endAll, type Handle, held, ok, start, TRANSPORTS, unauthorized } from './transports.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

afterEach(async () => expect(await endAll()).toEqual([]));

describe.each(TRANSPORTS)('a connection over $name', ({ connect, options }) => {
  let transport: ServerOptions;
  beforeAll(async () => {
    transport = await options();
  });
  const startOver = (handle: Handle, more: ServerOptions = {}) => start(handle, { ...transport, ...more });

  /** Resolves with true if a new connection has its request answered, and is not closed at once. */
  async function isServed(server: RunningServer): Promise<boolean> {
    const client = connect(server).send(GET);
    await Promise.race([client.responses(1), client.closed]);
    client.socket.destroy();
    return client.received.startsWith('HTTP/1.1 200');
  }

  test('is closed when it stays idle after a response, refused or not', async () => {
    for (const handle of [ok, unauthorized]) {
      const client = connect(await startOver(handle, { timeouts: TIMEOUTS })).send(GET);
      await client.closed;
      expect(client.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    }
  });

  test('is answered 408 when its next head stops half-way', async () => {
    // So long that the half head comes before it is over, however slow the machine is.
    const timeouts = { ...TIMEOUTS, idle_ms: MODEL_TEST_TIMEOUT_MS };
    const client = connect(await startOver(ok, { timeouts })).send(GET);
    await client.responses(1);
    client.send('GET / HT');
    await client.closed;
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 408']);
  });

  test('is not limited while its request is answered', async () => {
    const slow: Handle = async () => {
      await Bun.sleep(2 * TIMEOUTS.request_ms);
      return new Response('slow');
    };
    const client = connect(await startOver(slow, { timeouts: TIMEOUTS })).send(GET);
    await client.closed;
    expect(parseRaw(client.received)).toMatchObject({ status: 200, body: 'slow' });
  });

  test.each([
    ['says nothing', ''],
    ['sends half a head', 'GET / HTTP/1.1\r\nHo'],
  ])('that %s is answered 408 and closed', async (_, text) => {
    const client = connect(await startOver(ok, { timeouts: TIMEOUTS })).send(text);
    await client.closed;
    const { status, headers, body } = parseRaw(client.received);
    expect(status).toBe(408);
    expect(headers).toMatchObject({ connection: 'close', 'x-request-id': 'req_test' });
    expect(JSON.parse(body).error).toMatchObject({ type: 'invalid_request_error', code: 'request_timeout' });
  });

  test('whose refused body goes on and on is closed, and gets one response', async () => {
    const client = connect(await startOver(unauthorized, { timeouts: TIMEOUTS }));
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n');
    const drip = setInterval(() => client.send('x'), 20);
    await client.closed;
    clearInterval(drip);
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
  });

  test('whose response is not read is closed', async () => {
    const large = new Uint8Array(64 * 1_048_576);
    const limits = { connection_limit_per_address: 1, timeouts: TIMEOUTS };
    const server = await startOver(() => new Response(large), limits);
    const client = connect(server);
    client.socket.pause();
    client.send(GET);
    const aborted = new Promise((resolve) => client.socket.once('error', resolve));
    // Reading begins only after the server has given up, and its place is free: so what comes is cut off.
    await eventually(() => isServed(server));
    client.socket.resume();
    await Promise.race([client.closed, aborted]);
    expect(client.received.length).toBeLessThan(large.byteLength);
  });

  test('that was idle for longest makes room above the limit of all', async () => {
    const server = await startOver(ok, { connection_limit: 2, connection_limit_per_address: 10 });
    const first = connect(server).send(GET);
    await first.responses(1);
    const second = connect(server).send(GET);
    await second.responses(1);
    first.send(GET);
    await first.responses(2);
    const third = connect(server).send(GET);
    await Promise.all([third.responses(1), second.closed]);
    first.send(GET);
    await first.responses(3);
  });

  test('that is idle is ended by a stop at once, and another with an answer that says so', async () => {
    const { begun, answer, handle } = held();
    const server = await startOver((request) => (request.url.endsWith('/held') ? handle : ok)(request));
    const idle = connect(server).send(GET);
    await idle.responses(1);
    const busy = connect(server).send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
    await begun;
    const stopped = server.stop();
    await idle.closed;
    answer();
    await busy.closed;
    const { status, headers, body } = parseRaw(busy.received);
    expect([status, headers.connection, body]).toEqual([200, 'close', 'at last']);
    await stopped;
  });

  test('frees its place when its client is gone', async () => {
    const { begun, answer, handle } = held();
    const server = await startOver(handle);
    const client = connect(server).send(GET);
    const request = await begun;
    client.socket.destroy();
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
    answer();
    expect(await isServed(server)).toBe(true);
  });
});
