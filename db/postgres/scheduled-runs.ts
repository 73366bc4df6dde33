import { sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';

/** An hour, minus a margin for the timers of the nodes. */
const INTERVAL = sql`interval '55 minutes'`;

/** Hourly work that one node does for all: scheduled tasks, and the audit with the roll-up of the history. */
export type ScheduledRun = 'hourly' | 'history';

/**
 * Records the beginning of a run. Resolves with false if a node has begun one within the hour, by the database's clock.
 * With `anyway` it always begins.
 */
export async function beginRun(executor: Executor, name: ScheduledRun, anyway = false): Promise<boolean> {
  // A time in the future is due to a clock that was set back.
  const begun = await executor.execute(sql`INSERT INTO scheduled_runs AS last (name, started_at)
    VALUES (${name}, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET started_at = excluded.started_at
    WHERE ${anyway}::boolean OR last.started_at <= clock_timestamp() - ${INTERVAL}
      OR last.started_at > clock_timestamp()
    RETURNING name`);
  return begun.length > 0;
}
