import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { setImmediate } from 'node:timers/promises';
import type { Grouping } from '../../src/store/groupings.ts';
import type { MovementPlace } from '../../src/store/movement-reader.ts';
import type { SeriesQuestion } from '../../src/store/usage-reader.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { DAY_MS, type Event, KEYS, NOW_MS, rowsOf, START_MS } from './history.ts';

const organization_id = 'org_b';
const SPAN = { from_ms: START_MS, to_ms: START_MS + 6 * DAY_MS, offset_minutes: 0 };

/** An event of the first key, so that tests name only what they are about. */
const happened = (after_ms: number, values: Partial<Event> = {}): Event => ({
  key: 0,
  after_ms,
  kind: 'answered',
  amount: 10,
  model: 'decision-1',
  mode: 'fast',
  endpoint: '/v1/decisions',
  latency_ms: 1,
  id: 0,
  ...values,
});

describe.each(DATABASES)('long reads in $name', ({ open }) => {
  let database: OpenDatabase;
  beforeEach(async () => {
    database = await open();
  });
  afterEach(() => database.close());

  const write = (...events: Event[]) => database.insert(rowsOf(events));
  const rollUp = (before_ms: number, batch_requests = 500) =>
    pruneUsage(
      { store: database.store, continueAudit: () => true },
      { before_ms, now_ms: NOW_MS, batch_requests },
    );
  const series = (question: Partial<SeriesQuestion> = {}) =>
    database.usage.series({ organization_id, ...SPAN, ...question });

  test('a latency is that which the share of requests did not exceed, by nearest rank, in a bucket and in all', async () => {
    // 1 to 199 ms in two days; 0.99 times 100 is no whole number in binary.
    const latencies = Array.from({ length: 199 }, (_, index) => index + 1);
    await write(
      ...latencies.map((latency_ms, index) =>
        happened((index % 2) * DAY_MS + index, { latency_ms: latency_ms / 10, amount: index }),
      ),
    );
    const { buckets, totals } = await series({ to_ms: START_MS + 12 * DAY_MS });
    expect(totals).toMatchObject({ requests: 199, latency_ms: { p50: 10, p90: 18, p99: 19.8 } });
    // The odd ones, of which there are 100, and the even ones, of which there are 99.
    expect(buckets[0]).toMatchObject({ requests: 100, latency_ms: { p50: 9.9, p90: 17.9, p99: 19.7 } });
    expect(buckets[1]).toMatchObject({ requests: 99, latency_ms: { p50: 10, p90: 18, p99: 19.8 } });
    expect(buckets[2]).toMatchObject({ requests: 0, latency_ms: null, statuses: [] });
    expect(buckets).toHaveLength(12);
  });

  test('a request without an answer has no latency, because it may never have asked the model', async () => {
    const latency = { p50: 100, p90: 100, p99: 100 };
    await write(
      ...[1, 2, 3].map((time) => happened(time, { kind: 'failed', latency_ms: 0 })),
      ...[4, 5].map((time) => happened(time, { latency_ms: 100 })),
      happened(DAY_MS, { kind: 'failed', latency_ms: 0 }),
    );
    const { buckets, totals } = await series({ to_ms: START_MS + 12 * DAY_MS });
    expect(totals).toMatchObject({ requests: 6, latency_ms: latency });
    expect(buckets.slice(0, 2)).toMatchObject([
      { requests: 5, latency_ms: latency },
      { requests: 1, latency_ms: null },
    ]);
  });

  test('a day that was rolled up counts at its noon, and has no latencies', async () => {
    await write(happened(1), happened(2, { kind: 'failed' }), happened(DAY_MS), happened(0, { key: 5 }));
    await rollUp(START_MS + DAY_MS);
    const counted = { requests: 2, rolled_up_requests: 2, cost_micros: 10, latency_ms: null };
    expect((await series({ to_ms: START_MS + DAY_MS })).totals).toMatchObject({
      ...counted,
      statuses: [
        { status: 200, requests: 1 },
        { status: 502, requests: 1 },
      ],
    });
    expect((await series({ to_ms: START_MS + DAY_MS / 2 })).totals.requests).toBe(0);
    expect((await series({ from_ms: START_MS + DAY_MS / 2 + 1 })).totals.requests).toBe(1);
    const { buckets, bucket_ms } = await series({ offset_minutes: 840 });
    expect(bucket_ms).toBe(DAY_MS);
    expect(buckets.slice(0, 3).map(({ requests, latency_ms }) => [requests, latency_ms?.p50])).toEqual([
      [2, undefined],
      [1, 1],
      [0, undefined],
    ]);
  });

  test('the requests of a chart are grouped by any column, rolled up or not, and the smallest groups are one', async () => {
    const models = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    await write(
      happened(1, { model: 'a' }),
      ...models.flatMap((model, index) =>
        Array.from({ length: 9 - index }, (_, time) =>
          happened(DAY_MS + time, { model, kind: time === 0 ? 'failed' : 'answered', key: index % 2 }),
        ),
      ),
    );
    await rollUp(START_MS + DAY_MS);
    const grouped = async (group_by: Grouping) => {
      const { groups, buckets } = await series({ group_by });
      for (const [index, { requests, cost_micros }] of buckets.entries()) {
        const sumOf = (column: 'requests' | 'cost_micros') =>
          groups.reduce((sum, group) => sum + (group[column][index] ?? Number.NaN), 0);
        expect([sumOf('requests'), sumOf('cost_micros')]).toEqual([requests, cost_micros]);
      }
      return groups.map(({ value, requests }) => [value, ...requests.slice(0, 3)]);
    };
    expect(await grouped('model')).toEqual([
      ['a', 1, 9, 0],
      ['b', 0, 8, 0],
      ['c', 0, 7, 0],
      ['d', 0, 6, 0],
      ['e', 0, 5, 0],
      [null, 0, 7, 0],
    ]);
    expect(await grouped('status')).toEqual([
      ['200', 1, 35, 0],
      ['502', 0, 7, 0],
    ]);
    expect(await grouped('key')).toEqual([
      [KEYS[0]?.id ?? '', 1, 24, 0],
      [KEYS[1]?.id ?? '', 0, 18, 0],
    ]);
    expect(await grouped('mode')).toEqual([['fast', 1, 42, 0]]);
    expect((await series()).groups).toEqual([]);
  });

  test('a chart shows the part of its span that has requests, in buckets of which a curve is made', async () => {
    const hour_ms = DAY_MS / 24;
    const at_ms = 3 * DAY_MS + 7 * hour_ms;
    const asked = { fits_data: true, to_ms: START_MS + 7 * DAY_MS };
    await write(
      happened(DAY_MS, { model: 'early' }),
      ...Array.from({ length: 50 }, (_, index) => happened(at_ms + (index * hour_ms) / 50)),
    );
    const shown = await series({ ...asked, model: 'decision-1' });
    expect(shown.totals.requests).toBe(50);
    expect(shown.from_ms).toBeLessThanOrEqual(START_MS + at_ms);
    expect(shown.to_ms - shown.from_ms).toBeLessThan(1.5 * hour_ms);
    expect(shown.buckets.filter(({ requests }) => requests > 0).length).toBeGreaterThan(40);
    // The same filter without requests, and requests over the whole span, leave it as it is.
    const whole = { from_ms: START_MS, to_ms: asked.to_ms };
    expect(await series({ ...asked, model: 'none' })).toMatchObject(whole);
    expect(await series(asked)).toMatchObject(whole);
    // A day that was rolled up has no time within it.
    await rollUp(START_MS + 2 * DAY_MS);
    expect(await series(asked)).toMatchObject({ ...whole, bucket_ms: DAY_MS });
  });

  test('a span that is none is refused', async () => {
    for (const wrong of [{ to_ms: START_MS }, { from_ms: 0.5 }, { offset_minutes: 841 }]) {
      await expect(series(wrong)).rejects.toThrow(RangeError);
    }
  });

  test('what there is to filter by is each in its own order', async () => {
    await write(
      happened(0, { model: 'b', endpoint: '/2' }),
      happened(DAY_MS, { model: 'Z', mode: 'consistent' }),
      happened(2 * DAY_MS, { model: 'b', kind: 'failed' }),
      happened(3 * DAY_MS, { model: 'ä', key: 5 }),
    );
    await rollUp(START_MS + DAY_MS);
    expect(await database.usage.values({ organization_id })).toEqual({
      models: ['Z', 'b'],
      modes: ['consistent', 'fast'],
      endpoints: ['/2', '/v1/decisions'],
      statuses: [200, 502],
    });
    const from_ms = START_MS + DAY_MS / 2 + 1;
    expect((await database.usage.values({ organization_id, from_ms })).endpoints).toEqual(['/v1/decisions']);
    expect((await database.usage.values({ organization_id: null })).models).toEqual(['Z', 'b', 'ä']);
    expect((await database.usage.values({ organization_id: 'org_unknown' })).models).toEqual([]);
  });

  test('the spend of a key is the cost of its requests since a time, and of no other organization', async () => {
    expect(await database.usage.spendByKey(organization_id, 0)).toEqual([]);
    await write(
      happened(1),
      happened(2, { amount: 30 }),
      happened(3, { kind: 'failed' }),
      happened(DAY_MS, { key: 1, amount: 7 }),
      happened(DAY_MS, { key: 5, amount: 9 }),
    );
    const spend = (cost_micros: number) => [
      { api_key_id: KEYS[0]?.id ?? '', cost_micros },
      { api_key_id: KEYS[1]?.id ?? '', cost_micros: 7 },
    ];
    expect(await database.usage.spendByKey(organization_id, START_MS)).toEqual(spend(40));
    expect(await database.usage.spendByKey(organization_id, START_MS + 2)).toEqual(spend(30));
  });

  test('the first answer is the oldest request that succeeded, or the end of the first day that was rolled up', async () => {
    expect(await database.usage.firstAnswer_ms(organization_id)).toBeUndefined();
    await write(happened(5, { kind: 'failed' }), happened(7), happened(9), happened(DAY_MS, { key: 5 }));
    expect(await database.usage.firstAnswer_ms(organization_id)).toBe(START_MS + 7);
    await rollUp(START_MS + DAY_MS);
    expect(await database.usage.firstAnswer_ms(organization_id)).toBe(START_MS + DAY_MS - 1);
  });

  test('lines of movements join the charges of a day that follow each other, and go on after any page', async () => {
    const top_up = { kind: 'top_up', amount: 999 } as const;
    await write(
      happened(0, top_up),
      happened(1),
      happened(2, { key: 2 }),
      happened(3, { kind: 'refund', amount: 99 }),
      happened(4),
      happened(DAY_MS),
      happened(DAY_MS + 1),
    );
    const lines = async (charges_by: 'request' | 'day', limit: number) => {
      const found = [];
      let before: MovementPlace | undefined;
      while (true) {
        const { items, next } = await database.movements.movementLines({
          organization_id,
          charges_by,
          limit,
          before,
        });
        found.push(
          ...items.map((line) => [
            line.kind,
            line.amount_micros,
            line.balance_micros,
            line.charges,
            line.project_id,
          ]),
        );
        if (next === null) return found;
        before = next;
      }
    };
    const project = 'proj_org_b_x';
    const byDay = [
      ['charges', -20, 850, 2, project],
      ['charge', -10, 870, 1, project],
      ['refund', -100, 880, 0, null],
      ['charges', -20, 980, 2, null],
      ['top_up', 1_000, 1_000, 0, null],
    ];
    for (const limit of [1, 2, 5, 100]) expect(await lines('day', limit)).toEqual(byDay);
    for (const limit of [1, 3, 100]) expect(await lines('request', limit)).toHaveLength(7);
    await rollUp(START_MS + DAY_MS);
    // A day that was rolled up stands at the place of its project's last charge.
    expect(await lines('request', 2)).toEqual([
      ['charge', -10, 850, 1, project],
      ['charge', -10, 860, 1, project],
      ['charges', -20, 870, 2, project],
      ['refund', -100, 890, 0, null],
      ['charges', -10, 990, 1, 'proj_org_b_Y'],
      ['top_up', 1_000, 1_000, 0, null],
    ]);
  });

  test('a page of many charges that become one line is complete', async () => {
    await write(
      happened(0, { kind: 'top_up', amount: 99_999 }),
      ...Array.from({ length: 2_500 }, (_, index) => happened(1 + index)),
    );
    const page = await database.movements.movementLines({ organization_id, charges_by: 'day', limit: 1 });
    expect(page).toMatchObject({
      items: [{ charges: 2_500, amount_micros: -25_000, balance_micros: 75_000 }],
    });
    expect(page.next).toEqual({ entry_id: 3, balance_micros: 100_000 });
  }, 120_000);

  test('there are no lines of an organization that does not exist', async () => {
    const asked = { organization_id: 'org_unknown', charges_by: 'day', limit: 9 } as const;
    expect(await database.movements.movementLines(asked)).toEqual({ items: [], next: null });
  });

  test('each read sees one state while requests are rolled up and payments come in', async () => {
    const requests = 200;
    await write(
      happened(0, { kind: 'top_up', amount: 99_999 }),
      ...Array.from({ length: requests }, (_, index) => happened(1 + index * 60_000)),
    );
    let isDone = false;
    const paid = (async () => {
      for (let number = 0; !isDone; number += 1) {
        const payment_id = `pay_late_${number}`;
        const moved = { organization_id, amount_micros: 7, payment_id, at_ms: NOW_MS };
        await database.store.payments.insertPayment({
          ...{
            id: payment_id,
            organization_id,
            external_id: payment_id,
            amount_micros: 7,
            created_at_ms: NOW_MS,
          },
          ...{ provider: 'manual', kind: 'top_up', status: 'completed', settled_at_ms: NOW_MS },
          ...{ refunds_payment_id: null, created_by_user_id: null },
        });
        await database.store.ledger.topUp(moved);
      }
    })();
    const rolledUp = rollUp(START_MS + 6 * DAY_MS, 5).finally(() => {
      isDone = true;
    });
    let reads = 0;
    do {
      const { totals } = await series();
      expect(totals).toMatchObject({ requests, cost_micros: requests * 10 });
      const { items } = await database.movements.movementLines({
        organization_id,
        charges_by: 'day',
        limit: 10_000,
      });
      expect(items.at(-1)).toMatchObject({ kind: 'top_up', balance_micros: 100_000 });
      reads += 1;
      // SQLite answers before the event loop turns, and what happens meanwhile needs its turns.
      await setImmediate();
    } while (!isDone);
    await Promise.all([paid, rolledUp]);
    expect(reads).toBeGreaterThan(1);
  }, 120_000);
});
