import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import * as postgres from '../../db/postgres/audit.ts';
import { connectPostgres, type PgDb } from '../../db/postgres/connection.ts';
import { describePostgresError, FileUnread, sqlState } from '../../db/postgres/errors.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { runAudit } from '../../db/sqlite/audit.ts';
import { openDatabase, transact } from '../../db/sqlite/connection.ts';
import { type AuditOptions, GUARANTEES } from '../../src/maintenance/audit-checks.ts';
import { type AuditReport, formatAudit } from '../../src/store/audit-report.ts';
import { addPayment, CREDIT_MICROS, LedgerSetup, NOW_MS } from '../ledger/support.ts';
import { type CopiedPostgres, copiedToPostgres, copyInto } from '../support/copied-postgres.ts';
import { administer, isPostgresMissing, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { rejection } from '../support/rejection.ts';

/** SQLite's default. */
const PAGE_BYTES = 4_096;
/** As PostgreSQL is built. */
const POSTGRES_PAGE_BYTES = 8_192;

/** A database with every kind of history: a refund, a charged, a failed and a running request. */
async function history(): Promise<LedgerSetup> {
  const setup = new LedgerSetup();
  const { organization_id } = setup.account;
  const amount_micros = CREDIT_MICROS / 2;
  transact(setup.db, () => {
    addPayment(setup.db, setup.account, 'pay_2', 'refund', amount_micros);
    setup.ledger.refund({ organization_id, amount_micros, payment_id: 'pay_2', at_ms: 1 });
  });
  await setup.charge(await setup.hold('req_charged'), 'req_charged');
  await setup.release(await setup.hold('req_failed'), 'req_failed');
  await setup.hold('req_running');
  return setup;
}

function failed(setup: LedgerSetup, ended_before_ms?: number): string[] {
  const report = runAudit(setup.db, ended_before_ms === undefined ? {} : { ended_before_ms });
  return namesOfFailed(report);
}

function namesOfFailed(report: AuditReport): string[] {
  const names = report.checks.filter(({ violations }) => violations.length > 0).map(({ name }) => name);
  expect(report.ok).toBe(names.length === 0);
  return names;
}

test('a sound history passes, with the requests that are being served', async () => {
  using setup = await history();
  const report = runAudit(setup.db);
  expect(report).toMatchObject({ ok: true, open_holds: 1 });
  expect(formatAudit(report)).toEndWith('1 open holds\nThe audit is clean.');
});

/** The checks that see a wrong month of a key. */
const MONTH_CHECKS = ['project_months_equal_ledger', 'api_key_months_equal_ledger'];

/** Damage of every kind that no program of the service does, and the checks that must see it. */
const DAMAGE: readonly (readonly [what: string, sql: string, checks: readonly string[]])[] = [
  [
    'a wrong count of open holds',
    'UPDATE organizations SET open_holds = open_holds + 1',
    ['held_equals_open_holds'],
  ],
  [
    'credit that no entry explains',
    'UPDATE organizations SET credit_micros = credit_micros + 1',
    ['balance_equals_ledger'],
  ],
  [
    'payments that no entry explains',
    'UPDATE organizations SET paid_micros = paid_micros + 1',
    ['balance_equals_ledger'],
  ],
  [
    'payments without a time of the first',
    'UPDATE organizations SET first_paid_at_ms = NULL',
    ['paid_since_first_payment'],
  ],
  [
    'held credit that no hold explains',
    'UPDATE organizations SET held_micros = held_micros + 1',
    ['balance_equals_ledger', 'held_equals_open_holds'],
  ],
  [
    'a month that spent something else',
    'UPDATE project_months SET spent_micros = spent_micros + 1',
    MONTH_CHECKS,
  ],
  [
    'a month that holds something else',
    'UPDATE project_months SET held_micros = held_micros + 1',
    MONTH_CHECKS,
  ],
  [
    'a month of a project that spent something else than its keys',
    "UPDATE project_months SET spent_micros = spent_micros + 1 WHERE api_key_id = ''",
    ['project_months_equal_ledger'],
  ],
  [
    'a month of a project that holds something else than its keys',
    "UPDATE project_months SET held_micros = held_micros - 1 WHERE api_key_id = ''",
    ['project_months_equal_ledger'],
  ],
  [
    'a month of a project that is lost, and those of its keys are not',
    "DELETE FROM project_months WHERE api_key_id = ''",
    ['project_months_equal_ledger'],
  ],
  [
    'a month of an earlier version, without keys, that spent something else',
    `UPDATE ledger_entries SET api_key_id = NULL; DELETE FROM project_months WHERE api_key_id <> '';
      UPDATE project_months SET spent_micros = spent_micros + 1`,
    ['project_months_equal_ledger'],
  ],
  [
    'a month that counts for another key',
    "UPDATE project_months SET api_key_id = 'key_other' WHERE api_key_id <> ''",
    ['api_key_months_equal_ledger'],
  ],
  [
    'a charge for another key than its hold',
    "UPDATE ledger_entries SET api_key_id = 'key_other' WHERE kind = 'charge'",
    ['api_key_months_equal_ledger'],
  ],
  ['a month that is lost', 'DELETE FROM project_months', MONTH_CHECKS],
  [
    'a hold without a month',
    "UPDATE ledger_entries SET month = NULL WHERE request_id = 'req_running'",
    [...MONTH_CHECKS, 'entries_are_whole'],
  ],
  [
    'a charge above its hold',
    "UPDATE ledger_entries SET credit_delta_micros = -20, held_delta_micros = -20 WHERE kind = 'charge'",
    ['balance_equals_ledger', ...MONTH_CHECKS, 'hold_has_one_end', 'success_has_one_charge'],
  ],
  [
    'a second end of a hold',
    `DROP INDEX ledger_one_end_a_hold; INSERT INTO ledger_entries (organization_id, project_id, kind,
      credit_delta_micros, held_delta_micros, hold_entry_id, month, created_at_ms) SELECT organization_id, project_id,
      kind, credit_delta_micros, held_delta_micros, hold_entry_id, month, 0 FROM ledger_entries WHERE kind = 'charge'`,
    ['balance_equals_ledger', 'project_months_equal_ledger', 'hold_has_one_end'],
  ],
  [
    'a charge of another amount than the answer said',
    'UPDATE usage_records SET cost_micros = 3 WHERE status = 200',
    ['success_has_one_charge'],
  ],
  [
    'a charge without a usage row',
    'DELETE FROM usage_records WHERE status = 200',
    ['success_has_one_charge'],
  ],
  [
    'an answer that was never charged',
    "UPDATE usage_records SET status = 200, cost_micros = 4 WHERE request_id = 'req_failed'",
    ['success_has_one_charge'],
  ],
  [
    'a failed request that was charged',
    'UPDATE usage_records SET status = 502, questions = 0, cost_micros = 0',
    ['success_has_one_charge'],
  ],
  [
    'a hold that the balance could not cover',
    "UPDATE ledger_entries SET held_delta_micros = 600000 WHERE request_id = 'req_running'",
    ['balance_equals_ledger', 'held_equals_open_holds', ...MONTH_CHECKS, 'hold_was_covered'],
  ],
  [
    'a hold that is open after its request ended',
    `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status,
      questions, input_tokens, cost_micros, latency_ms)
      SELECT 'req_running', time_ms, organization_id, project_id, api_key_id, model, mode,
      endpoint, 502, 0, 0, 0, latency_ms FROM usage_records WHERE status = 502`,
    ['hold_ended_with_its_request'],
  ],
  ['a payment that was not entered', "UPDATE payments SET status = 'pending'", ['payment_has_one_entry']],
  [
    'a payment of another amount',
    'UPDATE payments SET amount_micros = amount_micros + 1',
    ['payment_has_one_entry'],
  ],
  ['a reference to nothing', "UPDATE payments SET created_by_user_id = 'user_none'", ['references_exist']],
  [
    'a payment of a project',
    "UPDATE ledger_entries SET project_id = 'proj_acme' WHERE kind = 'top_up'",
    ['entries_are_whole'],
  ],
  [
    'an end before its hold',
    `UPDATE ledger_entries SET id = 1000 WHERE request_id = 'req_charged';
      UPDATE ledger_entries SET hold_entry_id = 1000 WHERE kind = 'charge'`,
    ['hold_has_one_end'],
  ],
  [
    'a hold before the payment that covers it',
    "UPDATE ledger_entries SET id = 1000 WHERE kind = 'top_up'",
    ['hold_was_covered'],
  ],
  [
    'an old day whose usage was never charged',
    `INSERT INTO usage_days (organization_id, day, project_id, api_key_id, model, mode, endpoint, status, requests,
      questions, input_tokens, cost_micros)
      SELECT organization_id, '2026-01-01', project_id, api_key_id, model, mode, endpoint, status, 1, questions,
      input_tokens, cost_micros FROM usage_records WHERE status = 200`,
    ['days_equal_usage'],
  ],
  [
    'a note of an audit that the ledger does not have',
    `INSERT INTO audited_organizations (organization_id, credit_micros, held_micros, paid_micros)
      VALUES ('org_acme', 1, 0, 0)`,
    ['checkpoint_equals_ledger'],
  ],
];

test.each(DAMAGE)('the audit sees %s', async (_, sql, checks) => {
  using setup = await history();
  const client = setup.db.$client;
  client.run('PRAGMA foreign_keys = OFF');
  client.run('PRAGMA ignore_check_constraints = ON');
  for (const statement of sql.split(';')) client.run(statement);
  expect(failed(setup)).toEqual([...checks]);
});

describe.skipIf(isPostgresMissing())('in PostgreSQL', () => {
  let setup: LedgerSetup;
  let copy: CopiedPostgres;
  beforeAll(async () => {
    setup = await history();
    copy = await copiedToPostgres(setup.db);
  });
  afterAll(async () => {
    await copy[Symbol.asyncDispose]();
    setup[Symbol.dispose]();
  });
  const audit = (options?: AuditOptions) => postgres.runAudit(copy.db, options);

  test.each(DAMAGE)('the audit sees %s', async (_, sql, checks) => {
    const report = await copy.damaged(sql, (executor) => postgres.runAudit(executor));
    expect(namesOfFailed(report)).toEqual([...checks]);
  });

  test('a sound history passes, with the requests that are being served', async () => {
    const report = await audit();
    expect(report).toMatchObject({ ok: true, open_holds: 1, after_entry_id: 0 });
    expect(formatAudit(report)).toBe(formatAudit(runAudit(setup.db)));
  });

  test('a hold placed before the given time must have ended', async () => {
    expect(namesOfFailed(await audit({ ended_before_ms: NOW_MS }))).toEqual([]);
    expect(namesOfFailed(await audit({ ended_before_ms: NOW_MS + 1 }))).toEqual([
      'hold_ended_with_its_request',
    ]);
  });

  test('a violation names what it is about and by how much, as in SQLite', async () => {
    const damage = 'UPDATE organizations SET credit_micros = credit_micros + 1';
    using other = await history();
    other.db.$client.run(damage);
    expect(await copy.damaged(damage, (executor) => postgres.runAudit(executor))).toEqual(runAudit(other.db));
  });
});

describe.skipIf(isPostgresMissing())('in the files of PostgreSQL', () => {
  const SERVICE = 'service';
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await administer(server, `CREATE DATABASE ${SERVICE}`);
    using setup = await history();
    const connection = await connectPostgres(server.url(SERVICE), { connections: 2 });
    await bringUpToDate(connection.db);
    await copyInto(setup.db, connection.db);
    await connection.db.execute(sql`CREATE EXTENSION amcheck`);
    await connection.close();
  });
  afterAll(() => server.remove());

  async function withServer<T>(work: (db: PgDb) => Promise<T>): Promise<T> {
    const connection = await connectPostgres(server.url(SERVICE), { connections: 2 });
    try {
      return await work(connection.db);
    } finally {
      await connection.close();
    }
  }

  test.each(['ledger_organization_ends', 'usage_time', 'ledger_entries'])(
    'the audit sees a damaged page of %s',
    async (name) => {
      const path = await withServer(async (db) => {
        await db.execute(sql`CHECKPOINT`);
        const [row] = await db.execute<{ path: string }>(
          sql`SELECT current_setting('data_directory') || '/' || pg_relation_filepath(${name}) AS path`,
        );
        return row?.path ?? '';
      });
      await server.stop('fast');
      const content = readFileSync(path);
      // The root of an index is not its first page.
      const damaged = content.map((byte, place) =>
        place >= content.length - POSTGRES_PAGE_BYTES ? 0xa5 : byte,
      );
      writeFileSync(path, damaged);
      await server.start();
      const report = await withServer((db) => postgres.runAudit(db));
      expect(report).toMatchObject({ ok: false, checks: [{ name: 'file_is_sound' }] });
      expect(report.checks[0]?.violations).toEqual([
        { problem: expect.stringMatching(new RegExp(`^the (index|table) ${name}: `)) },
      ]);
      await server.stop('fast');
      writeFileSync(path, content);
      await server.start();
      expect((await withServer((db) => postgres.runAudit(db))).ok).toBe(true);
    },
  );

  test('an index of another kind is not checked, and an invalid one is a warning beside all checks', async () => {
    await withServer(async (db) => {
      const before = await postgres.runAudit(db);
      await db.execute(sql`CREATE INDEX of_somebody ON ledger_entries USING brin (id)`);
      const making = 'CREATE UNIQUE INDEX CONCURRENTLY half_made ON ledger_entries (kind)';
      expect(sqlState(await rejection(Promise.resolve(db.execute(making))))).toBe('23505');
      const { indexes_are_valid: guarantee } = GUARANTEES;
      const warning = { name: 'indexes_are_valid', guarantee, violations: [{ index: 'half_made' }] };
      expect(await postgres.runAudit(db)).toEqual({ ...before, warnings: [...before.warnings, warning] });
      await db.execute(sql`DROP INDEX of_somebody, half_made`);
      expect(await postgres.runAudit(db)).toEqual(before);
    });
  });

  test('what cannot be read for another reason than damage is named', async () => {
    await withServer(async (db) => {
      const waiting = await connectPostgres(server.url(SERVICE), { connections: 1 });
      await waiting.db.execute(sql`SET lock_timeout = '100ms'`);
      await db.transaction(async (transaction) => {
        await transaction.execute(sql`LOCK TABLE usage_records`);
        const error = await rejection(postgres.runAudit(waiting.db));
        expect(error).toBeInstanceOf(FileUnread);
        expect(describePostgresError('the place', error)).toBe(
          'the place is busy: try again when the other command is done (the table usage_records cannot be read).',
        );
      });
      await waiting.close();
    });
  });
});

