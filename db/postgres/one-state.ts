import { sql } from 'drizzle-orm';
import type { PgTransactionConfig } from 'drizzle-orm/pg-core';
import { READ_MS_MAX, ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import type { Executor, PgDb } from './connection.ts';
import { sqlState } from './errors.ts';

/** The SQLSTATE of a statement that took longer than it may, or that somebody canceled. */
const CANCELED = '57014';

/** So that the rows of a chart are sorted in memory. */
const WORK_MEM = '16MB';

/** The transaction of reads that see one state of the database, and hold up nobody's writes. */
export const ONE_STATE = {
  isolationLevel: 'repeatable read',
  accessMode: 'read only',
} as const satisfies PgTransactionConfig;

/**
 * Runs reads that see one state of the database, and hold up nobody's writes. Rejects with the client's error, and with
 * `ReadTookTooLong` for a statement that takes longer than a read may. A read of many statements asks `requireTime` between
 * them, which throws the same.
 */
export async function readOneState<T>(
  db: PgDb,
  read: (executor: Executor, requireTime: () => void) => Promise<T>,
  read_ms_max = READ_MS_MAX,
): Promise<T> {
  const until_ms = performance.now() + read_ms_max;
  try {
    return await db.transaction(async (transaction) => {
      await transaction.execute(
        sql.raw(`SET LOCAL statement_timeout = ${read_ms_max}; SET LOCAL work_mem = '${WORK_MEM}'`),
      );
      return await read(transaction, () => {
        if (performance.now() > until_ms) throw new ReadTookTooLong();
      });
    }, ONE_STATE);
  } catch (error) {
    throw sqlState(error) === CANCELED ? new ReadTookTooLong() : error;
  }
}
