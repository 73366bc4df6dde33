import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { Reloader } from '../../src/cli/reload-settings.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { systemClock } from '../../src/time/clock.ts';
import { sign } from '../payments/paddle-calls.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { ChildServer, startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { metricIn } from '../support/metrics.ts';
import { RecordedLog } from '../support/problems.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { field } from './support.ts';

setDefaultTimeout(1.5 * MODEL_TEST_TIMEOUT_MS);

const BURST = 6;
const CLIENTS = 4;
/** Enough for many to be in flight at each reload. */
const ANSWERS = 40;

const started: ChildServer[] = [];
let root: ReturnType<typeof temporaryDirectory>;
let path: string;
beforeEach(() => {
  root = temporaryDirectory();
  path = join(root.path, 'tds.toml');
});
afterEach(async () => {
  // Those that a failed test has left; a second stop changes nothing.
  for (const server of started.splice(0)) await server.stop();
  root.remove();
});

function write(text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
}

async function start(text: string, embedded = false): Promise<ChildServer> {
  write(text);
  const server = await startChildServer(join(root.path, 'data'), root.path, ['--config', path], { embedded });
  started.push(server);
  return server;
}

/** The log lines with that message. Of the last line only a part may have come. */
function lines(server: ChildServer, message: string): unknown[] {
  return server
    .output()
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{"') && field(JSON.parse(line), 'msg') === message)
    .map((line) => JSON.parse(line));
}

const DONE = 'the settings were read again';
const WRONG = 'the settings were read again and are wrong: all stays as it was';
const APPLIED = 'a changed setting is applied';
const WAITS = 'a changed setting waits for a restart';

/** Writes the file, sends SIGHUP, and waits until the log has a line more with that message. */
async function reload(server: ChildServer, text: string, message = DONE): Promise<void> {
  const before = lines(server, message).length;
  write(text);
  server.signal('SIGHUP');
  await eventually(() => lines(server, message).length !== before);
}

async function ask({ address, key }: ChildServer, body: unknown): Promise<number> {
  const response = await fetch(`${address}/v1/decisions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
  return response.status;
}

let bursts = 0;

/** Sends many requests at once. The first takes longer at the model than sending all, because their record is new. */
function burst(server: ChildServer): Promise<number[]> {
  bursts += 1;
  const state = `Number ${bursts}. ${'The parcel is late and nobody calls. '.repeat(40)}`;
  return Promise.all(Array.from({ length: BURST }, () => ask(server, { ...SMALL_REQUEST, state })));
}

test('SIGHUP under load: every request is answered, a changed limit counts, and a wrong file changes nothing', async () => {
  const server = await start('[model]\nqueue_limit = 512\n', true);
  expect(new Set(await burst(server))).toEqual(new Set([200]));

  let is_over = false;
  const client = async () => {
    const statuses: number[] = [];
    while (statuses.length < ANSWERS / CLIENTS) statuses.push(await ask(server, SMALL_REQUEST));
    return statuses;
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client)).finally(() => {
    is_over = true;
  });
  for (let round = 0; round < 2 || !is_over; round += 1) {
    await reload(
      server,
      `[model]\nqueue_limit = ${400 + (round % 2)}\n[server]\nconnection_limit = ${500 + round}\n`,
    );
    await reload(server, '[model]\nqueue_limit = many\n', WRONG);
  }
  expect(new Set((await clients).flat())).toEqual(new Set([200]));
  expect(lines(server, WRONG)[0]).toMatchObject({
    reason: `Line 2 of ${path}: a value must be a text in quotes on one line, a whole number, true or false.`,
  });

  await reload(server, '[model]\nqueue_limit = 1\n');
  expect(lines(server, APPLIED).at(-1)).toMatchObject({ setting: 'model.queue_limit', now: '1' });
  expect(new Set(await burst(server))).toEqual(new Set([200, 502]));
  await reload(server, '[model]\nqueue_limit = 512\nmystery = 1\n', WRONG);
  chmodSync(path, 0o666);
  await reload(server, '[model]\nqueue_limit = 512\n', WRONG);
  expect(new Set(await burst(server))).toEqual(new Set([200, 502]));

  chmodSync(path, 0o600);
  await reload(server, '[model]\nqueue_limit = 512\n');
  expect(new Set(await burst(server))).toEqual(new Set([200]));
  expect(await server.stop()).toBe(0);
});

test('SIGHUP applies the log level and the limits of connections, and names what waits for a restart', async () => {
  const server = await start('[server]\nconnection_limit_per_address = 100\n');
  const requests = () => lines(server, 'request').length;
  await ask(server, SMALL_REQUEST);
  await eventually(() => requests() !== 0);

  // The line about the level is written though the new level would not let it through.
  await reload(server, '[log]\nlevel = "error"\n[server]\nhost = "::1"\nconnection_limit_per_address = 1\n');
  const applied = lines(server, APPLIED).map((line) => field(line, 'setting'));
  expect(applied).toEqual(['server.connection_limit_per_address', 'log.level']);
  expect(lines(server, WAITS)).toMatchObject([{ setting: 'server.host', before: '127.0.0.1', now: '::1' }]);
  await closesOneOf(server, 2);

  const before = requests();
  await reload(server, '[log]\nlevel = "info"\n');
  expect(lines(server, APPLIED).at(-1)).toMatchObject({ setting: 'log.level', now: 'info' });
  expect(await ask(server, SMALL_REQUEST)).toBe(200);
  await eventually(() => requests() !== before);
  expect(requests()).toBe(before + 1);
  expect(await server.stop()).toBe(0);
});

test('SIGHUP applies the floor of the free disk and the idle time of models', async () => {
  const floor = (megabytes: number) => `[data]\ndisk_floor = ${megabytes}\n`;
  const server = await start(`${floor(1)}[metrics]\nport = 0\n`);
  const readyz = async () => (await fetch(`${server.address}/readyz`)).json();
  const loaded = async () =>
    metricIn(
      await (await fetch(server.metrics_url)).text(),
      'tds_model_ready{model="decision-1",mode="fast"}',
    );
  expect(await readyz()).toMatchObject({ status: 'ready' });
  expect(await loaded()).toBe(1);
  await reload(server, `${floor(1_000_000_000)}[metrics]\nport = 0\n[model]\nidle_unload = 1\n`);
  // A look of the last second is given again.
  await eventually(async () => field(await readyz(), 'status') === 'not_ready');
  expect(await readyz()).toEqual({ status: 'not_ready', failing: ['disk'] });
  await eventually(async () => (await loaded()) === 0);
  await reload(server, `${floor(1)}[metrics]\nport = 0\n`);
  await eventually(async () => field(await readyz(), 'status') === 'ready');
  expect(await ask(server, SMALL_REQUEST)).toBe(200);
  expect(await server.stop()).toBe(0);
});

/** Opens so many connections at once; resolves when the server has closed one of them. */
async function closesOneOf({ address }: ChildServer, count: number): Promise<void> {
  const { hostname, port } = new URL(address);
  const sockets = Array.from({ length: count }, () => connect(Number(port), hostname));
  await Promise.race(
    sockets.map((socket) => new Promise((resolve) => socket.on('error', () => {}).once('close', resolve))),
  );
  for (const socket of sockets) socket.destroy();
}

test('SIGHUP replaces the secret that payment webhooks are signed with, and no secret is in the log', async () => {
  const paddle = (secret: string) =>
    `[paddle]\napi_key = "pdl_hunter"\nwebhook_secret = "${secret}"\nproduct_id = "pro_1"\n`;
  const server = await start(paddle('first-hunter'));
  const call = async (secret: string) => {
    const { body, signature } = sign('{}', { secret });
    const response = await fetch(`${server.address}/webhooks/paddle`, {
      method: 'POST',
      headers: { 'paddle-signature': signature ?? '' },
      body,
    });
    return field(field(await response.json(), 'error'), 'code');
  };
  expect([await call('first-hunter'), await call('second-hunter')]).toEqual([
    'unreadable_webhook',
    'invalid_signature',
  ]);
  await reload(server, paddle('second-hunter'));
  expect([await call('first-hunter'), await call('second-hunter')]).toEqual([
    'invalid_signature',
    'unreadable_webhook',
  ]);
  // Without the settings the path would be gone: that needs a restart.
  await reload(server, '');
  expect(await call('second-hunter')).toBe('unreadable_webhook');
  expect(lines(server, WAITS).map((line) => field(line, 'setting'))).toEqual([
    'paddle.api_key',
    'paddle.webhook_secret',
    'paddle.product_id',
  ]);
  expect(server.output()).not.toContain('hunter');
  expect(await server.stop()).toBe(0);
});

test.skipIf(!hasOpenssl)(
  'SIGHUP takes other TLS files, and with files that cannot be served nothing changes',
  async () => {
    const [first, second] = [makeCertificate(root.path, 'first'), makeCertificate(root.path, 'second')];
    const tls = (cert: string, key: string, level: string) =>
      `[tls]\ncert = "${cert}"\nkey = "${key}"\n[log]\nlevel = "${level}"\n`;
    const server = await start(tls(first.certificate, first.key, 'info'));
    expect(await servedName(server)).toBe('first');
    await reload(server, tls(second.certificate, second.key, 'info'));
    expect(await servedName(server)).toBe('second');
    const applied = lines(server, APPLIED).length;
    // A log that had become silent would not say so.
    await reload(server, tls(first.certificate, second.key, 'silent'), WRONG);
    expect(lines(server, WRONG)).toMatchObject([
      { reason: expect.stringContaining('is not that of the certificate') },
    ]);
    expect(await servedName(server)).toBe('second');
    expect(lines(server, APPLIED).length).toBe(applied);
    expect(await server.stop()).toBe(0);
  },
);

test('SIGHUP opens a log file that was moved away again, also where the settings are wrong', async () => {
  const log = join(root.path, 'tds.log');
  const setting = `[log]\nfile = "${log}"\n`;
  const server = await start(setting);
  renameSync(log, `${log}.moved`);
  write(`${setting}mystery = 1\n`);
  server.signal('SIGHUP');
  await eventually(() => existsSync(log) && readFileSync(log, 'utf8').includes(WRONG));
  expect(await server.stop()).toBe(0);
});

test('SIGHUP while it starts ends no start, and reads the settings again after it', async () => {
  write('[log]\nlevel = "error"\n');
  const env = { ...process.env, TDS_MYSTERY: '1' };
  const server = new ChildServer(join(root.path, 'data'), ['--init', '--config', path], { env });
  started.push(server);
  await eventually(() => server.output().includes('TDS_MYSTERY'));
  write('[log]\nlevel = "info"\n');
  server.signal('SIGHUP');
  await server.ready();
  await eventually(() => lines(server, DONE).length === 1);
  expect(await server.stop()).toBe(0);
});

/** The name in the certificate that a new connection gets. */
async function servedName({ address }: ChildServer): Promise<unknown> {
  const { hostname, port } = new URL(address);
  const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false });
  try {
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    return socket.getPeerCertificate().subject.CN;
  } finally {
    socket.destroy();
  }
}

test('when its terminal is closed, the service stops as by Ctrl-C, instead of going on unseen', async () => {
  await using server = await new ChildServer(join(root.path, 'data'), [], { stdout: 'terminal' }).ready();
  server.closeTerminal();
  server.signal('SIGHUP');
  expect(await server.ended()).toBe(0);
});

test('an unexpected failure is reported with its cause, and quotes nothing', async () => {
  const recorded = new RecordedLog();
  const problems = new ProblemLog(recorded.log, systemClock);
  const reloader = new Reloader([], () => {
    throw new TypeError('hunter2');
  });
  const nothing = () => Promise.resolve();
  reloader.start({ log: recorded.log, problems, reopenLog: nothing, change: nothing });
  reloader.reload();
  await eventually(() => recorded.text.includes(WRONG));
  expect(await recorded.problems()).toMatchObject([
    { request_id: null, step: 'settings', causes: [{ error: 'TypeError' }] },
  ]);
  expect(recorded.text).not.toContain('hunter2');
});

/** Runs a program with the folder `$0` in place of `/etc`. */
const withEtc = (folder: string) => [
  ...['unshare', '--map-root-user', '--mount', 'sh', '-c', 'mount --bind "$0" /etc && exec "$@"', folder],
];
const can_mount = Bun.spawnSync([...withEtc('/tmp'), 'true']).success;

test.skipIf(!can_mount)('the default file is gone at SIGHUP: all stays as it was', async () => {
  write('[server]\nconnection_limit = 500\n');
  const server = new ChildServer(join(root.path, 'data'), ['--init', '--console', 'off'], {
    inside: withEtc(root.path),
  });
  started.push(server);
  await server.ready();
  rmSync(path);
  server.signal('SIGHUP');
  await eventually(() => lines(server, WRONG).length === 1);
  expect(lines(server, WRONG)).toMatchObject([{ reason: expect.stringMatching('/etc/tds.toml') }]);
  expect(lines(server, APPLIED)).toEqual([]);
});
