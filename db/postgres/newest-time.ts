import { desc } from 'drizzle-orm';
import { firstRow } from '../records/first-row.ts';
import type { Executor } from './connection.ts';
import { lastWriter } from './program-versions.ts';
import { ledgerEntries } from './schema.ts';

/** Returns the newest time of the database's rows, before which the clock cannot be; null for a new database. */
export async function lastWritten_ms(executor: Executor): Promise<number | null> {
  const { created_at_ms, id } = ledgerEntries;
  const newest = await firstRow(
    executor.select({ created_at_ms }).from(ledgerEntries).orderBy(desc(id)).limit(1),
  );
  const writer = await lastWriter(executor);
  const times = [newest?.created_at_ms, writer?.last_ms].filter((time) => time !== undefined);
  return times.length === 0 ? null : Math.max(...times);
}
