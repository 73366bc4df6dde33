import { sql } from 'drizzle-orm';
import type { PgTransactionConfig } from 'drizzle-orm/pg-core';
import { READ_MS_MAX, ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import type { Executor, PgDb } from './connection.ts';
import { sqlState } from './errors.ts';

/** The SQLSTATE of a statement that timed out or was canceled. */
const CANCELED = '57014';

/** Memory enough to sort the rows of a chart. */
const WORK_MEM = '16MB';

/** The transaction of reads that see one snapshot of the database, and block no writes. */
export const ONE_STATE = {
  isolationLevel: 'repeatable read',
  accessMode: 'read only',
} as const satisfies PgTransactionConfig;

/**
 * Runs reads that see one snapshot of the database, and block no writes. Rejects with the client's error, and with
 * `ReadTookTooLong` for a statement that exceeds the limit. A read of many statements calls `requireTime` between them,
 * which throws the same.
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
