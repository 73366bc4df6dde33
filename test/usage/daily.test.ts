import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { transact } from '../../db/sqlite/connection.ts';
import { usageDays } from '../../db/sqlite/schema.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { UsageWriter } from '../../db/sqlite/usage-writer.ts';
import type { UsageFilter } from '../../src/store/usage-records.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { dailyUsage } from '../../src/usage/daily.ts';
import { addAccount, propertySeed, TemporaryDatabase, usageOf } from '../ledger/support.ts';

const START_MS = Date.UTC(2026, 1, 26);
const DAYS = 7;
const NAMES = ['acme', 'other'];

/** A request of an organization, some milliseconds after the start; rolled up, or a row still. */
interface Request {
  readonly name: string;
  readonly after_ms: number;
  readonly status: 200 | 502;
  readonly cost_micros: number;
  readonly is_rolled_up: boolean;
}

const request: fc.Arbitrary<Request> = fc.record({
  name: fc.constantFrom(...NAMES),
  // Also the first and the last millisecond of days.
  after_ms: fc.oneof(
    fc.nat({ max: DAYS * DAY_MS - 1 }),
    fc
      .tuple(fc.nat({ max: DAYS - 1 }), fc.constantFrom(0, DAY_MS - 1))
      .map(([day, rest]) => day * DAY_MS + rest),
  ),
  status: fc.constantFrom(200, 502),
  cost_micros: fc.nat({ max: 50 }),
  is_rolled_up: fc.boolean(),
});

const dayOf = (time_ms: number) => new Date(time_ms).toISOString().slice(0, 10);

/** Writes the requests: as usage rows, or as totals of their days. */
function write(database: TemporaryDatabase, requests: readonly Request[]): void {
  const accounts = new Map(NAMES.map((name) => [name, addAccount(database.db, name)]));
  const usage = new UsageWriter(database.db);
  transact(database.db, () => {
    for (const [number, { name, after_ms, status, cost_micros, is_rolled_up }] of requests.entries()) {
      const account = accounts.get(name);
      if (account === undefined) throw new Error(name);
      const cost = status === 200 ? cost_micros : 0;
      const row = usageOf(account, `req_${number}`, START_MS + after_ms, status, cost);
      if (!is_rolled_up) {
        usage.record(row);
        continue;
      }
      const { request_id: _request_id, time_ms, latency_ms: _latency_ms, ...group } = row;
      // A day of the table is one row: another key keeps these apart.
      const endpoint = `/v1/decisions/${number}`;
      database.db
        .insert(usageDays)
        .values({ ...group, endpoint, day: dayOf(time_ms), requests: 1 })
        .run();
    }
  });
}

/** The lines of the totals, without what tells rows and totals of the same day apart. */
async function totalsOf(store: SqliteStore, filter: UsageFilter): Promise<Map<string, [number, number]>> {
  let text = '';
  for await (const piece of dailyUsage(store.usage, filter)) {
    expect(piece).toEndWith('\r\n');
    text += piece;
  }
  const [, ...lines] = text.trimEnd().split('\r\n');
  const cells = lines.map((line) => line.split(','));
  const days = cells.map(([day = '']) => day);
  expect(days).toEqual(days.toSorted().reverse());
  const totals = new Map<string, [number, number]>();
  for (const [day = '', organization = '', , , , , , status = '', requests, , , cost] of cells) {
    const key = `${day} ${organization} ${status}`;
    const [known_requests, known_cost] = totals.get(key) ?? [0, 0];
    totals.set(key, [known_requests + Number(requests), known_cost + Math.round(Number(cost) * 1e6)]);
  }
  return totals;
}

test('the daily totals are the sums of each UTC day that was asked for, rolled up or not', async () => {
  const seed = propertySeed('daily usage');
  // Also the starts of days, before which nothing of the day is asked for.
  const bound = fc.option(
    fc.oneof(
      fc.nat({ max: DAYS * DAY_MS }),
      fc.nat({ max: DAYS }).map((day) => day * DAY_MS),
    ),
    { nil: undefined },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { maxLength: 40 }),
      fc.record({ organization: fc.constantFrom(null, ...NAMES), from: bound, to: bound }),
      async (requests, { organization, from, to }) => {
        using database = new TemporaryDatabase();
        write(database, requests);
        const filter: UsageFilter = {
          organization_id: organization === null ? null : `org_${organization}`,
          ...(organization === null
            ? {}
            : { project_id: `proj_${organization}`, api_key_id: `key_${organization}` }),
          from_ms: from === undefined ? undefined : START_MS + from,
          to_ms: to === undefined ? undefined : START_MS + to,
        };
        const expected = new Map<string, [number, number]>();
        for (const { name, after_ms, status, cost_micros } of requests) {
          const of_day = dayOf(START_MS + after_ms);
          if (organization !== null && name !== organization) continue;
          if (from !== undefined && of_day < dayOf(START_MS + from)) continue;
          if (to !== undefined && of_day > dayOf(START_MS + to - 1)) continue;
          const key = `${of_day} ${name} ${status}`;
          const [count, cost] = expected.get(key) ?? [0, 0];
          expected.set(key, [count + 1, cost + (status === 200 ? cost_micros : 0)]);
        }
        expect(await totalsOf(new SqliteStore(database.db), filter)).toEqual(expected);
      },
    ),
    { seed, numRuns: 60 },
  );
});

test('without usage there is the header only', async () => {
  using database = new TemporaryDatabase();
  expect(await totalsOf(new SqliteStore(database.db), { organization_id: null })).toEqual(new Map());
});
