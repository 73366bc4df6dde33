import type { Database } from 'bun:sqlite';
import type { AuditReport } from '../../src/store/audit-report.ts';
import type { CopiedRow, CopiedTable } from '../copied-tables.ts';
import {
  type CopySource,
  type CopyTarget,
  type TablesRead,
  type TablesWritten,
  type Totals,
  totalsFound,
  totalsOf,
} from '../copy-database.ts';
import { runAudit } from './audit.ts';
import type { Db } from './connection.ts';
import { ROW_NUMBER } from './sqlite-table.ts';

/** The largest number of rows in memory at once. */
const BATCH_ROWS = 2_000;

type Value = string | number | null;

/**
 * The rows of a SQLite database, to copy from or into. It needs its own connection, because a transaction stays open
 * during the copy.
 */
export class SqliteRows implements CopySource, CopyTarget {
  constructor(private readonly db: Db) {}

  /**
   * Reads in a transaction that locks out other writers. A command waits, and then fails because the database is busy.
   */
  read<T>(work: (tables: TablesRead) => Promise<T>): Promise<T> {
    return this.#inTransaction(work);
  }

  write<T>(work: (tables: TablesWritten) => Promise<T>): Promise<T> {
    return this.#inTransaction(work);
  }

  async #inTransaction<T>(work: (tables: SqliteTables) => Promise<T>): Promise<T> {
    const { $client } = this.db;
    $client.run('BEGIN IMMEDIATE');
    try {
      const result = await work(new SqliteTables(this.db));
      $client.run('COMMIT');
      return result;
    } catch (error) {
      if ($client.inTransaction) $client.run('ROLLBACK');
      throw error;
    }
  }
}

class SqliteTables implements TablesRead, TablesWritten {
  readonly #db: Db;
  readonly #client: Database;

  constructor(db: Db) {
    this.#db = db;
    this.#client = db.$client;
  }

  async *rows(table: CopiedTable): AsyncGenerator<readonly CopiedRow[]> {
    // Rows come in the order of their insertion, so a referenced row comes first.
    const query = this.#client.query<Record<string, Value>, [number, number]>(
      `${selected(table)} WHERE rowid > ? ORDER BY rowid LIMIT ?`,
    );
    let after = 0;
    for (;;) {
      const found = query.all(after, BATCH_ROWS);
      if (found.length > 0) yield found.map((row) => copiedOf(table, row));
      if (found.length < BATCH_ROWS) return;
      after = Number(found.at(-1)?.[ROW_NUMBER]);
      // This lets the event loop handle signals, which can stop the copy.
      await Bun.sleep(0);
    }
  }

  lastNumber({ name, number }: CopiedTable): Promise<number> {
    const given = this.#client
      .query<{ seq: number }, [string]>('SELECT seq FROM sqlite_sequence WHERE name = ?')
      .get(name);
    const column = number === ROW_NUMBER ? 'rowid' : `"${number}"`;
    const last = this.#client
      .query<{ last: number }, []>(`SELECT coalesce(max(${column}), 0) AS last FROM ${name}`)
      .get();
    return Promise.resolve(Math.max(given?.seq ?? 0, last?.last ?? 0));
  }

  totals(table: CopiedTable): Promise<Totals> {
    const totals = totalsOf(table, {
      trues: (column) => `sum(${column})`,
      bytes: (column) => `sum(length(CAST(${column} AS BLOB)))`,
    });
    const sums = totals.map(
      ([, expression], index) => `CAST(coalesce(${expression}, 0) AS TEXT) AS total_${index}`,
    );
    const row = this.#client
      .query<Record<string, string>, []>(`SELECT ${sums.join(', ')} FROM (${selected(table)})`)
      .get();
    return Promise.resolve(totalsFound(totals, row));
  }

  audit(): Promise<AuditReport> {
    return Promise.try(() => runAudit(this.#db));
  }

  isEmpty({ name }: CopiedTable): Promise<boolean> {
    return Promise.resolve(this.#client.query(`SELECT 1 FROM ${name} LIMIT 1`).get() === null);
  }

  clear({ name }: CopiedTable): Promise<void> {
    this.#client.run(`DELETE FROM ${name}`);
    return Promise.resolve();
  }

  insert(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void> {
    const columns = table.columns.map(({ name }) => (name === ROW_NUMBER ? 'rowid' : `"${name}"`));
    const insert = this.#client.query<never, Value[]>(
      `INSERT INTO ${table.name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    );
    for (const row of rows) insert.run(...table.columns.map(({ name, kind }) => storedOf(kind, row[name])));
    return Promise.resolve();
  }

  continueAfter({ name, number }: CopiedTable, last_number: number): Promise<void> {
    // SQLite has no counter for a rowid: the next one is above the largest.
    if (number !== ROW_NUMBER) {
      this.#client.query('DELETE FROM sqlite_sequence WHERE name = ?').run(name);
      this.#client.query('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, last_number);
    }
    return Promise.resolve();
  }
}

/** Returns the query's columns: those of the schema, and SQLite's rowid. */
function selected({ name, columns }: CopiedTable): string {
  const kept = columns.filter((column) => column.name !== ROW_NUMBER).map((column) => `"${column.name}"`);
  return `SELECT rowid AS ${ROW_NUMBER}, ${kept.join(', ')} FROM ${name}`;
}

function copiedOf({ columns }: CopiedTable, row: Readonly<Record<string, Value>>): CopiedRow {
  return Object.fromEntries(
    columns.map(({ name, kind }) => {
      const value = row[name] ?? null;
      if (kind === 'boolean') return [name, value === 1];
      if (kind === 'json') return [name, value === null ? null : JSON.parse(String(value))];
      return [name, value];
    }),
  );
}

function storedOf(kind: string, value: unknown): Value {
  if (value === null || value === undefined) return null;
  if (kind === 'boolean') return value === true ? 1 : 0;
  if (kind === 'json') return JSON.stringify(value);
  if (typeof value === 'string' || typeof value === 'number') return value;
  throw new TypeError(`a ${typeof value} cannot be stored as ${kind}`);
}
