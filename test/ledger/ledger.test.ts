import { expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { runAudit } from '../../db/sqlite/audit.ts';
import { type Db, transact } from '../../db/sqlite/connection.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { ledgerEntries, organizations, projectMonths, projects } from '../../db/sqlite/schema.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import { UnknownAccount } from '../../src/ledger/errors.ts';
import type { Hold } from '../../src/ledger/hold.ts';
import { type Account, addAccount, addPayment, PROCESS_ID, TemporaryDatabase, usageOf } from './support.ts';

const JANUARY_MS = Date.UTC(2026, 0, 31, 23, 59, 59, 999);

class Setup extends TemporaryDatabase {
  readonly account: Account = addAccount(this.db, 'acme');
  readonly ledger = new SqliteLedger(this.db);

  /** Pays the credit in. */
  pay(amount_micros: number, payment_id = 'pay_1'): void {
    const { organization_id } = this.account;
    transact(this.db, () => {
      addPayment(this.db, this.account, payment_id, 'top_up', amount_micros);
      this.ledger.topUp({ organization_id, amount_micros, payment_id, at_ms: 0 });
    });
  }

  ask(request_id: string, amount_micros: number, at_ms = JANUARY_MS) {
    const { organization_id, project_id } = this.account;
    const request = { organization_id, project_id, request_id, amount_micros, at_ms };
    return transact(this.db, () => this.ledger.hold(request, PROCESS_ID));
  }

  hold(request_id: string, amount_micros: number, at_ms = JANUARY_MS): Hold {
    const answer = this.ask(request_id, amount_micros, at_ms);
    if (!answer.held) throw new Error(answer.refusal);
    return answer.hold;
  }

  limit(spend_limit_micros: number | null): void {
    const { project_id } = this.account;
    this.db.update(projects).set({ spend_limit_micros }).where(eq(projects.id, project_id)).run();
  }
}

/** Everything that the ledger writes, to compare before and after. */
function stored(db: Db) {
  return {
    entries: db.select().from(ledgerEntries).all(),
    organizations: db.select().from(organizations).all(),
    months: db.select().from(projectMonths).all(),
  };
}

test('a refused hold writes nothing', () => {
  using setup = new Setup();
  setup.pay(10);
  setup.limit(5);
  const before = stored(setup.db);
  expect(setup.ask('req_1', 6)).toEqual({ held: false, refusal: 'project_spend_limit' });
  setup.limit(null);
  expect(setup.ask('req_1', 11)).toEqual({ held: false, refusal: 'insufficient_credit' });
  expect({ ...stored(setup.db) }).toEqual(before);
});

test('when limit and credit both refuse, the limit is named: it is checked first', () => {
  using setup = new Setup();
  setup.limit(5);
  expect(setup.ask('req_1', 6)).toEqual({ held: false, refusal: 'project_spend_limit' });
});

test('a project that spent its limit is refused even a hold of nothing, until the next UTC month', () => {
  using setup = new Setup();
  setup.pay(100);
  setup.limit(7);
  setup.ledger.charge(setup.hold('req_1', 7), 7, JANUARY_MS);
  expect(setup.ask('req_2', 0)).toEqual({ held: false, refusal: 'project_spend_limit' });
  expect(setup.hold('req_3', 7, JANUARY_MS + 1).month).toBe('2026-02');
});

test('a charge after midnight counts in the month of its hold', () => {
  using setup = new Setup();
  setup.pay(100);
  setup.ledger.charge(setup.hold('req_1', 9), 4, JANUARY_MS + 1);
  const { project_id } = setup.account;
  expect(setup.db.select().from(projectMonths).all()).toEqual([
    { project_id, month: '2026-01', spent_micros: 4, held_micros: 0 },
  ]);
});

test('a refund can bring the balance below zero, and then nothing can be held', () => {
  using setup = new Setup();
  setup.pay(10);
  setup.ledger.charge(setup.hold('req_1', 8), 8, JANUARY_MS);
  addPayment(setup.db, setup.account, 'pay_2', 'refund', 10);
  const { organization_id } = setup.account;
  setup.ledger.refund({ organization_id, amount_micros: 10, payment_id: 'pay_2', at_ms: 1 });
  expect(setup.db.select().from(organizations).get()).toMatchObject({ credit_micros: -8, paid_micros: 0 });
  expect(setup.ask('req_2', 0)).toEqual({ held: false, refusal: 'insufficient_credit' });
});

test('a payment is entered once: again, it changes nothing', () => {
  using setup = new Setup();
  setup.pay(10);
  const before = stored(setup.db);
  const { organization_id } = setup.account;
  const again = { organization_id, amount_micros: 10, payment_id: 'pay_1', at_ms: 2 };
  expect(() => setup.ledger.topUp(again)).toThrow('UNIQUE');
  expect(() => setup.ledger.refund(again)).toThrow('UNIQUE');
  expect(stored(setup.db)).toEqual(before);
});

test('costs and amounts that no honest caller gives are refused and change nothing', () => {
  using setup = new Setup();
  setup.pay(10);
  const hold = setup.hold('req_1', 5);
  const before = stored(setup.db);
  for (const cost of [-1, 6, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => setup.ledger.charge(hold, cost, 1)).toThrow(RangeError);
  }
  for (const amount of [-1, 0.5, Number.NaN, 2 ** 53])
    expect(() => setup.ask('req_2', amount)).toThrow(RangeError);
  expect(() => setup.pay(0, 'pay_2')).toThrow();
  expect(() => setup.ask('req_1', 1)).toThrow('UNIQUE');
  const unknown = { ...setup.account, request_id: 'req_3', amount_micros: 1, at_ms: 1 };
  expect(() => setup.ledger.hold({ ...unknown, project_id: 'proj_other' }, PROCESS_ID)).toThrow(
    UnknownAccount,
  );
  expect(() => setup.ledger.topUp({ ...unknown, organization_id: 'org_other', payment_id: 'pay_1' })).toThrow(
    UnknownAccount,
  );
  expect(stored(setup.db)).toEqual(before);
});

test("a project of another organization cannot spend this one's credit", () => {
  using setup = new Setup();
  setup.pay(10);
  const other = addAccount(setup.db, 'other');
  const { organization_id } = setup.account;
  const { project_id } = other;
  const request = { organization_id, project_id, request_id: 'req_1', amount_micros: 1, at_ms: 1 };
  expect(() => setup.ledger.hold(request, PROCESS_ID)).toThrow(UnknownAccount);
});

test('credit for exactly N requests gives exactly N successes among many parallel callers', async () => {
  using setup = new Setup();
  const [requests, cost, worst_case] = [500, 3, 10];
  const affordable = 137;
  setup.pay(affordable * cost + (worst_case - cost));
  const commits = new GroupCommit(setup.db);
  const usage = new UsageWriter(setup.db);
  const { organization_id, project_id } = setup.account;

  /** A client that asks again as long as it is only the holds of others that stand in its way. */
  async function client(request_id: string): Promise<'charged' | 'refused'> {
    for (let attempt = 0; ; attempt += 1) {
      const answer = await commits.run(() => {
        const asked = { organization_id, project_id, request_id: `${request_id}_${attempt}` };
        const request = { ...asked, amount_micros: worst_case, at_ms: JANUARY_MS };
        const result = setup.ledger.hold(request, PROCESS_ID);
        const { held_micros } = setup.db.select().from(organizations).get() ?? { held_micros: 0 };
        return { result, others_hold: held_micros > 0 };
      });
      if (answer.result.held) {
        const { hold } = answer.result;
        await commits.run(() => {
          setup.ledger.charge(hold, cost, JANUARY_MS);
          usage.record(usageOf(setup.account, `${request_id}_${attempt}`, JANUARY_MS, 200, cost));
        });
        return 'charged';
      }
      if (!answer.others_hold) return 'refused';
    }
  }

  const outcomes = await Promise.all(
    Array.from({ length: requests }, (_, number) => client(`req_${number}`)),
  );
  expect(outcomes.filter((outcome) => outcome === 'charged')).toHaveLength(affordable);
  expect(setup.db.select().from(organizations).get()).toMatchObject({
    credit_micros: worst_case - cost,
    held_micros: 0,
  });
  const { checks, open_holds } = runAudit(setup.db, { ended_before_ms: JANUARY_MS + 1 });
  expect(checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
  expect(open_holds).toBe(0);
});

test('holds that are all asked for at once never reserve more than the credit', async () => {
  using setup = new Setup();
  setup.pay(1_000);
  const commits = new GroupCommit(setup.db);
  const { organization_id, project_id } = setup.account;
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, number) => {
      const asked = { organization_id, project_id, request_id: `req_${number}` };
      const request = { ...asked, amount_micros: 10, at_ms: JANUARY_MS };
      return commits.run(() => setup.ledger.hold(request, PROCESS_ID));
    }),
  );
  expect(answers.map(({ held }) => held)).toEqual(answers.map((_, number) => number < 100));
});
