/** One node of `bench/rate-windows.ts`: a process that admits requests by its tasks. */
import { connectPostgres } from '../../db/postgres/connection.ts';
import { PostgresRateWindows } from '../../db/postgres/rate-windows.ts';
import { systemClock } from '../../src/time/clock.ts';

/** The task of a node. */
export interface Task {
  readonly callers: number;
  /** The pause of a caller between requests; 0 for none. */
  readonly interval_ms: number;
  readonly organizations: number;
  readonly seconds: number;
}

/** The latency of each admission. */
export interface Measured {
  readonly latencies_ms: readonly number[];
}

const LIMITS = { requests_per_minute: 1_000_000_000, tokens_per_minute: 1_000_000_000_000 };
const ESTIMATED_TOKENS = 446;
const BILLED_TOKENS = 430;

/** Admits one request, and settles it without a wait once its tokens are known, as in the service. */
type Admit = (organization_id: string) => Promise<void>;

async function onPostgres(url: string): Promise<Admit> {
  const windows = new PostgresRateWindows({
    connect: () => connectPostgres(url, { connections: 1 }),
    clock: systemClock,
    onProblem: (error) => {
      throw error;
    },
  });
  await windows.forgetIdle();
  return async (organization_id) => {
    const admission = await windows.admit(organization_id, LIMITS, ESTIMATED_TOKENS);
    if (!admission.admitted) throw new Error('the limits are out of reach');
    void admission.reservation.settle(BILLED_TOKENS);
  };
}

async function work(admit: Admit, task: Task): Promise<Measured> {
  const { callers, interval_ms, organizations, seconds } = task;
  const latencies_ms: number[] = [];
  const end_ms = performance.now() + seconds * 1_000;
  let asked = 0;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      let next_ms = performance.now() + Math.random() * interval_ms;
      await Bun.sleep(next_ms - performance.now());
      for (let now_ms = performance.now(); now_ms < end_ms; now_ms = performance.now()) {
        asked += 1;
        await admit(`org_${asked % organizations}`);
        latencies_ms.push(performance.now() - now_ms);
        next_ms += interval_ms;
        if (interval_ms > 0) await Bun.sleep(Math.max(0, next_ms - performance.now()));
      }
    }),
  );
  return { latencies_ms };
}

const admit = await onPostgres(process.argv[2] ?? '');
process.on('message', async (task: Task) => process.send?.(await work(admit, task)));
process.send?.('ready');
