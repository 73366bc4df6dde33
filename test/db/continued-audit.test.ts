import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import * as postgres from '../../db/postgres/audit.ts';
import { PostgresRows } from '../../db/postgres/copied-rows.ts';
import { auditedAt_ms, continueAudit, runAudit } from '../../db/sqlite/audit.ts';
import { transact } from '../../db/sqlite/connection.ts';
import { SqliteRows } from '../../db/sqlite/copied-rows.ts';
import type { AuditReport, Violation } from '../../src/store/audit-report.ts';
import type { Hold } from '../../src/store/hold.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { addPayment, LedgerSetup, NOW_MS, propertySeed, pruningOf } from '../ledger/support.ts';
import { allRows, type CopiedPostgres, copiedToPostgres } from '../support/copied-postgres.ts';
import { isPostgresMissing } from '../support/postgres.ts';

/** An audit that goes on from a checkpoint finds in what is new all that a whole one finds. */

const REQUESTS_MAX = 12;
const NEXT_MONTH_MS = Date.UTC(2026, 5, 20);

type End = 'charge' | 'release' | 'open';
const end = fc.constantFrom<End>('charge', 'charge', 'release', 'open');

/**
 * Damage, as statements, to rows after the checkpoint. `$entry` is the last checked entry and `$row` the last checked
 * usage row.
 */
const DAMAGE: Readonly<Record<string, string>> = {
  credit: 'UPDATE organizations SET credit_micros = credit_micros + 1',
  held: 'UPDATE organizations SET held_micros = held_micros + 1',
  paid: 'UPDATE organizations SET paid_micros = paid_micros - 1',
  count: 'UPDATE organizations SET open_holds = open_holds + 1',
  month: 'UPDATE project_months SET spent_micros = spent_micros + 1',
  lost_month: 'DELETE FROM project_months',
  charge: `UPDATE ledger_entries SET credit_delta_micros = credit_delta_micros - 1 WHERE id > $entry AND kind = 'charge'`,
  hold: `UPDATE ledger_entries SET held_delta_micros = 5000000 WHERE id > $entry AND kind = 'hold'`,
  project: `UPDATE ledger_entries SET project_id = 'proj_none' WHERE id > $entry AND kind <> 'top_up'`,
  organization: `UPDATE ledger_entries SET organization_id = 'org_none' WHERE id > $entry`,
  ended_hold: `UPDATE ledger_entries SET hold_entry_id = 999999 + id WHERE id > $entry AND kind = 'charge'`,
  lost_entries: 'DELETE FROM ledger_entries WHERE id > $entry',
  second_end: `DROP INDEX ledger_one_end_a_hold; INSERT INTO ledger_entries (organization_id, project_id, kind,
    credit_delta_micros, held_delta_micros, hold_entry_id, month, created_at_ms) SELECT organization_id, project_id,
    kind, credit_delta_micros, held_delta_micros, hold_entry_id, month, 0 FROM ledger_entries
    WHERE kind = 'charge'`,
  usage_cost: 'UPDATE usage_records SET cost_micros = cost_micros + 1 WHERE rowid > $row AND status = 200',
  usage_status:
    'UPDATE usage_records SET status = 502, questions = 0, cost_micros = 0 WHERE rowid > $row AND status = 200',
  usage_key: "UPDATE usage_records SET api_key_id = 'key_none' WHERE rowid > $row",
  lost_usage: 'DELETE FROM usage_records WHERE rowid > $row',
  free_answer: `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status,
      questions, input_tokens, cost_micros, latency_ms)
    SELECT 'req_free', 1, organization_id, project_id, api_key_id, model, mode, endpoint,
    200, 1, 1, 7, 1.5 FROM usage_records LIMIT 1`,
  ended_request: `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status,
      questions, input_tokens, cost_micros, latency_ms)
    SELECT hold.request_id, 0, hold.organization_id, hold.project_id, 'key_acme', 'm',
    'fast', '/', 502, 0, 0, 0, 1.5 FROM ledger_entries AS hold WHERE kind = 'hold' AND NOT EXISTS (
      SELECT 1 FROM ledger_entries AS ended WHERE ended.hold_entry_id = hold.id) ON CONFLICT DO NOTHING`,
  payment: "UPDATE payments SET status = 'pending'",
  payment_amount: 'UPDATE payments SET amount_micros = amount_micros + 1',
  member: `INSERT INTO members (organization_id, user_id, role, created_at_ms) VALUES ('org_none', 'user_none', 'owner', 0)`,
};

