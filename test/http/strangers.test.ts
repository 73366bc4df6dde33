import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { UnknownBodies } from '../../src/limits/unknown-bodies.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { startTestConsole, type TestConsole } from '../console/people.ts';
import { expectDecision } from '../contract/expectations.ts';
import { SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { eventually } from '../support/eventually.ts';
import { parseRaw } from '../support/raw-http.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const ADDRESS_BYTES = 131_072;
/** The limits of silent clients: 8 bodies of an address, and 32 of all. */
const LIMITS = { total_bytes: 4 * ADDRESS_BYTES, address_bytes: ADDRESS_BYTES, body_bytes_min: 16_384 };

let made: TestConsole;
let unknown_bodies: UnknownBodies;
const sockets: Socket[] = [];
beforeAll(async () => {
  unknown_bodies = new UnknownBodies(LIMITS);
  made = await startTestConsole({
    cold: false,
    payment_provider: paddleProvider(SETTINGS),
    body_limits: { unknown_bodies, unknown_deadline_ms: 30_000 },
  });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await made.close();
});

/** Begins a body of that size from that address, sends one byte of it, and keeps what comes back. */
function begin(from: string, path: string, headers: readonly string[] = [], length = 60_000) {
  const { port } = new URL(made.service.server.address);
  const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: from });
  sockets.push(socket);
  const client = { socket, received: '', closed: new Promise((resolve) => socket.once('close', resolve)) };
  socket.on('error', () => {});
  socket.on('data', (data) => {
    client.received += data.toString('latin1');
  });
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: a',
    'origin: http://a',
    'content-type: application/json',
    `content-length: ${length}`,
    ...headers,
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n{`);
  return client;
}

const webhook = (from: string) =>
  begin(from, '/webhooks/paddle', [
    `paddle-signature: ts=${Math.floor(Date.now() / 1_000)};h1=${'0'.repeat(64)}`,
  ]);
const signIn = (from: string) => begin(from, '/console/api/sign-in');

/** Has every byte of unknown bodies taken by clients that stay silent. */
async function floodFrom(addresses: number): Promise<void> {
  const before = sockets.length;
  for (let index = 0; index < addresses; index += 1) {
    const from = `127.0.1.${1 + index}`;
    for (let body = 0; body < 10; body += 1) (body % 2 === 0 ? webhook : signIn)(from);
  }
  expect(sockets.length - before).toBe(10 * addresses);
  await eventually(() => unknown_bodies.taken_bytes >= LIMITS.total_bytes);
}

async function sendEvent(): Promise<Response> {
  const { body, signature } = sign(transaction('transaction.updated'));
  return await made.service.fetch('/webhooks/paddle', {
    method: 'POST',
    headers: { 'paddle-signature': signature ?? '' },
    body,
  });
}

test('silent bodies from many addresses hold off no decision, no genuine webhook and no sign-in', async () => {
  const { key } = await addAccount(made.service);
  await floodFrom(8);
  await expectDecision(await ask(made.service, key));
  expect((await sendEvent()).status).toBe(200);
  const { address } = made.service.server;
  const signed_in = await made.service.fetch('/console/api/sign-in', {
    method: 'POST',
    headers: { origin: address, 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'nobody@example.com', password: 'correct horse battery' }),
  });
  expect(signed_in.status).toBe(401);
  expect(unknown_bodies.taken_bytes).toBeLessThanOrEqual(LIMITS.total_bytes);
});

test('above the share of an address its longest unfinished body ends with 503, and its connection too', async () => {
  const first = signIn('127.0.2.1');
  await eventually(() => unknown_bodies.taken_bytes !== 0);
  for (let index = 0; index < 8; index += 1) webhook('127.0.2.1');
  await first.closed;
  const { status, headers, body } = parseRaw(first.received);
  expect(status).toBe(503);
  expect(headers).toMatchObject({ connection: 'close', 'retry-after': '1' });
  expect(JSON.parse(body)).toMatchObject({ error: { code: 'overloaded' } });
});
