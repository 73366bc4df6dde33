import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type ClusterLoad, type EndedRequest, simulateCluster } from '../../bench/capacity/cluster.ts';
import { ASSUMED_MACHINE, valueAt } from '../../bench/capacity/costs.ts';
import { Random, Shares } from '../../bench/capacity/random.ts';
import { Cores, GroupedFlush, RowLocks } from '../../bench/capacity/resources.ts';
import { VirtualTime } from '../../bench/capacity/virtual-time.ts';

/** How far a simulated mean may be from the formula's, for so many customers. */
const TOLERANCE = 0.05;
const CUSTOMERS = 400_000;
const WINDOW_MS = 60_000;

const LOADS = fc.record({
  nodes: fc.integer({ min: 1, max: 30 }),
  organizations: fc.integer({ min: 1, max: 50 }),
  skew: fc.double({ min: 0, max: 1.5, noNaN: true }),
  requests_per_s: fc.integer({ min: 1, max: 3_000 }),
  seconds: fc.constant(0.3),
  nodes_an_organization: fc.integer({ min: 1, max: 30 }),
  requests_per_minute: fc.integer({ min: 1, max: 200 }),
  machine: fc.record({
    cores: fc.integer({ min: 1, max: 8 }),
    round_trip_ms: fc.constantFrom(0, 0.3, 5),
    flush_ms: fc.constantFrom(0.1, 2),
    standby: fc.constantFrom(null, ASSUMED_MACHINE.standby),
    pooled_connections: fc.constantFrom(null, 1, 3),
    is_shared_with_nodes: fc.boolean(),
  }),
  seed: fc.nat(),
}) satisfies fc.Arbitrary<ClusterLoad>;

describe('a simulated cluster', () => {
  test('ends every request that arrives, whatever is short, and pays for each that was admitted', () => {
    fc.assert(
      fc.property(LOADS, (load) => {
        const { arrived, requests, database } = simulateCluster(load);
        expect(requests).toHaveLength(arrived);
        for (const request of requests) {
          const is_admitted = request.admitted_at_ms !== null;
          expect(request.hold_ms > 0).toBe(is_admitted);
          expect(request.charge_ms > 0).toBe(is_admitted);
        }
        const admitted = requests.filter(({ admitted_at_ms }) => admitted_at_ms !== null);
        expect(database.transactions).toBeLessThanOrEqual(2 * admitted.length);
        expect(database.lock_waits_ms).toHaveLength(database.transactions);
      }),
      { numRuns: 60 },
    );
  });

  test('admits of no organization more than its limit in any 60 seconds, and all that the limit allows', () => {
    const limit = 50;
    const { requests } = simulateCluster({
      nodes: 20,
      organizations: 3,
      skew: 1,
      requests_per_s: 30,
      seconds: 200,
      requests_per_minute: limit,
      is_windows_only: true,
    });
    for (const organization of [0, 1, 2]) {
      const most = mostInAMinute(requests.filter((request) => request.organization === organization));
      expect(most).toBe(limit);
    }
  });

  test('is the same for the same seed, and another for another', () => {
    const load = { nodes: 5, organizations: 20, skew: 1, requests_per_s: 500, seconds: 1 };
    const requestsOf = (seed: number) => simulateCluster({ ...load, seed }).requests;
    expect(requestsOf(7)).toEqual(requestsOf(7));
    expect(requestsOf(8)).not.toEqual(requestsOf(7));
  });
});

describe('cores below saturation agree with the queueing formulas within 5 %', () => {
  test.each([
    [1, 0.5],
    [1, 0.8],
    [4, 0.7],
    [16, 0.8],
  ])('M/M/%i, %d of them busy', (cores, utilisation) => {
    const random = new Random(1);
    const mean_ms = meanWait_ms(cores, utilisation, random, () => random.exponential(1));
    expect(relativeError(mean_ms, erlangC(cores, utilisation) / (cores * (1 - utilisation)))).toBeLessThan(
      TOLERANCE,
    );
  });

  test.each([0.5, 0.8])('M/D/1, %d of it busy', (utilisation) => {
    const mean_ms = meanWait_ms(1, utilisation, new Random(2), () => 1);
    expect(relativeError(mean_ms, utilisation / (2 * (1 - utilisation)))).toBeLessThan(TOLERANCE);
  });
});

