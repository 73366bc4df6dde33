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
import { join } from 'node:path';
import { Certificate, type CertificateFiles, CertificateRefused } from '../../src/http/certificate.ts';
import { PortTaken } from '../../src/http/listen.ts';
import type { RequestHandler } from '../../src/http/request-handler.ts';
import type { RunningServer, ServerOptions } from '../../src/http/server.ts';
import { initializeData, tds, textField } from '../cli/support.ts';
import {
  EXPIRED_S,
  hasOpenssl,
  makeCertificate,
  makeExpiredCertificate,
  replaceCertificate,
} from '../support/certificate.ts';
import { startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { metricIn } from '../support/metrics.ts';
import { GET, parseRaw } from '../support/raw-http.ts';
import { MODEL_TEST_TIMEOUT_MS, POLL_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TIMEOUTS } from './timeouts.ts';
import {
  endAll,
  ends,
  type Handle,
  ok,
  RawClient,
  start as startOver,
  TlsClient,
  unauthorized,
} from './transports.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

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

afterEach(async () => expect(await endAll()).toEqual([]));

const start = (handle: RequestHandler['handle'], options: ServerOptions = {}, port = 0) =>
  startOver(handle, { certificate, ...options }, port);

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
    const client = new RawClient(await start(ok)).send(GET);
    await client.closed;
    expect(client.received).not.toContain('HTTP');
  });

  test('a port that is taken is said to be', async () => {
    const { address } = await start(ok);
    await expect(start(ok, {}, Number(new URL(address).port))).rejects.toThrow(PortTaken);
  });

  test('what is no HTTP request is answered with our error shape', async () => {
    const client = new TlsClient(await start(ok)).send('HELO\r\n\r\n');
    await client.closed;
    const { status, body } = parseRaw(client.received);
    expect([status, JSON.parse(body).error.code]).toEqual([400, 'malformed_request']);
  });
});

describe.skipIf(!hasOpenssl)('the limits of TLS connections', () => {
  test('count a connection before its handshake', async () => {
    const server = await start(ok, { connection_limit: 10, connection_limit_per_address: 2 });
    const [first, second] = [new RawClient(server), new RawClient(server)];
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
    const { closed } = new RawClient(await start(ok, { timeouts: TIMEOUTS }));
    await closed;
  });

  test('close one that stays idle after a body which ended later than its response', async () => {
    const server = await start(unauthorized, {
      timeouts: { ...TIMEOUTS, request_ms: MODEL_TEST_TIMEOUT_MS },
    });
    const client = new TlsClient(server).send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx');
    await client.responses(1);
    client.send('x');
    await client.closed;
    expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
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
    const ask = (path: string) =>
      fetch(`${server.address}${path}`, {
        headers: { 'x-api-key': key },
        tls: { ca: readFileSync(served.certificate, 'utf8') },
      });
    expect((await ask('/v1/models')).status).toBe(200);
    expect(await (await ask('/docs')).text()).toContain(`${server.address}/v1/decisions`);
    replaceCertificate(served, makeCertificate(root.path, 'served-next'));
    await eventually(async () => (await servedName(server)) === 'served-next');
    writeFileSync(served.key, 'broken');
    await eventually(() => server.output().includes('the TLS certificate before stays'));
    expect(await servedName(server)).toBe('served-next');
    expect(await server.stop()).toBe(0);
  });

  test('warns of a certificate that has expired, at each reading, and tells its end in the metrics', async () => {
    const data = join(root.path, 'expired');
    await initializeData(data);
    const served = makeExpiredCertificate(root.path, 'old');
    const flags = ['--tls-cert', served.certificate, '--tls-key', served.key, '--metrics-port', '0'];
    const server = await startChildServer(data, root.path, flags);
    const warnings = () => server.output().split('clients refuse the TLS certificate').length - 1;
    const end = async () =>
      metricIn(await (await fetch(server.metrics_url)).text(), 'tds_certificate_expires_timestamp_seconds');
    expect(warnings()).toBe(1);
    expect(server.output()).toContain('"valid_to":"2020-02-01T00:00:00.000Z"');
    expect(await end()).toBe(EXPIRED_S);
    replaceCertificate(served, makeCertificate(root.path, 'new'));
    await eventually(async () => (await end()) > Date.now() / 1_000);
    replaceCertificate(served, makeExpiredCertificate(root.path, 'older'));
    await eventually(() => warnings() === 2);
    expect(await end()).toBe(EXPIRED_S);
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
