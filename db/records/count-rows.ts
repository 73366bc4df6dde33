import { count, type SQL } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { Executor } from './executor.ts';

/** Resolves with the number of a table's rows that meet the condition. */
export async function countRows(
  executor: Executor,
  table: PgTable,
  condition: SQL | undefined,
): Promise<number> {
  const [row] = await executor.select({ number: count() }).from(table).where(condition);
  return row?.number ?? 0;
}
