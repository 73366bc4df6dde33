import { count, sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';
import { nodes } from './schema.ts';

/** The length of a lease. A node without a valid lease and without its lock is dead. */
export const LEASE_S = 20;

/**
 * The age of a lease, in SQL. A lease from far in the future has expired, too: the database's clock was set back, or a
 * standby with a slower clock took over.
 */
export const LEASE_AGE_S = 'abs(extract(epoch FROM clock_timestamp() - renewed_at))';

/** A paused node keeps its lock. A node that lost its lock, as after a failover, lives as long as its lease. */
const LIVES = sql`(${sql.raw(LEASE_AGE_S)} < ${LEASE_S}
  OR EXISTS (
    SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (classid::bigint << 32) | objid::bigint = ${nodes.lock_key}))`;

/** Resolves with the number of nodes that serve, are paused, or died within the last seconds. */
export async function livingNodes(executor: Executor): Promise<number> {
  const [row] = await executor.select({ nodes: count() }).from(nodes).where(LIVES);
  return row?.nodes ?? 0;
}

/** Lets no node register until the transaction ends. It must run before `livingNodes`. */
export async function keepNodesOut(transaction: Executor): Promise<void> {
  await transaction.execute(sql`LOCK TABLE ${nodes} IN SHARE ROW EXCLUSIVE MODE`);
}
