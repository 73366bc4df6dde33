import { sql } from 'drizzle-orm';
import type { Executor } from './connection.ts';

/**
 * A durable write that changes nothing: a message in the write-ahead log that nobody reads. A standby, which cannot be
 * written, refuses it. Rejects with what the client rejects with.
 */
export function writeProbe(executor: Executor): () => Promise<void> {
  return async () => {
    await executor.execute(sql`SELECT pg_logical_emit_message(true, 'tds', '')`);
  };
}
