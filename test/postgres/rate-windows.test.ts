import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import fc from 'fast-check';
import { connectPostgres, type PgConnection, type PgOptions } from '../../db/postgres/connection.ts';
import { bringUpToDate } from '../../db/postgres/migrate.ts';
import { PostgresRateWindows } from '../../db/postgres/rate-windows.ts';
import { LocalRateWindows, RateLimiter } from '../../src/limits/local-rate-windows.ts';
import type { RateLimits, RateRefusal } from '../../src/limits/rate-status.ts';
import type { RateWindows, TokenReservation } from '../../src/limits/rate-windows.ts';
import { QueuePerName } from '../../src/scheduling/queue-per-name.ts';
import { systemClock } from '../../src/time/clock.ts';
import { MovableClock } from '../support/clock.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { pausePostgres } from '../support/paused-postgres.ts';
import {
  isPostgresMissing,
  type PostgresServer,
  startPostgres,
  type TestDatabase,
} from '../support/postgres.ts';
import { nodeWindows } from '../support/rate-windows.ts';

setDefaultTimeout(120_000);

const WIDE = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000 };
/** Below the usual one: what hangs here hangs for ever. A new connection must be made in it on a busy machine. */
const ANSWER_MS = 1_500;

/** Two nodes of the database that have its own time. */
function realNodes(database: TestDatabase): readonly [PostgresRateWindows, PostgresRateWindows] {
  const node = () =>
    new PostgresRateWindows({
      connect: () => database.connect({ connections: 1 }),
      clock: systemClock,
      onProblem: (error) => {
        throw error;
      },
    });
  return [node(), node()];
}

/** The windows whose sums are not what their entries add up to. */
async function wrongSums({ db }: PgConnection): Promise<unknown[]> {
  const rows = await db.execute(sql`
    SELECT w.organization_id FROM rate_windows AS w
    LEFT JOIN (
      SELECT organization_id, sum(requests) AS requests, sum(tokens) AS tokens, min(at_us) AS oldest_us
      FROM rate_window_entries GROUP BY organization_id
    ) AS e ON e.organization_id = w.organization_id
    WHERE w.requests <> coalesce(e.requests, 0) OR w.tokens <> coalesce(e.tokens, 0)
      OR w.oldest_us <> coalesce(e.oldest_us, w.oldest_us)`);
  return [...rows];
}

/** Returns the values of the headers for an exhausted organization. */
function shown({ limit, retry_after_s, status }: RateRefusal) {
  const { limit_requests, remaining_requests, reset_requests_s } = status;
  return { limit, retry_after_s, limit_requests, remaining_requests, reset_requests_s };
}

const LIMITS: readonly RateLimits[] = [
  { requests_per_minute: 3, tokens_per_minute: 1_000 },
  { requests_per_minute: 8, tokens_per_minute: 500 },
  { requests_per_minute: 1, tokens_per_minute: 100_000 },
];

