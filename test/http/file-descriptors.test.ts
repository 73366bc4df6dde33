import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { type ChildServer, startChildServer } from '../support/child-server.ts';
import { parseRaw } from '../support/raw-http.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

/** Below every timeout of the server: a place that only a timeout frees comes too late. */
const LOCKED_OUT_MS = 20_000;

const DESCRIPTORS = 256;
/** Linux gives the whole of 127.0.0.0/8 to the loopback device; elsewhere there is one address. */
const is_linux = process.platform === 'linux';

const directory = temporaryDirectory();
const data = join(directory.path, 'data');
let server: ChildServer;
const attackers: Socket[] = [];

beforeAll(async () => {
  server = await startChildServer(data, directory.path, [], { file_descriptors: DESCRIPTORS });
});
afterAll(async () => {
  for (const socket of attackers) socket.destroy();
  await server.stop();
  directory.remove();
});

function open(localAddress: string, text: string): Socket {
  const { hostname, port } = new URL(server.address);
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  socket.on('error', () => {});
  socket.write(text);
  return socket;
}

/** Opens connections that get a 401, half a head's answer or nothing, and then say nothing. */
async function attack(addresses: readonly string[], connections: number): Promise<void> {
  const answered: Promise<unknown>[] = [];
  for (let index = 0; index < connections; index += 1) {
    const address = addresses[index % addresses.length] ?? '';
    const text =
      index % 3 === 0 ? '' : index % 3 === 1 ? 'GET / HT' : 'GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n';
    const socket = open(address, text);
    attackers.push(socket);
    if (index % 3 === 2) {
      answered.push(
        new Promise((resolve) => {
          socket.once('data', resolve);
          socket.once('close', resolve);
        }),
      );
    }
  }
  await Promise.all(answered);
}

/** The status of one decision that is asked from that address on a connection of its own. */
async function decide(localAddress: string): Promise<number> {
  const body = JSON.stringify(SMALL_REQUEST);
  const head = [
    'POST /v1/decisions HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${server.key}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  const socket = open(localAddress, `${head.join('\r\n')}\r\n\r\n${body}`);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return parseRaw(received).status;
}

test.skipIf(!is_linux)(
  `one address with 400 connections, of ${DESCRIPTORS} descriptors, locks nobody out`,
  async () => {
    await attack(['127.0.0.1'], 400);
    for (let count = 0; count < 5; count += 1) expect(await decide('127.0.0.2')).toBe(200);
  },
  LOCKED_OUT_MS,
);

test.skipIf(!is_linux)(
  'nor do 40 addresses with 400 more',
  async () => {
    const addresses = Array.from({ length: 40 }, (_, index) => `127.0.1.${index + 1}`);
    await attack(addresses, 400);
    for (let count = 0; count < 5; count += 1) expect(await decide('127.0.0.2')).toBe(200);
  },
  LOCKED_OUT_MS,
);

test.skipIf(!is_linux)('and the books are right afterwards', async () => {
  for (const socket of attackers.splice(0)) socket.destroy();
  expect(await decide('127.0.0.2')).toBe(200);
  const db = openDatabase(join(data, 'tds.sqlite'));
  const audit = runAudit(db);
  db.$client.close();
  expect(audit.open_holds).toBe(0);
});
