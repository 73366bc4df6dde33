import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { PROJECT_ROOT, projectFile } from '../../src/files/project-root.ts';
import { ChildServer, startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { metricIn } from '../support/metrics.ts';
import { SOURCE } from '../support/program.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { MODEL_TEST_TIMEOUT_MS, POLL_MS } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { field, firstAsProcess, tds, textField } from './support.ts';

// Shorter than a response may stay unread, which a stopped server must not wait for.
setDefaultTimeout(1.5 * MODEL_TEST_TIMEOUT_MS);

const SERVE = ['serve', '--port', '0', '--gpu', 'none', '--threads', '1', '--model', TINY_WEIGHTS];
const KEY = /sk_svc_[0-9A-Za-z_-]{32}/;

const { command, commandJson } = firstAsProcess();
let root: ReturnType<typeof temporaryDirectory>;
let data: string;
beforeEach(() => {
  root = temporaryDirectory();
  data = join(root.path, 'data');
});
afterEach(() => root.remove());

/** Starts it, until it has announced itself. */
function serve(flags: readonly string[], options?: ConstructorParameters<typeof ChildServer>[2]) {
  return new ChildServer(data, flags, options).ready();
}

/** All that it has printed, once it was stopped. */
async function ended(server: ChildServer): Promise<string> {
  expect(await server.stop()).toBe(0);
  return server.output();
}

describe('serve on an empty data directory, without a terminal', () => {
  test('refuses in one sentence that says what to do, and makes nothing', async () => {
    const refused = await command([...SERVE, '--data', data]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toBe(
      `tds: There is no data in ${data}: mount it, name another directory with --data, or start anew with --init.\n`,
    );
    expect(existsSync(data)).toBe(false);
  });

  test('refuses the empty directory that an unmounted volume leaves, too', async () => {
    mkdirSync(data);
    expect(await command([...SERVE, '--data', data])).toMatchObject({ code: 1, stdout: '' });
    expect(readdirSync(data)).toEqual([]);
  });

  test('refuses a database that nothing was put into', async () => {
    mkdirSync(data);
    openDatabase(join(data, 'tds.sqlite')).$client.close();
    const refused = await command([...SERVE, '--data', data]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('start anew with --init');
  });
});

describe('the first key', () => {
  test('with --init it goes to a file for the owner only, which the output names', async () => {
    await using server = await serve(['--init', '--json']);
    const printed = server.output();
    const path = join(data, 'first-api-key.txt');
    expect(printed).toContain(`"api_key_file":${JSON.stringify(path)}`);
    expect(printed).not.toContain('"api_key":');
    // Without --metrics-port there is no listener, so that a second service starts with the same flags.
    expect(printed).not.toContain('metrics_url');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const key = readFileSync(path, 'utf8').trim();
    expect(key).toMatch(KEY);
    const response = await fetch(`${server.address}/v1/models`, { headers: { 'x-api-key': key } });
    expect(response.status).toBe(200);
    expect(await ended(server)).not.toMatch(KEY);
  });

  test('start and stop are lines of JSON like those of the log, with what the operator needs, and a curl line that a shell can run, whatever the directory is called', async () => {
    data = join(root.path, "a 'b' $c");
    await using server = await serve(['--init', '--metrics-port', '0'], { model: null });
    const printed = server.output();
    const path = join(data, 'first-api-key.txt');
    const address = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/);
    const lines = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .map((line): unknown => JSON.parse(line));
    expect(lines(printed)).toContainEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      address,
      console: expect.stringMatching(/\/console$/),
      metrics_url: expect.stringMatching(/\/metrics$/),
      api_key_file: path,
      // These, and no more: an operator reads the line.
      engine: {
        weights_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        profile: expect.any(String),
        context_tokens: 16_384,
        evaluator: expect.any(String),
        device: 'cpu',
        calibrated: true,
      },
      example: expect.stringContaining('curl -s '),
      advice: expect.stringContaining('tds member add "My organization" EMAIL owner'),
      msg: 'serving',
    });
    const serving = lines(printed).find((line) => field(line, 'msg') === 'serving');
    const command = ['sh', '-c', textField(serving, 'example')];
    const answered = await new Response(Bun.spawn(command, { stdin: 'ignore' }).stdout).json();
    expect(answered).toMatchObject({ object: 'decision' });
    const all = await ended(server);
    expect(lines(all).at(-1)).toMatchObject({ level: 'info', msg: 'stopped' });
    expect(all).not.toMatch(KEY);
  });

  test('also where only warnings are logged; a log file has both as well, and a later start names no file of a key', async () => {
    const log = join(root.path, 'tds.log');
    expect(await ended(await serve(['--init', '--log-level', 'warn']))).toContain('"msg":"serving"');
    const printed = await ended(await serve(['--log-file', log]));
    expect(printed).toContain('"msg":"serving"');
    expect(printed).not.toContain('api_key');
    const messages = readFileSync(log, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => textField(JSON.parse(line), 'msg'));
    expect([messages[0], messages.at(-1)]).toEqual(['serving', 'stopped']);
  });

  test('a file of that name is never written over, and the start that met it leaves the database empty', async () => {
    mkdirSync(data, { mode: 0o700 });
    const path = join(data, 'first-api-key.txt');
    writeFileSync(path, 'the only copy of another key');
    const refused = await tds([...SERVE, '--init', '--data', data]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toBe(
      `tds: ${path} is left from an earlier start: move it away and start again.\n`,
    );
    expect(readFileSync(path, 'utf8')).toBe('the only copy of another key');
    expect(await commandJson(['org', 'list', '--data', data])).toEqual([]);
  });

  test('on a terminal an empty directory is filled without a flag, and the key is shown there and nowhere else', async () => {
    await using server = await serve([], { stdout: 'terminal' });
    server.signal('SIGINT');
    expect(await server.ended()).toBe(0);
    const printed = server.output();
    const [key = ''] = KEY.exec(printed) ?? [];
    expect(printed).toContain(`First API key, shown only this once: ${key}`);
    expect(printed).toContain('tds member add "My organization" EMAIL owner');
    expect(printed).toContain(`-H 'Authorization: Bearer ${key}'`);
    expect(existsSync(join(data, 'first-api-key.txt'))).toBe(false);
  });

  test('on a terminal --json shows the key, and names no file', async () => {
    const printed = await ended(await serve(['--json'], { stdout: 'terminal' }));
    expect(printed).toMatch(/"api_key": "sk_svc_/);
    expect(printed).not.toContain('api_key_file');
  });

  test('--owner makes the first organization that person’s; without it nobody is asked', async () => {
    const printed = await ended(await serve(['--init', '--owner', 'ada@example.com']));
    expect(printed).not.toContain('(empty for none)');
    expect(printed).not.toContain('no owner yet');
    const organizations = await commandJson(['org', 'list', '--data', data]);
    const [organization] = Array.isArray(organizations) ? organizations : [];
    expect(
      await commandJson(['member', 'list', textField(organization, 'id'), '--data', data]),
    ).toMatchObject([{ email: 'ada@example.com', role: 'owner' }]);
    const misused = await command([...SERVE, '--init', '--owner', 'ada', '--data', data]);
    expect(misused).toMatchObject({ code: 2, stdout: '' });
  });
});

test('README starts it from a checkout, with a command that fills an empty directory', async () => {
  const { scripts } = await Bun.file(projectFile('package.json')).json();
  expect(scripts.start).toEndWith(`bun ${relative(PROJECT_ROOT, SOURCE)} serve --init`);
  const server = await serve(['--init'], { program: [process.execPath, SOURCE] });
  expect(await ended(server)).toContain('"msg":"serving"');
  expect(readdirSync(data)).toContain('first-api-key.txt');
});

test('clients that left their requests do not keep a stopped server alive', async () => {
  const server = await startChildServer(data, root.path, ['--metrics-port', '0'], { embedded: true });
  const clients = new AbortController();
  const ask = async () => {
    const response = fetch(`${server.address}/v1/decisions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.key}` },
      body: JSON.stringify({
        ...SMALL_REQUEST,
        state: 'The parcel is late and nobody calls. '.repeat(1_000),
      }),
      signal: clients.signal,
    });
    expect(await response.catch(() => 'left')).toBe('left');
  };
  const left = Promise.all([ask(), ask(), ask()]);
  // They leave while the first of these records is read, which takes seconds.
  while (metricIn(await (await fetch(server.metrics_url)).text(), 'tds_model_requests') < 3)
    await Bun.sleep(POLL_MS);
  clients.abort();
  await left;
  // An abandoned request has ended when its line is in the log.
  await eventually(() => (server.output().match(/"status":499/g) ?? []).length >= 3);
  expect(await server.stop()).toBe(0);
});

