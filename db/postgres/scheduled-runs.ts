import { sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';

/** An hour, less what the timer of the node that had the last run may be early. */
const INTERVAL = sql`interval '55 minutes'`;

/** Work that one node does for all of them, hourly: what is due with the clock, and the runs over the history. */
export type ScheduledRun = 'hourly' | 'history';

/**
 * Notes that a run begins; false when a node has begun one within the hour, by the database's clock. With `anyway` it
 * always begins.
 */
export async function beginRun(executor: Executor, name: ScheduledRun, anyway = false): Promise<boolean> {
  // A time to come is one of a clock that was set back since.
  const begun = await executor.execute(sql`INSERT INTO scheduled_runs AS last (name, started_at)
    VALUES (${name}, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET started_at = excluded.started_at
    WHERE ${anyway}::boolean OR last.started_at <= clock_timestamp() - ${INTERVAL}
      OR last.started_at > clock_timestamp()
    RETURNING name`);
  return begun.length > 0;
}