class History extends LedgerSetup {
  #serial = 0;
  #open: Hold[] = [];

  async take(ends: readonly End[]): Promise<void> {
    for (const end of ends) {
      const request_id = `req_${++this.#serial}`;
      const hold = await this.hold(request_id);
      if (end === 'charge') await this.charge(hold, request_id);
      else if (end === 'release') await this.release(hold, request_id);
      else this.#open.push(hold);
    }
  }

  /** Ends what is open, so that it can be checked. */
  async endAll(): Promise<void> {
    for (const hold of this.#open.splice(0)) await this.books.release(hold, null);
  }

  topUp(): void {
    const payment_id = `pay_${++this.#serial}_more`;
    const { organization_id } = this.account;
    transact(this.db, () => {
      addPayment(this.db, this.account, payment_id, 'top_up', 5);
      this.ledger.topUp({ organization_id, amount_micros: 5, payment_id, at_ms: 1 });
    });
  }

  damage(sql: string): void {
    const { $client } = this.db;
    $client.run('PRAGMA foreign_keys = OFF');
    $client.run('PRAGMA ignore_check_constraints = ON');
    for (const statement of this.behindCheckpoint(sql).split(';')) $client.run(statement);
  }

  /** Damage of what comes after the checkpoint. */
  behindCheckpoint(sql: string): string {
    const { entry, row } = this.db.$client
      .query<{ entry: number; row: number }, []>(
        'SELECT last_entry_id AS entry, last_usage_row_id AS row FROM audit_checkpoints',
      )
      .get() ?? { entry: 0, row: 0 };
    return sql.replaceAll('$entry', String(entry)).replaceAll('$row', String(row));
  }
}

/** The violations by check, without what only a whole audit asks. */
function violationsOf({ checks }: AuditReport): Map<string, readonly Violation[]> {
  const found = checks.filter(({ violations }) => violations.length > 0);
  const byText = (one: Violation, other: Violation) =>
    JSON.stringify(one).localeCompare(JSON.stringify(other));
  return new Map(found.map(({ name, violations }) => [name, violations.toSorted(byText)]));
}

function without(violations: Map<string, readonly Violation[]>, name: string) {
  return new Map([...violations].filter(([key]) => key !== name));
}

/** Checks the history from its checkpoint on and as a whole, and that both find the same. Returns what they found. */
function expectSame(history: History, damage: readonly string[]): Map<string, readonly Violation[]> {
  const whole = violationsOf(runAudit(history.db));
  const continued = continueAudit(history.db, { now_ms: NOW_MS });
  const found = violationsOf(continued);
  // The two ask for references in different words.
  expect({ damage, found: without(found, 'references_exist') }).toEqual({
    damage,
    found: without(whole, 'references_exist'),
  });
  expect(found.has('references_exist')).toBe(whole.has('references_exist'));
  expect(continued.ok).toBe(whole.size === 0);
  return found;
}

/** Damages rows after the last clean audit. */
async function damaged(
  history: History,
  sample: Readonly<Sample>,
): Promise<Map<string, readonly Violation[]>> {
  await beforeDamage(history, sample);
  for (const name of sample.damage) history.damage(DAMAGE[name] ?? '');
  return expectSame(history, sample.damage);
}

/** A history that was checked up to some point, and has gone on since. */
async function beforeDamage(
  history: History,
  { checked, is_rolled_up, added }: Readonly<Sample>,
): Promise<void> {
  await history.take(checked);
  if (is_rolled_up) {
    await history.endAll();
    await pruneUsage(pruningOf(history.db), { before_ms: NOW_MS + 1, now_ms: NEXT_MONTH_MS });
  }
  expect(continueAudit(history.db, { now_ms: NOW_MS }).ok).toBe(true);
  await history.take(added);
  history.topUp();
}

interface Sample {
  checked: End[];
  is_rolled_up: boolean;
  added: End[];
  damage: string[];
}

const sample: fc.Arbitrary<Sample> = fc.record({
  checked: fc.array(end, { maxLength: REQUESTS_MAX }),
  is_rolled_up: fc.boolean(),
  added: fc.array(end, { maxLength: REQUESTS_MAX }),
  damage: fc.subarray(Object.keys(DAMAGE), { maxLength: 2 }),
});

test('what a whole audit finds in what is new, one that goes on finds too', async () => {
  await fc.assert(
    fc.asyncProperty(sample, async (sample) => {
      using history = new History();
      const found = await damaged(history, sample);
      // Only a clean audit moves the point that the next one goes on from.
      const again = violationsOf(continueAudit(history.db, { now_ms: NOW_MS }));
      expect(again).toEqual(found);
    }),
    { seed: propertySeed('continued audit'), numRuns: 60 },
  );
}, 300_000);

test.each(Object.keys(DAMAGE))('damage is found in what is new: %s', async (name) => {
  for (const is_rolled_up of [false, true]) {
    using history = new History();
    const found = await damaged(history, {
      checked: ['charge', 'release', 'open', 'charge'],
      is_rolled_up,
      added: ['charge', 'open', 'release', 'charge'],
      damage: [name],
    });
    expect(found.size).toBeGreaterThan(0);
  }
});

test.each(['ledger_days SET charged_micros = charged_micros', 'usage_days SET cost_micros = cost_micros'])(
  'totals of old days that were changed are found: %s + 1',
  async (change) => {
    using history = new History();
    await history.take(['charge', 'charge']);
    await pruneUsage(pruningOf(history.db), { before_ms: NOW_MS + 1, now_ms: NEXT_MONTH_MS });
    history.damage(`UPDATE ${change} + 1`);
    const continued = continueAudit(history.db, { now_ms: NOW_MS });
    expect([...violationsOf(continued).keys()]).toEqual(['days_equal_usage']);
  },
);

test('what was changed in what was checked before is found by a whole audit', async () => {
  using history = new History();
  await history.take(['charge', 'charge']);
  expect(continueAudit(history.db, { now_ms: NOW_MS }).ok).toBe(true);
  history.damage(`UPDATE ledger_entries SET credit_delta_micros = credit_delta_micros + 1 WHERE id = 3;
    UPDATE usage_records SET cost_micros = cost_micros - 1 WHERE request_id = 'req_1'`);
  expect(continueAudit(history.db, { now_ms: NOW_MS }).ok).toBe(true);
  expect([...violationsOf(runAudit(history.db)).keys()]).toEqual([
    'balance_equals_ledger',
    'project_months_equal_ledger',
    'api_key_months_equal_ledger',
    'checkpoint_equals_ledger',
  ]);
  expect(continueAudit(history.db, { now_ms: NOW_MS, whole: true }).ok).toBe(false);
});

test('a checkpoint that was changed is found', async () => {
  using history = new History();
  await history.take(['charge']);
  expect(continueAudit(history.db, { now_ms: NOW_MS }).ok).toBe(true);
  history.damage('UPDATE audited_organizations SET credit_micros = credit_micros + 1');
  expect([...violationsOf(continueAudit(history.db, { now_ms: NOW_MS })).keys()]).toContain(
    'balance_equals_ledger',
  );
  expect([...violationsOf(runAudit(history.db)).keys()]).toEqual(['checkpoint_equals_ledger']);
});

test('a whole audit writes only the sums that it changes, and forgets those of nothing', async () => {
  using history = new History();
  await history.take(['charge', 'charge']);
  const { $client } = history.db;
  const audit = () => {
    const before = changesOf();
    expect(continueAudit(history.db, { now_ms: NOW_MS, whole: true }).ok).toBe(true);
    return changesOf() - before;
  };
  const changesOf = () => $client.query<{ n: number }, []>('SELECT total_changes() AS n').get()?.n ?? 0;
  const kept = () => $client.query('SELECT * FROM audited_project_months ORDER BY month').all();
  audit();
  const [right] = kept();
  expect(kept()).toEqual([right]);
  const noting_the_checkpoint = audit();
  $client.run(`INSERT INTO audited_project_months (project_id, month, spent_micros, held_micros, api_key_id)
    SELECT id, '2020-01', 1, 0, 'key_none' FROM projects`);
  $client.run('UPDATE audited_project_months SET spent_micros = spent_micros + 1');
  expect(audit()).toBe(noting_the_checkpoint + 3);
  expect(kept()).toEqual([right]);
  expect(audit()).toBe(noting_the_checkpoint);
});

test('a hold that is open holds the checkpoint back, so that its release is seen', async () => {
  using history = new History();
  await history.take(['charge', 'open', 'charge']);
  expect(continueAudit(history.db, { now_ms: NOW_MS })).toMatchObject({ ok: true, open_holds: 1 });
  await history.endAll();
  expect(continueAudit(history.db, { now_ms: NOW_MS })).toMatchObject({ ok: true, after_entry_id: 3 });
  expect(continueAudit(history.db, { now_ms: NOW_MS })).toMatchObject({ ok: true, after_entry_id: 6 });
});

test('usage of a file that was rebuilt, and so has other numbers, is read from the beginning', async () => {
  using history = new History();
  await history.take(['charge', 'release', 'charge']);
  history.db.$client.run("DELETE FROM usage_records WHERE request_id = 'req_2'");
  expect(continueAudit(history.db, { now_ms: NOW_MS }).ok).toBe(true);
  history.db.$client.run('VACUUM');
  await history.take(['charge']);
  history.damage("UPDATE usage_records SET cost_micros = 3 WHERE request_id = 'req_4'");
  expect([...violationsOf(continueAudit(history.db, { now_ms: NOW_MS })).keys()]).toEqual([
    'success_has_one_charge',
  ]);
});

describe.skipIf(isPostgresMissing())('in PostgreSQL', () => {
  describe.each([false, true])('with old days rolled up: %p', (is_rolled_up) => {
    const sample: Sample = {
      checked: ['charge', 'release', 'open', 'charge'],
      is_rolled_up,
      added: ['charge', 'open', 'release', 'charge'],
      damage: [],
    };
    let history: History;
    let copy: CopiedPostgres;
    beforeAll(async () => {
      history = new History();
      await beforeDamage(history, sample);
      copy = await copiedToPostgres(history.db);
    });
    afterAll(async () => {
      await copy[Symbol.asyncDispose]();
      history[Symbol.dispose]();
    });

    test.each(Object.keys(DAMAGE))('damage is found in what is new as in SQLite: %s', async (name) => {
      const damage = DAMAGE[name] ?? '';
      const [whole, continued] = await copy.damaged(
        history.behindCheckpoint(damage).replaceAll('rowid', 'row_id'),
        async (executor) => [
          violationsOf(await postgres.runAudit(executor)),
          violationsOf(await postgres.continueAudit(executor, { now_ms: NOW_MS })),
        ],
      );
      using other = new History();
      const expected = await damaged(other, { ...sample, damage: [name] });
      // The databases ask for references in different words.
      for (const found of [whole, continued]) {
        expect(without(found, 'references_exist')).toEqual(without(expected, 'references_exist'));
        expect(found.has('references_exist')).toBe(expected.has('references_exist'));
      }
    });
  });

  test('a clean audit comes as far as one in SQLite, and notes the same', async () => {
    await fc.assert(
      fc.asyncProperty(sample, fc.boolean(), async (sample, whole) => {
        using history = new History();
        await beforeDamage(history, sample);
        await using copy = await copiedToPostgres(history.db);
        const options = { now_ms: NOW_MS + 1, whole };
        const expected = continueAudit(history.db, options);
        expect(await postgres.continueAudit(copy.db, options)).toEqual(expected);
        expect(await postgres.auditedAt_ms(copy.db)).toBe(auditedAt_ms(history.db));
        expect(auditedAt_ms(history.db)).toBe(options.now_ms);
        const [noted, expectedNotes] = [
          await allRows(new PostgresRows(copy.db, '')),
          await allRows(new SqliteRows(history.db)),
        ];
        for (const name of ['audited_organizations', 'audited_project_months'])
          expect(noted[name]).toEqual(expectedNotes[name]);
        // PostgreSQL never gives a number again, so that the request of a row need not be noted.
        const [checkpoint] = expectedNotes.audit_checkpoints ?? [];
        expect(noted.audit_checkpoints).toEqual([{ ...checkpoint, last_usage_request_id: null }]);
      }),
      { seed: propertySeed('checkpoint in PostgreSQL'), numRuns: 15 },
    );
  }, 300_000);
});
