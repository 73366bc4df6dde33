import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { copiedTables } from '../../db/copied-tables.ts';
import type { PgDb } from '../../db/postgres/connection.ts';
import { consoleSecret as secretOfNodes } from '../../db/postgres/console-secret.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { NodeLease } from '../../db/postgres/node-lease.ts';
import { ledgerEntries, usageRecords } from '../../db/postgres/schema.ts';
import { openDatabase, transact } from '../../db/sqlite/connection.ts';
import { lockDataDirectory } from '../../db/sqlite/lock.ts';
import { apiKeys } from '../../db/sqlite/schema.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import { consoleSecret as secretOfDirectory } from '../../src/console/people/secret.ts';
import { usageOf } from '../ledger/support.ts';
import { copyInto } from '../support/copied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { isPostgresMissing, sharedPostgres, type TestDatabase, testDatabase } from '../support/postgres.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import {
  expectRefused,
  firstAsProcess,
  initializeData,
  tds,
  textField,
  withoutRootsRights,
} from './support.ts';

setDefaultTimeout(120_000);

describe.skipIf(isPostgresMissing())('tds database copy', () => {
  let root: ReturnType<typeof temporaryDirectory>;
  let data: string;
  let organization_id: string;
  let project_id: string;
  let postgres: TestDatabase;
  let db: PgDb;
  beforeEach(async () => {
    root = temporaryDirectory();
    data = join(root.path, 'data');
    const initialized = await initializeData(data);
    organization_id = textField(initialized, 'organization_id');
    project_id = textField(initialized, 'default_project_id');
    postgres = await testDatabase({ empty: true });
    ({ db } = await postgres.connect({ connections: 2 }));
  });
  afterEach(async () => {
    await postgres[Symbol.asyncDispose]();
    root.remove();
  });

  const { command, commandJson } = firstAsProcess();
  const copy = (from = data, to = postgres.url) => command(['database', 'copy', from, to]);
  const place = async () => `postgres://127.0.0.1:${(await sharedPostgres()).port}/${postgres.name}`;

  /** Resolves with true if no table but `program_versions` has a row. */
  async function isEmpty(): Promise<boolean> {
    const names = copiedTables()
      .map(({ name }) => name)
      .filter((name) => name !== 'program_versions');
    const rows = names.map((name) => `(SELECT count(*) FROM ${name})`).join(' + ');
    const [found] = await db.execute<{ rows: string }>(sql.raw(`SELECT ${rows} AS rows`));
    return found?.rows === '0';
  }

  /** Answered requests of the first organization, and one that nobody has ended. */
  function serveRequests(count: number): void {
    const opened = openDatabase(join(data, 'tds.sqlite'));
    const ledger = new SqliteLedger(opened);
    const usage = new UsageWriter(opened);
    const [key] = opened.select().from(apiKeys).all();
    const account = { organization_id, project_id, api_key_id: key?.id ?? '' };
    transact(opened, () => {
      for (let request = 0; request <= count; request += 1) {
        const request_id = `req_${request}`;
        const asked = { organization_id, project_id, request_id, amount_micros: 10, at_ms: 1_000 };
        const answer = ledger.hold(asked, 'proc_test');
        if (!answer.held) throw new Error(answer.refusal);
        if (request === count) return;
        ledger.charge(answer.hold, 4, 1_000);
        usage.record(usageOf(account, request_id, 1_000, 200, 4));
      }
    });
    opened.$client.close();
  }

  test('moves a box to PostgreSQL, and back', async () => {
    serveRequests(10);
    const { code, stdout, stderr } = await command([
      'database',
      'copy',
      'sqlite:',
      postgres.url,
      '--data',
      data,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('Released 1 holds that the last service left open.\n');
    expect(stdout).toEndWith(`${data} is as it was: start the service on PostgreSQL from now on.\n`);
    expect(await db.select().from(usageRecords)).toHaveLength(10);
    expect((await db.select().from(ledgerEntries)).filter(({ kind }) => kind === 'hold')).toHaveLength(10);
    const back = join(root.path, 'back');
    expect((await copy(postgres.url, `sqlite:${back}`)).code).toBe(0);
    expect((await command(['audit', '--data', back])).code).toBe(0);
    const list = ['org', 'list'];
    const [listed, ...copies] = [
      await commandJson([...list, '--data', data]),
      await commandJson([...list, '--data', back]),
      await commandJson([...list, '--database', postgres.url]),
    ];
    expect(copies).toEqual([listed, listed]);
  });

  test('takes along the secret of the console, there and back, so that sessions and second factors stay', async () => {
    const secret = secretOfDirectory(data);
    expect((await copy()).code).toBe(0);
    expect(await secretOfNodes(db)).toBe(secret);
    const back = join(root.path, 'back');
    expect((await copy(postgres.url, back)).code).toBe(0);
    expect(secretOfDirectory(back)).toBe(secret);
  });

  test('is refused where the target has another secret of the console, and copies nothing', async () => {
    const secret = secretOfDirectory(data);
    await bringUpToDate(db);
    const own = await secretOfNodes(db);
    const ends = 'which would end all sessions and make second factors unusable';
    expectRefused(
      await copy(),
      `The target has a console secret of its own, ${ends}: run "DELETE FROM service_secrets WHERE name = 'console'" on it.`,
    );
    expect(await isEmpty()).toBe(true);
    await db.execute(sql`DELETE FROM service_secrets WHERE name = 'console'`);
    expect((await copy()).code).toBe(0);
    expect(await secretOfNodes(db)).toBe(secret);
    const back = join(root.path, 'back');
    mkdirSync(back, { mode: 0o700 });
    secretOfDirectory(back, own);
    expectRefused(
      await copy(postgres.url, back),
      `The target has a console secret of its own, ${ends}: move ${join(back, 'console-secret')} away.`,
    );
    expect(secretOfDirectory(back)).toBe(own);
    expect(existsSync(join(back, 'tds.sqlite'))).toBe(false);
  });

  test('mixes nothing into data that is there', async () => {
    expect((await copy()).code).toBe(0);
    expectRefused(
      await copy(),
      'The target has data already, which a copy would mix with: name an empty one.',
    );
    expectRefused(
      await copy(postgres.url, data),
      'The target has data already, which a copy would mix with: name an empty one.',
    );
  });

  test('is refused beside a service on either side', async () => {
    const unclaim = lockDataDirectory(data);
    expectRefused(
      await tds(['database', 'copy', data, postgres.url]),
      `Another server is running on ${data}: stop it, or name another directory with --data.`,
    );
    unclaim();
    expect((await copy()).code).toBe(0);
    const pool = await postgres.connect({ connections: 2 });
    const events = { onProblem: () => undefined, onReleased: () => undefined };
    const node = await NodeLease.register(pool.db, { id: 'proc_node', version: 'test' }, events);
    expectRefused(
      await copy(postgres.url, join(root.path, 'back')),
      `A service runs on ${await place()}: stop it, and wait some seconds if it was killed.`,
    );
    await node.close();
    expect((await copy(postgres.url, join(root.path, 'back'))).code).toBe(0);
  });

  test('says what it does not copy, and makes nothing of it', async () => {
    const [none, other] = [join(root.path, 'none'), join(root.path, 'other')];
    expectRefused(await copy(none), `There is no data in ${none}: name a data directory.`);
    expectRefused(await copy(data, other), 'Both are SQLite: copy it with "tds backup" and "tds restore".');
    expectRefused(
      await copy(postgres.url, postgres.url),
      'Both are PostgreSQL: copy it with pg_dump and pg_restore.',
    );
    for (const address of ['postgres:secret', 'mysql://secret@host/name']) {
      expectRefused(
        await copy(data, address),
        'Name each side by a data directory, or by an address such as postgres://user@host:5432/name.',
      );
    }
    expect([existsSync(none), existsSync(other)]).toEqual([false, false]);
  });

  test.skipIf(withoutRootsRights === null)(
    'takes data that this user cannot read for no missing data',
    async () => {
      chmodSync(data, 0);
      expectRefused(
        await tds(['database', 'copy', data, postgres.url], { within: withoutRootsRights ?? [] }),
        `The data directory ${data} cannot be written (EACCES): give this user the right to write it or name another with --data.`,
      );
      chmodSync(data, 0o700);
    },
  );

  test('is refused with holds that nobody has ended in PostgreSQL', async () => {
    serveRequests(1);
    const opened = openDatabase(join(data, 'tds.sqlite'));
    await bringUpToDate(db);
    await copyInto(opened, db);
    opened.$client.close();
    expectRefused(
      await copy(postgres.url, join(root.path, 'back')),
      'The source has 1 open holds, which its last service left: start the service on it and stop it half a minute later, which releases them.',
    );
  });

  test('takes no books along that are not right', async () => {
    const opened = openDatabase(join(data, 'tds.sqlite'));
    opened.$client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
    opened.$client.close();
    expectRefused(
      await copy(),
      'The audit of the source finds a violation (balance_equals_ledger), whose rows "tds audit" names: keep this database and its backups, and see Backups in OPERATIONS.md.',
    );
    expect(await isEmpty()).toBe(true);
  });

  test('that is refused leaves no files of a new database, and those that were there', async () => {
    expect((await copy()).code).toBe(0);
    await db.execute(sql`UPDATE organizations SET credit_micros = credit_micros + 1`);
    const [made, empty] = [join(root.path, 'made'), join(root.path, 'empty')];
    mkdirSync(empty, { mode: 0o700 });
    writeFileSync(join(empty, 'note'), 'mine');
    // SQLite makes and removes two more, as connections come and go.
    const kept = () => readdirSync(data).filter((name) => !/-(shm|wal)$/.test(name));
    const before = kept().toSorted();
    for (const target of [made, empty, data]) expect((await copy(postgres.url, target)).code).toBe(1);
    expect(existsSync(made)).toBe(false);
    expect(readdirSync(empty).toSorted()).toEqual(['note', 'server.lock']);
    expect(kept().toSorted()).toEqual(before);
  });

  test('leaves a target empty that refuses a row, or counts another sum', async () => {
    serveRequests(3);
    expect((await copy()).code).toBe(0);
    for (const { name } of copiedTables().toReversed()) await db.execute(sql.raw(`DELETE FROM ${name}`));
    await db.execute(sql`ALTER TABLE trail_entries ADD CONSTRAINT none CHECK (false)`);
    expectRefused(await copy(), `${await place()} failed with the error 23514.`);
    expect(await isEmpty()).toBe(true);
    await db.execute(sql`ALTER TABLE trail_entries DROP CONSTRAINT none`);
    await db.execute(sql`CREATE FUNCTION shorter() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN NEW.name := left(NEW.name, 3); RETURN NEW; END $$`);
    await db.execute(sql`CREATE TRIGGER shorter BEFORE INSERT ON organizations
      FOR EACH ROW EXECUTE FUNCTION shorter()`);
    expectRefused(
      await copy(),
      'The copy of organizations is not the same as the source (name (bytes): 15 and 3).',
    );
    expect(await isEmpty()).toBe(true);
    await db.execute(sql`DROP TRIGGER shorter ON organizations`);
    expect((await copy()).code).toBe(0);
  });

  test.each(['SIGKILL', 'SIGTERM'] as const)('leaves nothing when it is stopped by %s', async (signal) => {
    serveRequests(6_000);
    expect((await copy(data, postgres.url)).code).toBe(0);
    for (const { name } of copiedTables().toReversed()) await db.execute(sql.raw(`DELETE FROM ${name}`));
    // Its rows come late, and each waits for this lock.
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await db.execute(sql`CREATE FUNCTION waiting() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$`);
    await db.execute(sql`CREATE TRIGGER waiting BEFORE INSERT ON usage_records
      FOR EACH STATEMENT EXECUTE FUNCTION waiting()`);
    const locked = Promise.withResolvers<void>();
    const lock = db.transaction(async (transaction) => {
      await transaction.execute(sql`SET LOCAL idle_in_transaction_session_timeout = 0`);
      await transaction.execute(sql`SELECT pg_advisory_xact_lock(1)`);
      locked.resolve();
      await released;
    });
    await locked.promise;
    const child = Bun.spawn([process.execPath, MAIN, 'database', 'copy', data, postgres.url], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const waits = sql`SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`;
    await eventually(async () => (await db.execute(waits)).length !== 0);
    child.kill(signal);
    if (signal === 'SIGKILL') await child.exited;
    release();
    await lock;
    expect(await child.exited).toBe(signal === 'SIGKILL' ? 137 : 143);
    const said = signal === 'SIGKILL' ? '' : 'tds: The copy was stopped: nothing is left of it.\n';
    expect(await new Response(child.stderr).text()).toBe(said);
    const others = sql`SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'tds' AND state LIKE '%transaction%'`;
    await eventually(async () => (await db.execute(others)).length === 0);
    expect(await isEmpty()).toBe(true);
    await db.execute(sql`DROP TRIGGER waiting ON usage_records`);
    expect((await copy()).code).toBe(0);
  });
});