describe('metrics and the log file', () => {
  test('the metrics are where the start says, and the log in its file', async () => {
    const log_file = join(root.path, 'tds.log');
    const flags = ['--metrics-port', '0', '--log-file', log_file, '--backup-every', '6h'];
    const server = await startChildServer(data, root.path, flags);
    const metrics = async () => (await fetch(server.metrics_url)).text();
    expect(await metrics()).toMatch(/tds_build_info{version="[^"]+",commit="[0-9a-f]{12}/);
    await eventually(async () => metricIn(await metrics(), 'tds_backup_timestamp_seconds') !== 0);
    const text = await metrics();
    const [backup = ''] = readdirSync(join(data, 'backups')).filter((name) => name.endsWith('.zst'));
    expect(metricIn(text, 'tds_backup_bytes')).toBe(statSync(join(data, 'backups', backup)).size);
    expect(metricIn(text, 'tds_backup_interval_seconds')).toBe(6 * 3_600);
    expect(metricIn(text, 'tds_backup_failed')).toBe(0);
    for (const name of ['tds_connections', 'process_open_fds']) {
      expect(
        metricIn(text, name === 'tds_connections' ? 'tds_connections_max' : 'process_max_fds'),
      ).toBeGreaterThan(metricIn(text, name));
    }
    expect(metricIn(text, 'process_open_fds')).toBeGreaterThan(10);
    const page = await command(['top', '--once', '--data', data]);
    expect(page.code).toBe(0);
    expect(page.stdout).toStartWith('Typed Decision Service ');
    expect((await fetch(`${server.address}/nothing`)).status).toBe(404);
    expect(await server.stop()).toBe(0);
    const log = readFileSync(log_file, 'utf8');
    expect(log).toContain('"code":"not_found"');
    expect(log).toContain('"msg":"stopping: finishing the requests in flight"}\n');
    expect(log).toEndWith('}\n');
    expect(server.output()).not.toContain('"msg":"request"');
    expect(await command(['top', '--once', '--data', data])).toMatchObject({
      code: 1,
      stderr: `tds: No service with metrics runs on ${data}: start it with --metrics-port, or name its metrics with --url.\n`,
    });
  });

  test('a port that is taken, and a file that cannot be opened, stop the start with a sentence', async () => {
    const taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
    const flags = [...SERVE, '--init', '--data', data];
    expect(await tds([...flags, '--metrics-port', String(taken.port)])).toMatchObject({
      code: 1,
      stderr: `tds: Port ${taken.port} is taken: stop the program that listens on it, or choose another with --metrics-port.\n`,
    });
    await taken.stop(true);
    const log_file = join(root.path, 'missing', 'tds.log');
    expect(await tds([...flags, '--log-file', log_file])).toMatchObject({
      code: 1,
      stderr: `tds: The log file ${log_file} cannot be opened for writing (ENOENT): make its folder, or name another with --log-file.\n`,
    });
  });
});