const request = fc.record({
  organization: fc.integer({ min: 0, max: 2 }),
  limits: fc.constantFrom(...LIMITS),
  tokens: fc.oneof(
    { weight: 1, arbitrary: fc.constant(0) },
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 700 }) },
  ),
});
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait'), ms: fc.integer({ min: 0, max: 25_000 }) }) },
  {
    weight: 6,
    // Requests that reach a node together go together.
    arbitrary: fc.record({
      kind: fc.constant('admit'),
      node: fc.nat({ max: 1 }),
      requests: fc.array(request, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle'),
      which: fc.nat(),
      billed: fc.oneof(fc.constant(0), fc.nat({ max: 700 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('status'), node: fc.nat({ max: 1 }), request }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('exhausted'), node: fc.nat({ max: 1 }), request }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('forget'), node: fc.nat({ max: 1 }) }) },
);

describe.skipIf(isPostgresMissing())('rate windows of several nodes', () => {
  let database: TestDatabase;
  let connection: PgConnection;
  beforeAll(async () => {
    database = await takeDatabase();
    connection = await database.connect({ connections: 4 });
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test('two nodes decide together as one process would, request by request and header by header', async () => {
    const clock = MovableClock.stopped();
    const nodes = [nodeWindows(database, clock), nodeWindows(database, clock)];
    const nodeOf = (index: number): RateWindows => {
      const node = nodes[index];
      if (node === undefined) throw new Error('there is no such node');
      return node;
    };
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
        run += 1;
        const model: RateWindows = new LocalRateWindows(new RateLimiter(), clock);
        const nameOf = (organization: number) => `org_${run}_${organization}`;
        const open: (readonly [TokenReservation, TokenReservation])[] = [];
        for (const taken of steps) {
          if (taken.kind === 'wait') clock.advance(taken.ms);
          if (taken.kind === 'admit') {
            const admitted = async (windows: RateWindows) =>
              await Promise.all(
                taken.requests.map(({ organization, limits, tokens }) =>
                  windows.admit(nameOf(organization), limits, tokens),
                ),
              );
            const [expected, found] = [await admitted(model), await admitted(nodeOf(taken.node))];
            for (const [index, admission] of found.entries()) {
              const right = expected[index];
              if (right === undefined) throw new Error('the model gave too few answers');
              if (admission.admitted && right.admitted) {
                expect(admission.status).toEqual(right.status);
                open.push([right.reservation, admission.reservation]);
              } else if (!admission.admitted && !right.admitted && right.limit === 'requests')
                expect(shown(admission)).toEqual(shown(right));
              else expect(admission).toEqual(right);
            }
          }
          if (taken.kind === 'settle' && open.length > 0) {
            const [pair] = open.splice(taken.which % open.length, 1);
            await Promise.all((pair ?? []).map((reservation) => reservation.settle(taken.billed)));
          }
          if (taken.kind === 'status') {
            const { organization, limits } = taken.request;
            const status = await nodeOf(taken.node).status(nameOf(organization), limits);
            expect(status).toEqual(await model.status(nameOf(organization), limits));
          }
          if (taken.kind === 'exhausted') {
            const { organization, limits } = taken.request;
            const found = await nodeOf(taken.node).exhausted(nameOf(organization), limits);
            const right = await model.exhausted(nameOf(organization), limits);
            // A node may not know yet; what it says is right.
            if (found !== null) expect(right === null ? null : shown(right)).toEqual(shown(found));
          }
          if (taken.kind === 'forget') await nodeOf(taken.node).forgetIdle();
        }
        expect(await wrongSums(connection)).toEqual([]);
      }),
      { numRuns: 60 },
    );
    await Promise.all(nodes.map((node) => node.close()));
  });

  test('of many requests at once on two nodes, exactly as many are admitted as are allowed', async () => {
    const nodes = realNodes(database);
    const callers = 64;
    const each = 25;
    const requests = { requests_per_minute: 700, tokens_per_minute: 1_000_000_000 };
    const tokens = { requests_per_minute: 1_000_000, tokens_per_minute: 7_003 };
    const counts = { requests: 0, tokens: 0 };
    await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        const node = nodes[caller % 2] ?? nodes[0];
        for (let asked = 0; asked < each; asked += 1) {
          const [by_requests, by_tokens] = await Promise.all([
            node.admit('org_hot_requests', requests, 10),
            node.admit('org_hot_tokens', tokens, 7),
          ]);
          if (by_requests.admitted) counts.requests += 1;
          if (by_tokens.admitted) counts.tokens += 1;
        }
      }),
    );
    expect(counts).toEqual({ requests: 700, tokens: 1_000 });
    const [one, other] = nodes;
    // Token refusals count as requests, on whichever node they were.
    expect(await one.status('org_hot_tokens', tokens)).toMatchObject({
      remaining_requests: 1_000_000 - callers * each,
      remaining_tokens: 3,
    });
    expect(await wrongSums(connection)).toEqual([]);
    await Promise.all([one.close(), other.close()]);
  });

  test('settlements of two nodes at once all count', async () => {
    const nodes = realNodes(database);
    await Promise.all(
      Array.from({ length: 400 }, async (_, caller) => {
        const node = nodes[caller % 2] ?? nodes[0];
        const admission = await node.admit(`org_settled_${caller % 5}`, WIDE, 1_000);
        if (admission.admitted) await admission.reservation.settle(caller % 3);
      }),
    );
    const billed = Array.from({ length: 400 }, (_, caller) => caller % 3).reduce(
      (sum, tokens) => sum + tokens,
    );
    const standings = await Promise.all(
      Array.from({ length: 5 }, (_, index) => nodes[0].status(`org_settled_${index}`, WIDE)),
    );
    const left = standings.reduce((sum, { remaining_tokens }) => sum + remaining_tokens, 0);
    expect(5 * WIDE.tokens_per_minute - left).toBe(billed);
    expect(await wrongSums(connection)).toEqual([]);
    await Promise.all(nodes.map((node) => node.close()));
  });

  test("a database's clock that is set back neither empties a window nor stops it", async () => {
    const limits = { requests_per_minute: 2, tokens_per_minute: 1_000 };
    const clock = MovableClock.stopped();
    let set_back_ms = 0;
    const node = new PostgresRateWindows({
      connect: () => database.connect({ connections: 1 }),
      clock,
      onProblem: (error) => {
        throw error;
      },
      time_us: () => (clock.monotonic_ms() - set_back_ms) * 1_000,
    });
    await node.admit('org_back', limits, 1);
    clock.advance(20_000);
    await node.admit('org_back', limits, 1);
    set_back_ms = 3_600_000;
    expect((await node.admit('org_back', limits, 1)).admitted).toBe(false);
    clock.advance(40_000);
    expect((await node.admit('org_back', limits, 1)).admitted).toBe(true);
    expect((await node.admit('org_back', limits, 1)).admitted).toBe(false);
    clock.advance(20_000);
    expect((await node.admit('org_back', limits, 1)).admitted).toBe(true);
    await node.close();
  });

  test('what a node that died counted leaves by time, and empty windows take no room', async () => {
    await using own = await takeDatabase();
    const { db } = await own.connect();
    const clock = MovableClock.stopped();
    const [dies, lives] = [nodeWindows(own, clock), nodeWindows(own, clock)];
    const limits = { requests_per_minute: 1, tokens_per_minute: 100 };
    await dies.admit('org_1', limits, 100);
    await dies.admit('org_2', limits, 100);
    expect((await lives.admit('org_1', limits, 1)).admitted).toBe(false);
    clock.advance(60_000);
    expect((await lives.admit('org_1', limits, 1)).admitted).toBe(true);
    await lives.forgetIdle();
    const left = sql`SELECT (SELECT count(*) FROM rate_windows)::int AS windows,
      (SELECT count(*) FROM rate_window_entries)::int AS entries`;
    expect([...(await db.execute(left))]).toEqual([{ windows: 1, entries: 1 }]);
    clock.advance(60_000);
    await lives.forgetIdle();
    expect([...(await db.execute(left))]).toEqual([{ windows: 0, entries: 0 }]);
    await Promise.all([dies.close(), lives.close()]);
  });

  test('entries are deleted as they leave: an organization that is always busy keeps a minute of them', async () => {
    await using own = await takeDatabase();
    const { db } = await own.connect();
    const clock = MovableClock.stopped();
    const node = nodeWindows(own, clock);
    for (let second = 0; second < 200; second += 1) {
      await node.admit('org_busy', WIDE, 1);
      clock.advance(1_000);
    }
    const [row] = await db.execute(sql`SELECT count(*)::int AS entries FROM rate_window_entries`);
    expect(row).toEqual({ entries: 60 });
    await node.close();
  });

  describe('when the database does not answer', () => {
    const DEADLINE_MS = 30_000;
    const BURST = 40;

    interface Backend {
      readonly pid: number;
      readonly is_waiting: boolean;
    }

    /** The server process of a node's connection, once it is as it should be. */
    async function backendOf(
      { db }: PgConnection,
      application_name: string,
      is_right: (backend: Backend) => boolean = () => true,
    ): Promise<number> {
      const deadline_ms = performance.now() + DEADLINE_MS;
      while (performance.now() < deadline_ms) {
        const [row] = await db.execute(
          sql`SELECT pid, wait_event_type IS NOT DISTINCT FROM 'Lock' AS is_waiting FROM pg_stat_activity
            WHERE application_name = ${application_name}`,
        );
        const backend = { pid: Number(row?.pid), is_waiting: row?.is_waiting === true };
        if (row !== undefined && is_right(backend)) return backend.pid;
      }
      throw new Error('the server process did not get there');
    }

    function impatientNode(
      application_name: string,
      { on = database, problems = [] }: { on?: Pick<TestDatabase, 'connect'>; problems?: unknown[] } = {},
    ): PostgresRateWindows {
      return new PostgresRateWindows({
        connect: () => on.connect({ connections: 1, application_name }),
        clock: systemClock,
        onProblem: (error) => problems.push(error),
        answer_ms: ANSWER_MS,
      });
    }

    /** Runs `work` while nobody else can have the organization's row. */
    async function locked(organization_id: string, work: () => Promise<void>): Promise<void> {
      await connection.db.transaction(async (transaction) => {
        await transaction.execute(
          sql`SELECT requests FROM rate_windows WHERE organization_id = ${organization_id} FOR UPDATE`,
        );
        await work();
      });
    }

    test('a connection that is cut off fails what was under way, and the next request has a new one', async () => {
      const node = impatientNode('cut off');
      await node.admit('org_cut', WIDE, 1);
      await locked('org_cut', async () => {
        const waiting = Promise.allSettled([node.admit('org_cut', WIDE, 1)]);
        const backend = await backendOf(connection, 'cut off', ({ is_waiting }) => is_waiting);
        await connection.db.execute(sql`SELECT pg_terminate_backend(${backend}::int)`);
        expect((await waiting).map(({ status }) => status)).toEqual(['rejected']);
      });
      const { status } = await node.admit('org_cut', WIDE, 1);
      expect(status.remaining_requests).toBe(WIDE.requests_per_minute - 2);
      await node.close();
    });

    test('a row that stays locked refuses in bounded time, and other organizations go on', async () => {
      const problems: unknown[] = [];
      const node = impatientNode('locked', { problems });
      const before = await node.admit('org_locked', WIDE, 10);
      await locked('org_locked', async () => {
        await expect(node.admit('org_locked', WIDE, 1)).rejects.toThrow('took too long');
        expect((await node.admit('org_free', WIDE, 1)).admitted).toBe(true);
        if (before.admitted) await before.reservation.settle(5);
      });
      expect(problems.length).toBe(1);
      expect((await node.admit('org_locked', WIDE, 1)).admitted).toBe(true);
      await node.close();
    });

    test('idle windows are not waited for without a bound where no connection comes', async () => {
      const allowed = Promise.withResolvers<void>();
      const opened = Promise.withResolvers<PgConnection>();
      const windows = new PostgresRateWindows({
        connect: async () => {
          await allowed.promise;
          const late = await database.connect({ connections: 1, application_name: 'late' });
          opened.resolve(late);
          return late;
        },
        clock: systemClock,
        onProblem: () => undefined,
        answer_ms: ANSWER_MS,
      });
      expect(windows.forgetIdle()).rejects.toThrow('connecting took too long');
      await windows.forgetIdle().catch(() => undefined);
      // The connections that come after all are not kept.
      allowed.resolve();
      await opened.promise;
      const late = sql`SELECT pid FROM pg_stat_activity WHERE application_name = 'late'`;
      await eventually(async () => (await connection.db.execute(late)).length === 0);
    });

    test('a server process that hangs refuses in bounded time, also those who wait behind it', async () => {
      const node = impatientNode('hangs');
      await node.admit('org_hangs', WIDE, 1);
      const backend = await backendOf(connection, 'hangs');
      process.kill(backend, 'SIGSTOP');
      try {
        const first = node.admit('org_hangs', WIDE, 1);
        for (let turn = 0; turn < 3; turn += 1) await new Promise((resume) => setImmediate(resume));
        const outcomes = await Promise.allSettled([first, node.admit('org_hangs', WIDE, 1)]);
        expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
        expect((await node.admit('org_hangs', WIDE, 1)).admitted).toBe(true);
      } finally {
        process.kill(backend, 'SIGCONT');
      }
      await node.close();
    });

    describe('a server of their own', () => {
      let server: PostgresServer;
      const connect = (options?: PgOptions) => connectPostgres(server.url('postgres'), options);
      beforeAll(async () => {
        server = await startPostgres();
        const first = await connect({ connections: 1 });
        await bringUpToDate(first.db);
        await first.close();
      });
      afterAll(() => server.remove());

      test('that hangs refuses a burst of an organization after a few attempts, not each few after one of their own', async () => {
        let connections = 0;
        const node = impatientNode('burst', {
          on: {
            connect: (options) => {
              connections += 1;
              return connect(options);
            },
          },
        });
        await node.admit('org_burst', WIDE, 1);
        const resume = pausePostgres(server);
        try {
          // As requests are planned: a few of an organization at once.
          const planning = new QueuePerName(BURST / 10);
          const burst = Array.from({ length: BURST }, async () => {
            using _turn = await planning.take('org_burst');
            return await node.admit('org_burst', WIDE, 1);
          });
          const outcomes = await Promise.allSettled(burst);
          expect(outcomes.map(({ status }) => status)).toEqual(Array(BURST).fill('rejected'));
          // The one that broke, one more, and some for a machine that is slow.
          expect(connections).toBeLessThanOrEqual(BURST / 10);
          await expect(node.status('org_burst', WIDE)).rejects.toThrow();
        } finally {
          resume();
        }
        const standing = () => node.status('org_burst', WIDE).catch(() => null);
        await eventually(async () => (await standing()) !== null);
        expect((await node.admit('org_burst', WIDE, 1)).admitted).toBe(true);
        await node.close();
      });

      test('that is down admits nobody; what was to be settled is settled once it is back', async () => {
        const problems: unknown[] = [];
        const [node, other] = [
          impatientNode('down', { on: { connect }, problems }),
          impatientNode('up', { on: { connect } }),
        ];
        const limits = { requests_per_minute: 10, tokens_per_minute: 1_000 };
        const admission = await node.admit('org_1', limits, 1_000);
        // The commit of a window waits for no disk; what is asked for here is that nothing else is lost.
        const checked = await connect({ connections: 1 });
        await checked.db.execute(sql`CHECKPOINT`);
        await checked.close();
        await server.stop('immediate');

        await expect(node.admit('org_1', limits, 1)).rejects.toThrow();
        const settled = admission.admitted ? admission.reservation.settle(400) : Promise.resolve();
        await expect(node.admit('org_2', limits, 1)).rejects.toThrow();
        await server.start();
        await settled;
        expect(problems.length).toBeGreaterThan(0);
        expect(await other.status('org_1', limits)).toMatchObject({
          remaining_requests: 9,
          remaining_tokens: 600,
        });
        expect((await node.admit('org_1', limits, 600)).admitted).toBe(true);
        await Promise.all([node.close(), other.close()]);
      });
    });
  });
});
