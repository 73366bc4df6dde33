import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import type { Refusal } from '../../src/errors/errors.ts';
import { Certificate, type CertificateFiles, CertificateRefused } from '../../src/http/certificate.ts';
import { PortTaken } from '../../src/http/listen.ts';
import type { HandlerFailure, RequestHandler } from '../../src/http/request-handler.ts';
import { errorResponse } from '../../src/http/responses.ts';
import { type RunningServer, type ServerOptions, startServer } from '../../src/http/server.ts';
import { temporaryDirectory } from '../accounts/support.ts';
import { initializeData, tds, textField } from '../cli/support.ts';
import { hasOpenssl, makeCertificate, replaceCertificate } from '../support/certificate.ts';
import { startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { GET, parseRaw } from '../support/raw-http.ts';
import { MODEL_TEST_TIMEOUT_MS, POLL_MS } from '../support/service.ts';
import { TIMEOUTS } from './timeouts.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const report = (failure: HandlerFailure) => {
  throw failure.error;
};

type Handle = (request: Request) => Response | Promise<Response>;
const ok: Handle = () => new Response('ok');
const echo: Handle = async (request) => new Response(await request.bytes());

const root = temporaryDirectory();
let files: CertificateFiles;
let certificate: Certificate;
beforeAll(async () => {
  if (!hasOpenssl) return;
  files = makeCertificate(root.path, 'first');
  certificate = await Certificate.open(files);
});
afterAll(() => root.remove());

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function start(handle: RequestHandler['handle'], options: ServerOptions = {}): Promise<RunningServer> {
  const handler = { handle, refuse: (refusal: Refusal) => errorResponse('req_test', refusal), report };
  const server = await startServer(handler, { host: '127.0.0.1', port: 0 }, { certificate, ...options });
  ends.push(() => server.stop());
  return server;
}

function portOf({ address }: Pick<RunningServer, 'address'>): number {
  return Number(new URL(address).port);
}

