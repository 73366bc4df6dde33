import { afterEach, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import fc from 'fast-check';
import { transact } from '../../db/sqlite/connection.ts';
import { SqliteMovementReader } from '../../db/sqlite/movement-reader.ts';
import { apiKeys, organizations } from '../../db/sqlite/schema.ts';
import { SqliteLedger } from '../../db/sqlite/sqlite-ledger.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { SqliteUsageReader } from '../../db/sqlite/usage-reader.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { creditMovements } from '../../src/payments/billing.ts';
import type { NamedUsageRow, UsagePlace } from '../../src/store/usage-records.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import { dayOf } from '../../src/time/days.ts';
import {
  exportOrganizationUsage,
  type OrganizationUsageFilter,
  usagePage,
  usageSeries,
  usageValues,
} from '../../src/usage/analytics.ts';
import { bucketsOf } from '../../src/usage/buckets.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { TestClock } from '../accounts/support.ts';
import {
  type Account,
  addAccount,
  addPayment,
  addProject,
  keyRow,
  propertySeed,
  pruningOf,
  TemporaryDatabase,
  usageOf,
} from '../ledger/support.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.UTC(2026, 4, 3);
const DAYS = 6;
const NOW_MS = Date.UTC(2026, 5, 2);
const MODELS = ['decision-1', 'decision-2'];
const ENDPOINTS = ['/v1/decisions', '/v1/systemone'];

/** Two organizations; the first has two projects, and two keys in the second one. */
class Setup extends TemporaryDatabase {
  readonly first = addAccount(this.db, 'acme');
  readonly other = addAccount(this.db, 'other');
  readonly accounts: readonly Account[];
  readonly ledger = new SqliteLedger(this.db);
  readonly usage = new UsageWriter(this.db);
  readonly context = {
    store: new SqliteStore(this.db),
    reader: new SqliteUsageReader(this.db),
    clock: new TestClock(NOW_MS),
  };
  readonly movements = { store: this.context.store, reader: new SqliteMovementReader(this.db) };
  #payments = 0;

  constructor() {
    super();
    addProject(this.db, this.first, 'proj_second');
    const inSecond = { ...this.first, project_id: 'proj_second' };
    const added = ['key_b', 'key_c'].map((api_key_id) => ({ ...inSecond, api_key_id }));
    for (const { api_key_id, project_id } of added) {
      this.db.insert(apiKeys).values(keyRow(api_key_id, project_id)).run();
    }
    this.accounts = [this.first, this.other, ...added];
    this.topUp(this.first, 1_000_000, START_MS);
    this.topUp(this.other, 1_000_000, START_MS);
  }

  topUp(account: Account, amount_micros: number, at_ms: number): void {
    const payment_id = `pay_${++this.#payments}`;
    transact(this.db, () => {
      addPayment(this.db, account, payment_id, 'top_up', amount_micros);
      const { organization_id } = account;
      this.ledger.topUp({ organization_id, amount_micros, payment_id, at_ms });
    });
  }

  refund(account: Account, amount_micros: number, at_ms: number): void {
    const payment_id = `pay_${++this.#payments}`;
    transact(this.db, () => {
      addPayment(this.db, account, payment_id, 'refund', amount_micros);
      this.ledger.refund({ organization_id: account.organization_id, amount_micros, payment_id, at_ms });
    });
  }

  /** A request as the service leaves it: a charge with its usage row, or a released hold with it. */
  request(row: UsageRow): void {
    const { request_id, organization_id, project_id, time_ms: at_ms, cost_micros } = row;
    transact(this.db, () => {
      const asked = { organization_id, project_id, request_id, amount_micros: cost_micros + 3, at_ms };
      const result = this.ledger.hold(asked, 'proc_test');
      if (!result.held) throw new Error(result.refusal);
      if (row.status === 200) this.ledger.charge(result.hold, cost_micros, at_ms);
      else this.ledger.release(result.hold);
      this.usage.record(row);
    });
  }

  balanceMicros(organization_id: string): number {
    const found = this.db.select().from(organizations).where(eq(organizations.id, organization_id)).get();
    return found?.credit_micros ?? Number.NaN;
  }

  async rows(filter: OrganizationUsageFilter, limit: number): Promise<NamedUsageRow[]> {
    const rows: NamedUsageRow[] = [];
    let after: UsagePlace | undefined;
    do {
      const page = await usagePage(this.context, OPERATOR, filter, { limit, after });
      expect(page.items.length).toBeLessThanOrEqual(limit);
      rows.push(...page.items);
      after = page.next ?? undefined;
    } while (after !== undefined);
    return rows;
  }
}

const opened: Setup[] = [];
afterEach(() => {
  for (const setup of opened.splice(0)) setup[Symbol.dispose]();
});

function open(): Setup {
  const setup = new Setup();
  opened.push(setup);
  return setup;
}

interface Event {
  readonly account: number;
  readonly after_ms: number;
  readonly kind: 'answered' | 'failed' | 'top_up' | 'refund';
  readonly amount: number;
  readonly model: string;
  readonly mode: 'fast' | 'consistent';
  readonly endpoint: string;
  readonly latency_ms: number;
}

const event: fc.Arbitrary<Event> = fc.record({
  account: fc.nat({ max: 3 }),
  after_ms: fc.oneof(
    fc.nat({ max: DAYS * DAY_MS - 1 }),
    fc
      .tuple(fc.nat({ max: DAYS - 1 }), fc.constantFrom(0, DAY_MS - 1))
      .map(([day, rest]) => day * DAY_MS + rest),
    // Many in a few minutes, so that several share a bucket and a millisecond.
    fc.nat({ max: 200 }).map((step) => 3 * DAY_MS + step * 1_000),
  ),
  kind: fc.constantFrom('answered', 'answered', 'answered', 'failed', 'top_up', 'refund'),
  amount: fc.nat({ max: 500 }),
  model: fc.constantFrom(...MODELS),
  mode: fc.constantFrom('fast', 'consistent'),
  endpoint: fc.constantFrom(...ENDPOINTS),
  latency_ms: fc.double({ min: 0, max: 1_000, noNaN: true }),
});

/** Mostly nothing, so that several filters together still leave requests. */
const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const bound = maybe(
  fc.oneof(
    fc.nat({ max: DAYS * DAY_MS }),
    fc.nat({ max: 4 * DAYS }).map((quarter) => quarter * 6 * HOUR_MS),
  ),
);

const history = fc.record({
  events: fc.array(event, { maxLength: 60 }),
  /** Everything admitted before is rolled up; from the middle of a day too. */
  rolled_up_before_ms: fc.option(fc.nat({ max: DAYS * DAY_MS }), { nil: undefined, freq: 2 }),
});

function write(setup: Setup, events: readonly Event[]): UsageRow[] {
  const rows: UsageRow[] = [];
  // The ledger's order is that of time.
  for (const [number, given] of events.toSorted((a, b) => a.after_ms - b.after_ms).entries()) {
    const account = setup.accounts[given.account] ?? setup.first;
    const at_ms = START_MS + given.after_ms;
    if (given.kind === 'top_up') setup.topUp(account, given.amount + 1, at_ms);
    else if (given.kind === 'refund') setup.refund(account, given.amount + 1, at_ms);
    else {
      const { model, mode, endpoint, latency_ms } = given;
      const status = given.kind === 'answered' ? 200 : 502 + (given.amount % 2);
      const row = {
        ...usageOf(account, `req_${number}`, at_ms, status, status === 200 ? given.amount : 0),
        ...{ model, mode, endpoint, latency_ms },
      };
      setup.request(row);
      rows.push(row);
    }
  }
  return rows;
}

const sumOf = <T>(items: readonly T[], of: (item: T) => number) =>
  items.reduce((sum, item) => sum + of(item), 0);

/** The least of the latencies that at least that share of them does not exceed. */
function rank(latencies: readonly number[], percent: number): number {
  const reached = latencies.filter(
    (least) => latencies.filter((other) => other <= least).length * 100 >= percent * latencies.length,
  );
  return Math.min(...reached);
}

test('series, totals, pages and export of a filter say the same, rolled up or not', async () => {
  const seed = propertySeed('usage analytics');
  const asked = fc.record({
    project_id: maybe(fc.constantFrom('proj_acme', 'proj_second', 'proj_other')),
    api_key_id: maybe(fc.constantFrom('key_acme', 'key_b')),
    model: maybe(fc.constantFrom(...MODELS)),
    mode: maybe(fc.constantFrom('fast' as const, 'consistent' as const)),
    endpoint: maybe(fc.constantFrom(...ENDPOINTS)),
    status: maybe(fc.constantFrom(200, 502, 503)),
    from: bound,
    to: bound,
    offset_minutes: fc.constantFrom(0, 120, -330, 840),
    limit: fc.integer({ min: 1, max: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(history, asked, async ({ events, rolled_up_before_ms }, given) => {
      using setup = new Setup();
      const all = write(setup, events);
      const before_ms = START_MS + (rolled_up_before_ms ?? 0);
      if (rolled_up_before_ms !== undefined) {
        await pruneUsage(pruningOf(setup.db), { before_ms, now_ms: NOW_MS });
      }
      const { from, to, offset_minutes, limit, ...equal } = given;
      fc.pre(from === undefined || to === undefined || from < to);
      fc.pre(to === undefined || to > 0);
      const { organization_id } = setup.first;
      const from_ms = from === undefined ? undefined : START_MS + from;
      const to_ms = to === undefined ? undefined : START_MS + to;
      const filter = { ...equal, organization_id, from_ms, to_ms };

      const isRolledUp = (row: UsageRow) => row.time_ms < before_ms;
      const expected = all.filter((row) => {
        const at_ms = isRolledUp(row) ? Date.parse(dayOf(row.time_ms)) + DAY_MS / 2 : row.time_ms;
        if (at_ms < (from_ms ?? 0) || at_ms >= (to_ms ?? NOW_MS)) return false;
        if (row.organization_id !== organization_id) return false;
        const columns = ['project_id', 'api_key_id', 'model', 'mode', 'endpoint', 'status'] as const;
        return columns.every((column) => given[column] === undefined || given[column] === row[column]);
      });
      const kept = expected
        .filter((row) => !isRolledUp(row))
        .sort((a, b) => b.time_ms - a.time_ms || (a.request_id < b.request_id ? 1 : -1));

      const rows = await setup.rows(filter, limit);
      expect(rows.map(({ request_id }) => request_id)).toEqual(kept.map(({ request_id }) => request_id));
      const csv = (
        await Array.fromAsync(await exportOrganizationUsage(setup.context, OPERATOR, filter))
      ).join('');
      const lines = csv.trimEnd().split('\r\n').slice(1);
      expect(lines.map((line) => line.split(',').at(-1))).toEqual(rows.map(({ request_id }) => request_id));

      const series = await usageSeries(setup.context, OPERATOR, { ...filter, offset_minutes });
      const { buckets, bucket_ms, totals } = series;
      expect(totals.requests).toBe(expected.length);
      expect(totals.rolled_up_requests).toBe(expected.length - kept.length);
      for (const column of ['questions', 'input_tokens', 'cost_micros'] as const) {
        expect(totals[column]).toBe(sumOf(expected, (row) => row[column]));
        expect(sumOf(buckets, (bucket) => bucket[column])).toBe(totals[column]);
      }
      for (const status of [200, 502, 503]) {
        const requests = expected.filter((row) => row.status === status).length;
        expect(totals.statuses.find((found) => found.status === status)?.requests ?? 0).toBe(requests);
      }
      expect(sumOf(buckets, ({ requests }) => requests)).toBe(totals.requests);

      expect(buckets.length).toBeLessThanOrEqual(402);
      expect(buckets[0]?.start_ms).toBeLessThanOrEqual(series.from_ms);
      for (const [index, bucket] of buckets.entries()) {
        expect(bucket.start_ms).toBe((buckets[0]?.start_ms ?? 0) + index * bucket_ms);
        const inside = kept.filter(
          ({ time_ms }) => time_ms >= bucket.start_ms && time_ms < bucket.start_ms + bucket_ms,
        );
        expect(bucket.requests - bucket.rolled_up_requests).toBe(inside.length);
        const answered = inside.filter(({ status }) => status === 200);
        const latencies = answered.map(({ latency_ms }) => latency_ms);
        expect(bucket.latency_ms).toEqual(
          latencies.length === 0
            ? null
            : { p50: rank(latencies, 50), p90: rank(latencies, 90), p99: rank(latencies, 99) },
        );
      }
    }),
    { seed, numRuns: 40 },
  );
}, 120_000);

test('every movement is in a list that adds up to the balance, whose charges are what the usage cost', async () => {
  const seed = propertySeed('credit movements');
  const limits = fc.integer({ min: 1, max: 9 });
  await fc.assert(
    fc.asyncProperty(history, limits, async ({ events, rolled_up_before_ms }, limit) => {
      using setup = new Setup();
      write(setup, events);
      if (rolled_up_before_ms !== undefined) {
        await pruneUsage(pruningOf(setup.db), { before_ms: START_MS + rolled_up_before_ms, now_ms: NOW_MS });
      }
      for (const { organization_id } of [setup.first, setup.other]) {
        const balance = setup.balanceMicros(organization_id);
        const charged = { organization_id, status: 200 };
        const { cost_micros, requests } = (await usageSeries(setup.context, OPERATOR, charged)).totals;
        for (const charges_by of ['request', 'day'] as const) {
          const ask = (question: { limit: number; before?: { entry_id: number; balance_micros: number } }) =>
            creditMovements(setup.movements, OPERATOR, { organization_id, charges_by, ...question });
          const whole = await ask({ limit: 1_000 });
          expect(whole.next).toBeNull();
          expect(sumOf(whole.items, (line) => line.amount_micros)).toBe(balance);
          const charged = whole.items.filter(({ charges }) => charges > 0);
          expect(sumOf(charged, (line) => -line.amount_micros)).toBe(cost_micros);
          expect(sumOf(charged, (line) => line.charges)).toBe(requests);
          const paged = [];
          for (let page = await ask({ limit }); ; page = await ask({ limit, before: page.next })) {
            paged.push(...page.items);
            if (page.next === null) break;
            expect(page.items).toHaveLength(limit);
          }
          expect(paged).toEqual([...whole.items]);
          let below = 0;
          for (const line of whole.items.toReversed()) {
            expect(line.balance_micros).toBe(below + line.amount_micros);
            below = line.balance_micros;
          }
          if (charges_by === 'request') continue;
          for (const [index, line] of charged.entries()) {
            const next = whole.items[whole.items.indexOf(line) + 1];
            if (next !== charged[index + 1] || next === undefined) continue;
            expect(dayOf(next.at_ms)).not.toBe(dayOf(line.at_ms));
          }
        }
      }
    }),
    { seed, numRuns: 40 },
  );
}, 120_000);

test('what can be filtered by is what the organization used, in that time', async () => {
  const setup = open();
  const { organization_id } = setup.first;
  setup.request({ ...usageOf(setup.first, 'req_1', START_MS, 200, 5), mode: 'consistent' });
  setup.request({ ...usageOf(setup.first, 'req_2', START_MS + 5 * DAY_MS, 503, 0), model: 'decision-2' });
  setup.request({ ...usageOf(setup.other, 'req_3', START_MS, 200, 5), model: 'decision-3' });
  await pruneUsage(pruningOf(setup.db), { before_ms: START_MS + DAY_MS, now_ms: NOW_MS });
  const endpoints = ['/v1/decisions'];
  expect(await usageValues(setup.context, OPERATOR, { organization_id })).toEqual({
    models: ['decision-1', 'decision-2'],
    modes: ['consistent', 'fast'],
    endpoints,
    statuses: [200, 503],
  });
  const given = { organization_id, from_ms: START_MS + DAY_MS };
  expect(await usageValues(setup.context, OPERATOR, given)).toEqual({
    models: ['decision-2'],
    modes: ['fast'],
    endpoints,
    statuses: [503],
  });
});

test("a request is found by its id, in its own organization's usage only", async () => {
  const setup = open();
  setup.request(usageOf(setup.first, 'req_1', START_MS, 200, 5));
  setup.request(usageOf(setup.first, 'req_2', START_MS, 200, 5));
  const filter = { organization_id: setup.first.organization_id, request_id: 'req_1' };
  expect(await setup.rows(filter, 9)).toMatchObject([{ request_id: 'req_1', project: 'proj_acme' }]);
  const { totals } = await usageSeries(setup.context, OPERATOR, filter);
  expect(totals).toMatchObject({ requests: 1, cost_micros: 5 });
  expect(await setup.rows({ ...filter, organization_id: setup.other.organization_id }, 9)).toEqual([]);
});

test('buckets are minutes or hours at local time or UTC days, and never narrower than a day that was rolled up', async () => {
  const setup = open();
  const { organization_id } = setup.first;
  setup.request(usageOf(setup.first, 'req_1', START_MS, 200, 5));
  const widths = async (from_ms: number, span_ms: number, offset_minutes = 0) => {
    const asked = { organization_id, from_ms, to_ms: from_ms + span_ms, offset_minutes };
    const { bucket_ms, buckets } = await usageSeries(setup.context, OPERATOR, asked);
    return [bucket_ms, buckets.length, (buckets[0]?.start_ms ?? 0) - from_ms];
  };
  const noon_ms = START_MS + DAY_MS / 2;
  expect(await widths(noon_ms, 4 * HOUR_MS)).toEqual([MINUTE_MS, 240, 0]);
  expect(await widths(noon_ms, 4 * HOUR_MS + 1)).toEqual([HOUR_MS, 5, 0]);
  expect(await widths(noon_ms, 10 * DAY_MS, 30)).toEqual([HOUR_MS, 241, -30 * MINUTE_MS]);
  expect(await widths(noon_ms, 11 * DAY_MS, 12 * 60)).toEqual([DAY_MS, 12, -DAY_MS / 2]);
  expect(await widths(noon_ms, 11 * DAY_MS)).toEqual([DAY_MS, 12, -DAY_MS / 2]);
  expect((await widths(noon_ms - 1_000 * DAY_MS, 1_000 * DAY_MS))[0]).toBe(3 * DAY_MS);
  await pruneUsage(pruningOf(setup.db), { before_ms: START_MS + DAY_MS, now_ms: NOW_MS });
  expect(await widths(noon_ms, 4 * HOUR_MS)).toEqual([DAY_MS, 1, -DAY_MS / 2]);
  expect(await widths(noon_ms + 1, 4 * HOUR_MS)).toEqual([MINUTE_MS, 241, -1]);
  expect(await widths(noon_ms - 4 * HOUR_MS, 4 * HOUR_MS)).toEqual([MINUTE_MS, 240, 0]);
});

test('whole UTC days have a bucket each that begins at their midnight, wherever they are seen from', () => {
  const seed = propertySeed('buckets of days');
  const zone = fc.integer({ min: -14 * 60, max: 14 * 60 });
  const days = fc.record({
    first: fc.integer({ min: 0, max: 40_000 }),
    count: fc.integer({ min: 11, max: 400 }),
  });
  fc.assert(
    fc.property(days, zone, ({ first, count }, offset_minutes) => {
      const span = { from_ms: first * DAY_MS, to_ms: (first + count) * DAY_MS, offset_minutes };
      const midnights = Array.from({ length: count }, (_, day) => (first + day) * DAY_MS);
      expect(bucketsOf(span, false)).toEqual({ width_ms: DAY_MS, starts_ms: midnights });
    }),
    { seed },
  );
});

test('a span without a beginning before its end, or an offset of no time zone, is refused', async () => {
  const setup = open();
  const { organization_id } = setup.first;
  const series = (given: object) => usageSeries(setup.context, OPERATOR, { organization_id, ...given });
  await expect(series({ from_ms: 5, to_ms: 5 })).rejects.toThrow(RangeError);
  await expect(series({ from_ms: 0.5, to_ms: 5 })).rejects.toThrow(RangeError);
  await expect(series({ to_ms: Number.MAX_SAFE_INTEGER })).rejects.toThrow(RangeError);
  await expect(series({ offset_minutes: 841 })).rejects.toThrow(RangeError);
  expect((await series({})).totals.requests).toBe(0);
});

test('members of any role see usage and movements, strangers do not learn of the organization', async () => {
  const setup = open();
  const { organization_id } = setup.first;
  const { accounts } = setup.context.store;
  const rules = (user_id: string) => {
    const actor = { kind: 'user', user_id } as const;
    return [
      () => usageSeries(setup.context, actor, { organization_id }),
      () => usagePage(setup.context, actor, { organization_id }, { limit: 1 }),
      () => usageValues(setup.context, actor, { organization_id }),
      () => exportOrganizationUsage(setup.context, actor, { organization_id }),
      () => creditMovements(setup.movements, actor, { organization_id, charges_by: 'day', limit: 1 }),
    ];
  };
  for (const id of ['usr_reader', 'usr_stranger']) {
    await accounts.insertUser({ id, email: `${id}@example.com`, name: id, created_at_ms: 0 });
  }
  await accounts.insertMember({ organization_id, user_id: 'usr_reader', role: 'reader', created_at_ms: 0 });
  for (const rule of rules('usr_reader')) await rule();
  for (const rule of rules('usr_stranger')) {
    await expect(rule()).rejects.toMatchObject({ code: 'not_found' });
  }
  expect(setup.db.select().from(organizations).all()).toHaveLength(2);
});
