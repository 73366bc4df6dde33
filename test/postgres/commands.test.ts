import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { bringUpToDate, knownMigrations, schemaVersion } from '../../db/postgres/migrate.ts';
import { verifyWeights } from '../../native/engine.ts';
import { expectRefused, field, firstAsProcess, tds, textField } from '../cli/support.ts';
import { writeTinyModel } from '../native/support/gguf.ts';
import { TINY_MARKERS } from '../native/support/models.ts';
import { ChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { isPostgresMissing, sharedPostgres, type TestDatabase, testDatabase } from '../support/postgres.ts';
import { PostgresProxy } from '../support/postgres-proxy.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(120_000);

const CASES = new URL('../../src/eval/example-cases.jsonl', import.meta.url).pathname;

describe.skipIf(isPostgresMissing())('the command line on PostgreSQL', () => {
  const root = temporaryDirectory();
  const data = join(root.path, 'data');
  let database: TestDatabase;
  let env: Record<string, string>;
  /** As messages name it. */
  let place: string;
  beforeAll(async () => {
    database = await testDatabase({ empty: true });
    env = { TDS_DATABASE: database.url };
    place = `postgres://127.0.0.1:${(await sharedPostgres()).port}/${database.name}`;
  });
  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    root.remove();
  });

  const { command } = firstAsProcess();
  const run = (...args: string[]) => command([...args, '--data', data], { env });
  async function json(...args: string[]): Promise<unknown> {
    const { code, stdout, stderr } = await run(...args, '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  }

  test('an empty database is refused by a command and by a start, and tds init fills it once', async () => {
    const advice = 'run "tds init" with the same --database first, or name another one.';
    expectRefused(await run('org', 'list'), `There is no data in ${place}: ${advice}`);
    expectRefused(await run('serve', '--port', '0'), `There is no data in ${place}: ${advice}`);
    expect(await json('doctor', '--gpu', 'none', '--port', '0')).toContainEqual({
      subject: 'data',
      state: 'ok',
      detail: 'PostgreSQL has no data yet: the first start fills it',
    });
    expect(await json('init', '--owner', 'ada@example.com')).toMatchObject({ initialized: true });
    expect(await json('init')).toEqual({ initialized: false });
    expect((await run('init')).stdout).toBe(`${place} is already initialised; nothing was changed.\n`);
    // Nothing of it is in the data directory, which the start had claimed.
    expect(readdirSync(data)).toEqual(['server.lock']);
  });

  test('accounts, members, projects, keys, credit, models and users', async () => {
    const organization = textField(await json('org', 'create', 'Acme'), 'id');
    expect(await json('member', 'add', organization, 'ada@example.com', 'owner')).toMatchObject({
      role: 'owner',
    });
    const project = textField(await json('project', 'create', organization, 'Mails'), 'id');
    const key = textField(await json('key', 'create', project, 'Robot'), 'id');
    expect(await json('key', 'list', '--org', organization)).toMatchObject([{ id: key, name: 'Robot' }]);
    expect(textField(await json('key', 'revoke', key), 'id')).toBe(key);
    const payment = textField(await json('credit', 'checkout', organization, '25'), 'payment_id');
    await json('credit', 'confirm', payment);
    expect(await json('credit', 'history', organization)).toMatchObject([
      { kind: 'tier_change' },
      { kind: 'top_up', amount_micros: 25_000_000 },
    ]);
    expect(await json('model', 'price', 'decision-1', '0.75')).toMatchObject({ id: 'decision-1' });
    expect(await json('model', 'list')).toBeArrayOfSize(2);
    expect(await json('user', 'list')).toMatchObject([{ email: 'ada@example.com' }]);
    expect((await run('user', 'reset', 'ada@example.com')).stdout).toContain('/console/reset#token=');
    expect((await run('usage', 'daily')).code).toBe(0);
    expect(await json('audit')).toMatchObject({ ok: true, open_holds: 0 });
  });

  test.each([
    ['credit', ['org', 'credit']],
    ['refund', ['credit', 'refund']],
  ])('a %s whose commit was not answered says how to repeat it, and is entered once', async (name, words) => {
    using proxy = new PostgresProxy((await sharedPostgres()).port);
    const organization = textField(await json('org', 'create', name), 'id');
    await json('org', 'credit', organization, '25');
    const args = [...words, organization, '5', '--data', data];
    proxy.cutNext('after the commit');
    const lost = await command(args, { env: { TDS_DATABASE: proxy.url(database.url) } });
    expect([lost.code, proxy.cuts]).toEqual([1, 1]);
    const [, entry = ''] = /may have been entered .* (--entry entry_\w+),/.exec(lost.stderr) ?? [];
    const credit_micros = name === 'credit' ? 30_000_000 : 20_000_000;
    expect(await json(...words, organization, '5', ...entry.split(' '))).toMatchObject({ credit_micros });
  });

  test('what is for a file of SQLite says what to do instead', async () => {
    const backups =
      'back PostgreSQL up with pg_basebackup and its write-ahead log (the state of every second), or pg_dump (a copy).';
    expectRefused(await run('backup', join(root.path, 'copy')), `"tds backup" is for SQLite: ${backups}`);
    expectRefused(
      await run('restore', join(root.path, 'copy')),
      '"tds restore" is for SQLite: start PostgreSQL on what pg_basebackup wrote, or put a dump of pg_dump back with pg_restore, while no service runs.',
    );
    const served = await run('serve', '--backup-every', '6h');
    expect(served).toMatchObject({ code: 2, stdout: '' });
    expect(served.stderr).toStartWith(`error: --backup-every is for SQLite: ${backups}\n`);
  });

  test('a model is reloaded from a machine without a data directory, which is not made', async () => {
    const missing = join(root.path, 'missing');
    const reload = ['model', 'reload', 'decision-1', '--gpu', 'none', '--data', missing];
    expect(await tds(reload, { env })).toEqual({
      code: 0,
      stdout: 'The weights of decision-1 are good, and the next load takes them.\n',
      stderr: expect.stringContaining(`No service runs on ${missing}.\n`),
    });
    expect(existsSync(missing)).toBe(false);
  });

  test('a model of the catalog is measured by its id', async () => {
    const weights = join(root.path, 'measured.gguf');
    await writeTinyModel(weights, TINY_MARKERS);
    const on_cpu = ['--gpu', 'none', '--threads', '1'];
    expect(await run('model', 'add', 'measured', '--weights', weights, '--price', '1', ...on_cpu)).toEqual({
      code: 0,
      stdout: 'Added measured, which is open.\n',
      stderr: expect.any(String),
    });
    const output = join(root.path, 'evaluation');
    const few = ['--limit', '4', '--folds', '2', '--probes', '0', ...on_cpu];
    const measure = (id: string) => run('eval', CASES, '--model', id, '--output', output, '--json', ...few);
    const { code, stdout, stderr } = await measure('measured');
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('tds: ')]);
    expect(field(field(JSON.parse(stdout), 'model'), 'weights_sha256')).toBe(
      (await verifyWeights(weights)).sha256,
    );
    expect(await measure('nothing')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^tds: [^\n]+ is missing[^\n]*\n$/),
    });
  });

  test('an older database is left as it is by tds doctor, and updated by another command, which says before that nothing backs it up', async () => {
    await using older = await testDatabase({ empty: true });
    const { db } = await older.connect({ connections: 1 });
    await bringUpToDate(db, knownMigrations().slice(0, -1));
    const list = ['org', 'list', '--data', data, '--database', older.url];
    const version = await schemaVersion(db);
    const older_place = `postgres://127.0.0.1:${(await sharedPostgres()).port}/${older.name}`;
    const doctor = await command(['doctor', '--json', '--gpu', 'none', '--port', '0', ...list.slice(2)]);
    expect(JSON.parse(doctor.stdout)).toContainEqual({
      subject: 'data',
      state: 'warning',
      detail: `${older_place} is of an older version: the next start, or another command, updates it, and nothing backs it up before: dump it first.`,
    });
    expect(await schemaVersion(db)).toBe(version);
    expect(await command(list)).toEqual({
      code: 0,
      stdout: 'There is no organization.\n',
      stderr: `tds: the database is updated for this version now, and not backed up before: to go back to the version before, restore your own dump of ${older_place}.\ntds: the database was updated for this version.\n`,
    });
    expect(await command(list)).toMatchObject({ code: 0, stderr: '' });
  });

  test('an update that waits for a transaction names it, and goes on when that ends', async () => {
    await using older = await testDatabase({ empty: true });
    const { db } = await older.connect({ connections: 1 });
    await bringUpToDate(db, knownMigrations().slice(0, 1));
    await using server = new ChildServer(join(root.path, 'waiting'), ['--init', '--database', older.url]);
    await db.transaction(async (transaction) => {
      await transaction.execute(sql`SET LOCAL idle_in_transaction_session_timeout = 0`);
      await transaction.execute(sql`LOCK TABLE users IN ACCESS SHARE MODE`);
      const [own] = await transaction.execute<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`);
      await eventually(() => server.output().includes(`waits for PostgreSQL's process ${own?.pid}: `));
    });
    await server.ready();
    expect(await schemaVersion(db)).toBe(knownMigrations().length);
  });

  test('a wrong password and a server that is away are sentences without the password', async () => {
    const wrong = new URL(database.url);
    wrong.password = 'a wrong secret';
    const refused = await command(['org', 'list', '--data', data, '--database', wrong.href]);
    expectRefused(
      refused,
      `${place} does not let this user in: check the user and the password in the address, and pg_hba.conf.`,
    );
    const away = 'postgres://tds:secret@127.0.0.1:1/tds';
    expectRefused(
      await command(['org', 'list', '--data', data, '--database', away]),
      'postgres://127.0.0.1:1/tds cannot be reached: start the server or name another with --database.',
    );
  });

  test('an address without its two slashes, which may be a password, is refused and not quoted', async () => {
    for (const wrong of ['postgres:secret', 'postgresql:tds:secret@127.0.0.1/tds']) {
      const by_flag = await command(['org', 'list', '--data', data, '--database', wrong]);
      const by_variable = await command(['org', 'list', '--data', data], { env: { TDS_DATABASE: wrong } });
      for (const { stdout, stderr } of [by_flag, by_variable]) {
        expect(stdout).toBe('');
        expect(stderr).toContain(
          'cannot be this. It must be sqlite: (a file in the data directory) or an address',
        );
        expect(stderr).not.toContain('secret');
      }
      expect([by_flag.code, by_variable.code]).toEqual([2, 2]);
    }
  });

  test('the password comes from its variable, from the file of settings, or from PGPASSWORD', async () => {
    const address = new URL(database.url);
    const password = decodeURIComponent(address.password);
    address.password = '';
    const config = join(root.path, 'tds.toml');
    const settings = `[database]\naddress = "${address.href}"\npassword = "${password}"\n`;
    writeFileSync(config, settings, { mode: 0o600 });
    const list = ['org', 'list', '--data', data];
    const by_variable = { TDS_DATABASE: address.href, TDS_DATABASE_PASSWORD: password };
    expect(await command(list, { env: by_variable })).toMatchObject({ code: 0, stderr: '' });
    expect(await command([...list, '--config', config])).toMatchObject({ code: 0, stderr: '' });
    const by_libpq = { TDS_DATABASE: address.href, PGPASSWORD: password };
    expect(await command(list, { env: by_libpq })).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await command(['config', '--json', '--config', config], { env });
    expect(stdout).not.toContain(password);
    expect(stdout).not.toContain(encodeURIComponent(password));
    expect(field(JSON.parse(stdout), 'settings')).toContainEqual({
      setting: 'database.address',
      value: `postgres://tds:********@${new URL(place).host}/${database.name}`,
      unit: null,
      from: 'environment',
      variable: 'TDS_DATABASE',
    });
  });

  test('a server answers, is stopped, and goes on where it was', async () => {
    const organization = textField(await json('org', 'create', 'Served'), 'id');
    const project = textField(await json('project', 'create', organization, 'Web'), 'id');
    await json(
      'credit',
      'confirm',
      textField(await json('credit', 'checkout', organization, '25'), 'payment_id'),
    );
    const key = textField(await json('key', 'create', project, 'Robot'), 'key');
    const spent = async () => {
      const entries = await json('credit', 'history', organization);
      return Array.isArray(entries) ? entries.filter(({ kind }) => kind === 'charge').length : 0;
    };
    for (const start of [1, 2]) {
      await using server = await new ChildServer(data, ['--database', database.url]).ready();
      const response = await fetch(`${server.address}/v1/decisions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(SMALL_REQUEST),
      });
      expect(response.status).toBe(200);
      expectRefused(
        await run('serve', '--port', '0'),
        `Another server is running on ${data}: stop it, or name another directory with --data.`,
      );
      expect(await server.stop()).toBe(0);
      expect(server.releasedAtStart).toBe(0);
      expect(await spent()).toBe(start);
      expect((await run('usage', 'export')).stdout.trim().split('\n')).toHaveLength(start + 1);
    }
    expect(await json('audit')).toMatchObject({ ok: true, open_holds: 0 });
  });
});
