import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';

type Statements = Pick<PgDatabase<PgQueryResultHKT>, 'select' | 'insert' | 'update' | 'delete'>;

/**
 * Runs the statements of records: on PostgreSQL as they are, and on SQLite because it understands them too
 * (`db/sqlite/executor.ts`).
 */
export interface Executor extends Statements {
  /** Runs `work` in one transaction: the open one, or its own. */
  transaction<T>(work: (executor: Executor) => Promise<T>): Promise<T>;
}
