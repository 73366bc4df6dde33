import { sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';

/**
 * Returns a durable write that changes nothing: a message in the write-ahead log that nobody reads. A read-only standby
 * refuses it. Rejects with the client's errors.
 */
export function writeProbe(executor: Executor): () => Promise<void> {
  return async () => {
    await executor.execute(sql`SELECT pg_logical_emit_message(true, 'tds', '')`);
  };
}
