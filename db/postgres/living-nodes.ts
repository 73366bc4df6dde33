import { count, sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';
import { nodes } from './schema.ts';

/** A node that has not renewed its lease for so long, and has lost its lock, is dead. */
export const LEASE_S = 20;

/**
 * How far the renewal of a lease is away, in SQL. One that was renewed far in the future ran out as well. The clock of
 * the database was stepped back since, or a standby took over whose clock is behind.
 */
export const LEASE_AGE_S = 'abs(extract(epoch FROM clock_timestamp() - renewed_at))';

/** A paused node has its lock. One that has lost it, as after a failover, may go on for as long as its lease. */
const LIVES = sql`(${sql.raw(LEASE_AGE_S)} < ${LEASE_S}
  OR EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (classid::bigint << 32) | objid::bigint = ${nodes.lock_key}))`;

/** How many nodes serve from the database now, are paused, or have ended without a word within the last seconds. */
export async function livingNodes(executor: Executor): Promise<number> {
  const [row] = await executor.select({ nodes: count() }).from(nodes).where(LIVES);
  return row?.nodes ?? 0;
}

/** From now on, and until the transaction has ended, no node registers. Comes before the question which ones live. */
export async function keepNodesOut(transaction: Executor): Promise<void> {
  await transaction.execute(sql`LOCK TABLE ${nodes} IN SHARE ROW EXCLUSIVE MODE`);
}