/** A TCP connection that has not begun to speak TLS. */
function silent(server: RunningServer): { socket: Socket; closed: Promise<void> } {
  const socket = connectTcp(portOf(server), '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  ends.push(() => socket.destroy());
  return { socket, closed: new Promise((resolve) => socket.once('close', () => resolve())) };
}

/** A TLS connection, with what came over it. */
class TlsClient {
  readonly socket: TLSSocket;
  readonly closed: Promise<void>;
  received = '';

  constructor(server: Pick<RunningServer, 'address'>, options: ConnectionOptions = {}) {
    const self_signed = { rejectUnauthorized: false };
    this.socket = connectTls({ host: '127.0.0.1', port: portOf(server), ...self_signed, ...options });
    ends.push(() => this.socket.destroy());
    this.socket.on('error', () => {});
    this.socket.on('data', (data) => {
      this.received += data.toString('latin1');
    });
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
  }

  send(text: string): this {
    this.socket.write(text);
    return this;
  }

  async responses(count: number): Promise<void> {
    while ((this.received.match(/HTTP\/1\.1 [2-5]\d\d/g) ?? []).length < count) {
      await new Promise((resolve) => this.socket.once('data', resolve));
    }
  }
}

/** The common name of the certificate that a new connection gets. */
async function servedName(server: Pick<RunningServer, 'address'>): Promise<string> {
  const client = new TlsClient(server);
  await new Promise((resolve) => client.socket.once('secureConnect', resolve));
  const name = String(client.socket.getPeerCertificate().subject.CN);
  client.socket.destroy();
  return name;
}

/** Resolves with true if a new connection gets an answer, and is not closed at once. */
async function isServed(server: RunningServer): Promise<boolean> {
  const client = new TlsClient(server).send(GET);
  await Promise.race([client.responses(1), client.closed]);
  client.socket.destroy();
  return client.received !== '';
}

describe.skipIf(!hasOpenssl)('over TLS', () => {
  test('the address says https, and a client that trusts the certificate is answered', async () => {
    const server = await start(echo);
    expect(server.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    const body = 'x'.repeat(1_048_576);
    const tls = { ca: readFileSync(files.certificate, 'utf8') };
    const response = await fetch(server.address, { method: 'POST', body, tls });
    expect([response.status, await response.text()]).toEqual([200, body]);
  });

  test('every response tells browsers to come back over TLS only; in the clear none does', async () => {
    const told = async (server: RunningServer, text: string) => {
      const client = new TlsClient(server).send(text);
      await client.responses(1);
      client.socket.destroy();
      return parseRaw(client.received).headers['strict-transport-security'];
    };
    const server = await start(ok);
    expect(await told(server, GET)).toBe('max-age=15552000');
    expect(await told(server, 'HELO\r\n\r\n')).toBe('max-age=15552000');
    const clear = await start(ok, { certificate: undefined });
    expect((await fetch(clear.address)).headers.has('strict-transport-security')).toBe(false);
  });

  test('several requests share a connection, and requests sent at once are answered in order', async () => {
    const server = await start((request) => new Response(new URL(request.url).pathname));
    const client = new TlsClient(server);
    client.send('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.responses(2);
    client.send('GET /3 HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.responses(3);
    expect(client.received.match(/\/[123]$|\/[123](?=HTTP)/g)).toEqual(['/1', '/2', '/3']);
  });

  test.each([
    ['TLSv1', false],
    ['TLSv1.1', false],
    ['TLSv1.2', true],
    ['TLSv1.3', true],
  ] as const)('%s: %p', async (version, is_taken) => {
    const client = new TlsClient(await start(ok), { minVersion: version, maxVersion: version }).send(GET);
    if (is_taken) await client.responses(1);
    else await client.closed;
    expect(client.received.startsWith('HTTP/1.1 200')).toBe(is_taken);
  });

  test('bytes in the clear are closed without an answer', async () => {
    const { socket, closed } = silent(await start(ok));
    let received = '';
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    socket.write(GET);
    await closed;
    expect(received).not.toContain('HTTP');
  });

  test('a port that is taken is said to be', async () => {
    const { address } = await start(ok);
    const handler = { handle: ok, refuse: (refusal: Refusal) => errorResponse('req_test', refusal), report };
    const where = { host: '127.0.0.1', port: Number(new URL(address).port) };
    await expect(startServer(handler, where, { certificate })).rejects.toThrow(PortTaken);
  });

  test('what is no HTTP request is answered with our error shape', async () => {
    const client = new TlsClient(await start(ok)).send('HELO\r\n\r\n');
    await client.closed;
    const { status, body } = parseRaw(client.received);
    expect([status, JSON.parse(body).error.code]).toEqual([400, 'malformed_request']);
  });

  test('a client that goes away frees its place', async () => {
    const begun = Promise.withResolvers<Request>();
    const server = await start(async (request) => {
      begun.resolve(request);
      await new Promise((resolve) => request.signal.addEventListener('abort', resolve));
      return new Response('late');
    });
    const client = new TlsClient(server).send(GET);
    const { signal } = await begun.promise;
    client.socket.destroy();
    await eventually(() => signal.aborted);
  });

  test('a stop ends idle connections at once, and lets a request be answered', async () => {
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const handler: Handle = async (request) => {
      if (!request.url.endsWith('/held')) return new Response('ok');
      begun.resolve();
      await gate.promise;
      return new Response('at last');
    };
    const handle = {
      handle: handler,
      refuse: (refusal: Refusal) => errorResponse('req_test', refusal),
      report,
    };
    const server = await startServer(handle, { host: '127.0.0.1', port: 0 }, { certificate });
    const idle = new TlsClient(server).send(GET);
    await idle.responses(1);
    const busy = new TlsClient(server).send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
    await begun.promise;
    const stopped = server.stop();
    await idle.closed;
    gate.resolve();
    await busy.closed;
    await stopped;
    expect(parseRaw(busy.received)).toMatchObject({ status: 200, body: 'at last' });
  });
});

describe.skipIf(!hasOpenssl)('the limits of TLS connections', () => {
  test('count a connection before its handshake', async () => {
    const server = await start(ok, { connection_limit: 10, connection_limit_per_address: 2 });
    const [first, second] = [silent(server), silent(server)];
    await Promise.all(
      [first, second].map(({ socket }) => new Promise((done) => socket.once('connect', done))),
    );
    const third = new TlsClient(server).send(GET);
    await third.closed;
    expect(third.received).toBe('');
    first.socket.destroy();
    await eventually(() => isServed(server));
    second.socket.destroy();
  });

  test('close a connection that does not shake hands, and no later than that', async () => {
    const { closed } = silent(await start(ok, { timeouts: TIMEOUTS }));
    await closed;
  });

  test('above the limit of all, the connection that was idle for longest makes room', async () => {
    const server = await start(ok, { connection_limit: 1, connection_limit_per_address: 10 });
    const first = new TlsClient(server).send(GET);
    await first.responses(1);
    const second = new TlsClient(server).send(GET);
    await Promise.all([first.closed, second.responses(1)]);
  });

  for (const [name, text] of Object.entries({ nothing: '', 'half a head': 'GET / HTTP/1.1\r\nHo' })) {
    test(`answer 408 to one that sends ${name}`, async () => {
      const client = new TlsClient(await start(ok, { timeouts: TIMEOUTS })).send(text);
      await client.closed;
      const { status, headers, body } = parseRaw(client.received);
      expect([status, headers.connection, JSON.parse(body).error.code]).toEqual([
        408,
        'close',
        'request_timeout',
      ]);
    });
  }

  test('close one that stays idle after its response, and one whose next head stops half-way', async () => {
    const idle = new TlsClient(await start(ok, { timeouts: TIMEOUTS })).send(GET);
    // So long that the half head comes before it is over, however slow the machine is.
    const timeouts = { ...TIMEOUTS, idle_ms: MODEL_TEST_TIMEOUT_MS };
    const half = new TlsClient(await start(ok, { timeouts })).send(GET);
    await half.responses(1);
    half.send('GET / HT');
    await Promise.all([idle.closed, half.closed]);
    expect(idle.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(half.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 408']);
  });

  test('close one whose refused body goes on and on', async () => {
    const refused: Handle = () => new Response('no', { status: 401 });
    const server = await start(refused, { timeouts: TIMEOUTS });
    const client = new TlsClient(server).send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n');
    const drip = setInterval(() => client.send('x'), 20);
    await client.closed;
    clearInterval(drip);
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
  });

  test('close one that does not read its response', async () => {
    const large = new Uint8Array(64 * 1_048_576);
    const server = await start(() => new Response(large), {
      connection_limit_per_address: 1,
      timeouts: TIMEOUTS,
    });
    const client = new TlsClient(server);
    client.socket.pause();
    client.send(GET);
    // Its place is free when the server has given up.
    await eventually(() => isServed(server));
    client.socket.resume();
    await client.closed;
    expect(client.received.length).toBeLessThan(large.byteLength);
  });

  test('leave one alone whose answer takes long', async () => {
    const slow: Handle = async () => {
      await Bun.sleep(2 * TIMEOUTS.request_ms);
      return new Response('slow');
    };
    const client = new TlsClient(await start(slow, { timeouts: TIMEOUTS })).send(GET);
    await client.responses(1);
    expect(parseRaw(client.received)).toMatchObject({ status: 200, body: 'slow' });
  });
});

test.skipIf(!hasOpenssl)('a client that may send for as long as it likes is no late one', async () => {
  const echoed: RequestHandler['handle'] = (request, _, onKnown) => {
    onKnown(true);
    return new Response(request.body, { headers: { 'transfer-encoding': 'chunked' } });
  };
  const client = new TlsClient(await start(echoed, { timeouts: TIMEOUTS })).send(
    'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  await Bun.sleep(2 * TIMEOUTS.request_ms);
  client.send('5\r\npiece\r\n0\r\n\r\n');
  await client.closed;
  expect(parseRaw(client.received).body).toContain('piece');
});

describe.skipIf(!hasOpenssl)('changed files', () => {
  let own: CertificateFiles;
  beforeEach(() => {
    own = makeCertificate(root.path, 'own');
  });

  test('are served to new connections, and open ones go on', async () => {
    const watched = await Certificate.open(own);
    const reloads: string[] = [];
    watched.watch(
      { onReload: () => reloads.push('reload'), onFailure: (error) => reloads.push(error.message) },
      POLL_MS,
    );
    ends.push(() => watched.stop());
    const server = await start(ok, { certificate: watched });
    const before = new TlsClient(server).send(GET);
    await before.responses(1);
    expect(await servedName(server)).toBe('own');
    replaceCertificate(own, makeCertificate(root.path, 'renewed'));
    await eventually(async () => (await servedName(server)) === 'renewed');
    before.send(GET);
    await before.responses(2);
    expect(reloads.at(-1)).toBe('reload');
  });

  const broken = {
    'a certificate that is none': () => writeFileSync(own.certificate, 'no certificate'),
    'an empty key': () => writeFileSync(own.key, ''),
    'the key of another certificate': () => renameSync(makeCertificate(root.path, 'another').key, own.key),
    'a file that is gone': () => rmSync(own.certificate),
  };
  for (const [name, change] of Object.entries(broken)) {
    test(`${name}: the pair before stays, it is told once, and a sound pair is taken afterwards`, async () => {
      const watched = await Certificate.open(own);
      const told: string[] = [];
      let reloads = 0;
      const server = await start(ok, { certificate: watched });
      watched.watch(
        { onReload: () => (reloads += 1), onFailure: ({ message }) => told.push(message) },
        POLL_MS,
      );
      ends.push(() => watched.stop());
      change();
      await eventually(() => told.length > 0);
      expect(await servedName(server)).toBe('own');
      expect(told).toEqual([expect.stringContaining(root.path)]);
      expect(told.join()).not.toContain('PRIVATE KEY');
      await expect(Certificate.open(own)).rejects.toThrow(CertificateRefused);
      replaceCertificate(own, makeCertificate(root.path, 'sound'));
      await eventually(async () => (await servedName(server)) === 'sound');
      expect(reloads).toBeGreaterThan(0);
    });
  }
});

describe.skipIf(!hasOpenssl)('tds serve', () => {
  test('serves HTTPS with --tls-cert and --tls-key, and reads them again when they change', async () => {
    const data = join(root.path, 'data');
    const served = makeCertificate(root.path, 'served');
    const flags = ['--tls-cert', served.certificate, '--tls-key', served.key];
    const key = textField(await initializeData(data), 'key');
    const server = await startChildServer(data, root.path, flags);
    expect(server.address).toStartWith('https://127.0.0.1:');
    const ask = () =>
      fetch(`${server.address}/v1/models`, {
        headers: { 'x-api-key': key },
        tls: { ca: readFileSync(served.certificate, 'utf8') },
      });
    expect((await ask()).status).toBe(200);
    replaceCertificate(served, makeCertificate(root.path, 'served-next'));
    await eventually(async () => (await servedName(server)) === 'served-next');
    writeFileSync(served.key, 'broken');
    await eventually(() => server.output().includes('the TLS certificate before stays'));
    expect(await servedName(server)).toBe('served-next');
    expect(await server.stop()).toBe(0);
  });

  test('one of the two alone is wrong usage, and files that cannot be served are one sentence', async () => {
    const alone = await tds(['serve', '--tls-cert', files.certificate]);
    expect(alone).toMatchObject({ code: 2, stdout: '' });
    expect(alone.stderr).toContain('--tls-cert and --tls-key go together');
    const data = join(root.path, 'refused');
    await initializeData(data);
    const missing = join(root.path, 'missing.key');
    const refused = await tds([
      'serve',
      '--data',
      data,
      '--tls-cert',
      files.certificate,
      '--tls-key',
      missing,
    ]);
    expect(refused).toEqual({
      code: 1,
      stdout: '',
      stderr: `tds: ${missing} cannot be read (ENOENT).\n`,
    });
  });
});