test('there is damage that breaks each guarantee alone', () => {
  const alone = new Set(DAMAGE.filter(([, , checks]) => checks.length === 1).map(([, , [check]]) => check));
  const other = ['file_is_sound', 'organization_has_owner', 'indexes_are_valid'];
  expect(Object.keys(GUARANTEES).filter((name) => !alone.has(name))).toEqual(other);
});

test.each(['ledger_organization_ends', 'usage_time', 'ledger_entries'])(
  'the audit sees a damaged page of %s',
  async (name) => {
    using setup = await history();
    const client = setup.db.$client;
    const { rootpage } = client
      .query<{ rootpage: number }, [string]>('SELECT rootpage FROM sqlite_schema WHERE name = ?')
      .get(name) ?? { rootpage: 0 };
    client.run('PRAGMA wal_checkpoint(TRUNCATE)');
    const damaged = join(setup.directory, 'damaged.db');
    const content = readFileSync(setup.path);
    content.fill(0xa5, (rootpage - 1) * PAGE_BYTES, rootpage * PAGE_BYTES);
    writeFileSync(damaged, content);
    const db = openDatabase(damaged);
    expect(runAudit(db).checks.find((check) => check.name === 'file_is_sound')?.violations).not.toEqual([]);
    db.$client.close();
  },
);

test('a hold placed before the given time must have ended', async () => {
  using setup = await history();
  expect(failed(setup, NOW_MS)).toEqual([]);
  expect(failed(setup, NOW_MS + 1)).toEqual(['hold_ended_with_its_request']);
});

test('a violation names what it is about and by how much', async () => {
  using setup = await history();
  setup.db.$client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
  const text = formatAudit(runAudit(setup.db));
  expect(text).toContain('FAIL balance_equals_ledger');
  expect(text).toContain(
    `"organization_id":"${setup.account.organization_id}","credit_micros":499997,"ledger_credit_micros":499996`,
  );
  expect(text).toEndWith(
    'The audit FAILED: keep this database and its backups, and see Backups in OPERATIONS.md.',
  );
});