describe('locks of rows', () => {
  test('have one holder at a time, in the order of asking, and nobody waits in a circle', () => {
    const rows = fc.uniqueArray(fc.nat(6), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(rows, { maxLength: 40 }), (transactions) => {
        const time = new VirtualTime();
        const locks = new RowLocks();
        const held = new Set<number>();
        const order: number[] = [];
        for (const [number, unsorted] of transactions.entries()) {
          const wanted = unsorted.toSorted((left, right) => left - right);
          locks.takeAll(wanted, () => {
            for (const row of wanted) {
              expect(held.has(row)).toBe(false);
              held.add(row);
            }
            order.push(number);
            time.after(1, () => {
              for (const row of wanted) held.delete(row);
              locks.giveBackAll(wanted);
            });
          });
        }
        time.run();
        expect(order.toSorted((left, right) => left - right)).toEqual(
          transactions.map((_, number) => number),
        );
        for (const row of [0, 1, 2, 3, 4, 5, 6]) {
          const alone = order.filter((number) => transactions[number]?.join() === `${row}`);
          expect(alone).toEqual(alone.toSorted((left, right) => left - right));
        }
      }),
    );
  });
});

test('commits that wait for the disk share the next flush', () => {
  const time = new VirtualTime();
  const disk = new GroupedFlush(time, 2);
  const done_ms: number[] = [];
  for (const at_ms of [0, 0.5, 1, 3]) time.after(at_ms, () => disk.flush(() => done_ms.push(time.now_ms)));
  time.run();
  expect(done_ms).toEqual([2, 4, 4, 6]);
  expect(disk.flushes).toBe(3);
});

test('shares follow the skew, and organizations are drawn by them', () => {
  const even = new Shares(10, 0, new Random(1));
  expect(even.of(1)).toBeCloseTo(0.1);
  const skewed = new Shares(100_000, 1, new Random(1));
  expect(skewed.of(1)).toBeCloseTo(1 / 12.09, 3);
  expect(skewed.of(2)).toBeCloseTo(skewed.of(1) / 2);
  const random = new Random(3);
  const counts = new Map<number, number>();
  for (let drawn = 0; drawn < CUSTOMERS; drawn += 1) {
    const organization = skewed.draw(random);
    counts.set(organization, (counts.get(organization) ?? 0) + 1);
  }
  expect(relativeError(Math.max(...counts.values()), CUSTOMERS * skewed.of(1))).toBeLessThan(TOLERANCE);
});

test('costs are the measured ones at the measured points, and lie on lines between and behind them', () => {
  const curve = [
    [1, 10],
    [3, 20],
    [5, 60],
  ] as const;
  expect([1, 2, 3, 4, 5, 6].map((count) => valueAt(curve, count))).toEqual([10, 15, 20, 40, 60, 80]);
});

/** The mean time that customers wait for a core, whose service takes 1 ms on average. */
function meanWait_ms(cores: number, utilisation: number, random: Random, service_ms: () => number): number {
  const time = new VirtualTime();
  const server = new Cores(time, cores);
  let waited_ms = 0;
  let left = CUSTOMERS;
  const arrive = () => {
    const arrived_ms = time.now_ms;
    const needed_ms = service_ms();
    server.run(needed_ms, () => {
      waited_ms += time.now_ms - arrived_ms - needed_ms;
    });
    left -= 1;
    if (left > 0) time.after(random.exponential(1 / (cores * utilisation)), arrive);
  };
  arrive();
  time.run();
  return waited_ms / CUSTOMERS;
}

/** The probability that a customer has to wait. */
function erlangC(servers: number, utilisation: number): number {
  const offered = servers * utilisation;
  let term = 1;
  let sum = 1;
  for (let count = 1; count < servers; count += 1) {
    term *= offered / count;
    sum += term;
  }
  const waiting = (term * offered) / servers / (1 - utilisation);
  return waiting / (sum + waiting);
}

function relativeError(value: number, expected: number): number {
  return Math.abs(value - expected) / expected;
}

/** The most requests that were admitted during any 60 seconds. */
function mostInAMinute(requests: readonly EndedRequest[]): number {
  const times = requests.flatMap(({ admitted_at_ms }) => admitted_at_ms ?? []).sort((a, b) => a - b);
  return Math.max(
    ...times.map(
      (from_ms) => times.filter((at_ms) => at_ms >= from_ms && at_ms < from_ms + WINDOW_MS).length,
    ),
  );
}
