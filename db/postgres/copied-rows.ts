import { type SQL, sql } from 'drizzle-orm';
import type { AuditReport } from '../../src/store/audit-report.ts';
import { type CopiedRow, type CopiedTable, copiedTables } from '../copied-tables.ts';
import {
  CopyRefused,
  type CopySource,
  type CopyTarget,
  type TablesRead,
  type TablesWritten,
  type Totals,
  totalsFound,
  totalsOf,
} from '../copy-database.ts';
import { auditSnapshot } from './audit.ts';
import type { Executor } from './connection.ts';
import { sqlState } from './errors.ts';
import { keepNodesOut, livingNodes } from './living-nodes.ts';

/** The largest number of rows in memory at once. */
const BATCH_ROWS = 2_000;

const LOCK_TIMEOUT_MS = 2_000;
const LOCK_NOT_AVAILABLE = '55P03';

/** The rows of a PostgreSQL database, to copy from or into. No node serves meanwhile. */
export class PostgresRows implements CopySource, CopyTarget {
  /** `place` names the database in messages. */
  constructor(
    private readonly executor: Executor,
    private readonly place: string,
  ) {}

  read<T>(work: (tables: TablesRead) => Promise<T>): Promise<T> {
    return this.#inTransaction(work);
  }

  write<T>(work: (tables: TablesWritten) => Promise<T>): Promise<T> {
    return this.#inTransaction(work);
  }

  #inTransaction<T>(work: (tables: PostgresTables) => Promise<T>): Promise<T> {
    return this.executor.transaction(
      async (transaction) => {
        await this.#keepOthersOut(transaction);
        await transaction.execute(sql`SELECT set_config('statement_timeout', '0', true),
          set_config('idle_in_transaction_session_timeout', '0', true)`);
        return await work(new PostgresTables(transaction));
      },
      { isolationLevel: 'repeatable read' },
    );
  }

  /**
   * Locks the tables, so that nobody else writes and no node starts. It must run before all reads, which see one state
   * of the rows.
   */
  async #keepOthersOut(transaction: Executor): Promise<void> {
    const tables = copiedTables().map(({ name }) => sql.identifier(name));
    await transaction.execute(sql`SET LOCAL lock_timeout = ${sql.raw(String(LOCK_TIMEOUT_MS))}`);
    try {
      await keepNodesOut(transaction);
      await transaction.execute(sql`LOCK TABLE ${sql.join(tables, sql`, `)} IN SHARE ROW EXCLUSIVE MODE`);
    } catch (error) {
      if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
      throw new CopyRefused(`${this.place} is being written: stop what does that.`, { cause: error });
    }
    if ((await livingNodes(transaction)) > 0)
      throw new CopyRefused(
        `A service runs on ${this.place}: stop it, and wait some seconds if it was killed.`,
      );
  }
}

class PostgresTables implements TablesRead, TablesWritten {
  constructor(private readonly executor: Executor) {}

  async *rows(table: CopiedTable): AsyncGenerator<readonly CopiedRow[]> {
    const cursor = sql.identifier(`copied_${table.name}`);
    const columns = sql.join(
      table.columns.map(({ name }) => sql.identifier(name)),
      sql`, `,
    );
    await this.executor.execute(sql`DECLARE ${cursor} NO SCROLL CURSOR FOR
      SELECT row_to_json(copied) AS row FROM (
        SELECT ${columns} FROM ${sql.identifier(table.name)} ORDER BY ${orderOf(table)}
      ) AS copied`);
    for (;;) {
      const found = await this.executor.execute<{ row: CopiedRow }>(
        sql`FETCH ${sql.raw(String(BATCH_ROWS))} FROM ${cursor}`,
      );
      if (found.length > 0) yield found.map(({ row }) => row);
      if (found.length < BATCH_ROWS) break;
    }
    await this.executor.execute(sql`CLOSE ${cursor}`);
  }

  async lastNumber({ name, number }: CopiedTable): Promise<number> {
    const [row] = await this.executor.execute<{ last: string }>(
      sql`SELECT greatest(
          pg_sequence_last_value(pg_get_serial_sequence(${name}, ${number})::regclass),
          (SELECT max(${sql.identifier(number ?? '')}) FROM ${sql.identifier(name)}), 0) AS last`,
    );
    return Number(row?.last ?? 0);
  }

  async totals(table: CopiedTable): Promise<Totals> {
    const totals = totalsOf(table, {
      trues: (column) => `count(*) FILTER (WHERE ${column})`,
      bytes: (column) => `sum(octet_length(${column}))`,
    });
    const sums = totals.map(([, expression], index) => `coalesce(${expression}, 0)::text AS total_${index}`);
    const [row] = await this.executor.execute<Record<string, string>>(
      sql.raw(`SELECT ${sums.join(', ')} FROM ${table.name}`),
    );
    return totalsFound(totals, row);
  }

  audit(): Promise<AuditReport> {
    return auditSnapshot(this.executor);
  }

  async isEmpty({ name }: CopiedTable): Promise<boolean> {
    const found = await this.executor.execute(sql`SELECT 1 AS found FROM ${sql.identifier(name)} LIMIT 1`);
    return found.length === 0;
  }

  async clear({ name }: CopiedTable): Promise<void> {
    await this.executor.execute(sql`DELETE FROM ${sql.identifier(name)}`);
  }

  async insert(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
    const name = sql.identifier(table.name);
    const columns = sql.join(
      table.columns.map((column) => sql.identifier(column.name)),
      sql`, `,
    );
    // All rows are one JSON text. Its values get the types of the table's columns.
    await this.executor.execute(sql`INSERT INTO ${name} (${columns}) OVERRIDING SYSTEM VALUE
      SELECT ${columns} FROM json_populate_recordset(NULL::${name}, ${JSON.stringify(rows)}::text::json)`);
  }

  async continueAfter({ name, number }: CopiedTable, last_number: number): Promise<void> {
    // Unlike setval(), this is rolled back with the transaction.
    await this.executor.execute(sql`ALTER TABLE ${sql.identifier(name)}
      ALTER COLUMN ${sql.identifier(number ?? '')} RESTART WITH ${sql.raw(String(last_number + 1))}`);
  }
}

/**
 * Returns the order of the rows: by number if they have one. Otherwise rows without a reference to their own table come
 * first.
 */
function orderOf({ key, number, refers_to_itself }: CopiedTable): SQL {
  if (number !== null) return sql`${sql.identifier(number)}`;
  const columns = key.map((name) => sql`${sql.identifier(name)}`);
  const first = refers_to_itself === null ? [] : [sql`${sql.identifier(refers_to_itself)} NULLS FIRST`];
  return sql.join([...first, ...columns], sql`, `);
}
