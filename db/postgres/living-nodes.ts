import { count, sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';
import { nodes } from './schema.ts';

/** As long as the lease of a node. */
const LEASE_S = 20;

/**
 * How many nodes serve from the database now, or have ended without a word within the last seconds. A lease that was
 * renewed far in the future is of a node that ended before the database's clock was stepped back.
 */
export async function livingNodes(executor: Executor): Promise<number> {
  const [row] = await executor
    .select({ nodes: count() })
    .from(nodes)
    .where(sql`abs(extract(epoch FROM clock_timestamp() - ${nodes.renewed_at})) < ${LEASE_S}`);
  return row?.nodes ?? 0;
}
