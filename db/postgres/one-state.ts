import { sql } from 'drizzle-orm';
import type { PgTransactionConfig } from 'drizzle-orm/pg-core';
import type { Executor, PgDb } from './connection.ts';

/** How long one statement of a read may take: longer than any chart of an organization, and not for ever. */
const STATEMENT_TIMEOUT_MS = 60_000;

/** So that the rows of a chart are sorted in memory. */
const WORK_MEM = '16MB';

/** The transaction of reads that see one state of the database, and hold up nobody's writes. */
export const ONE_STATE = {
  isolationLevel: 'repeatable read',
  accessMode: 'read only',
} as const satisfies PgTransactionConfig;

/**
 * Runs reads that see one state of the database, and hold up nobody's writes. Rejects with the client's error, also for
 * a statement that takes more than a minute.
 */
export function readOneState<T>(db: PgDb, read: (executor: Executor) => Promise<T>): Promise<T> {
  return db.transaction(async (transaction) => {
    await transaction.execute(
      sql.raw(`SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}; SET LOCAL work_mem = '${WORK_MEM}'`),
    );
    return await read(transaction);
  }, ONE_STATE);
}
