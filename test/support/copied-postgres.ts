import { sql } from 'drizzle-orm';
import { type CopiedRow, copiedTables } from '../../db/copied-tables.ts';
import { copyTables } from '../../db/copy-database.ts';
import type { Executor, PgDb } from '../../db/postgres/connection.ts';
import { PostgresRows } from '../../db/postgres/copied-rows.ts';
import type { Db } from '../../db/sqlite/connection.ts';
import { SqliteRows } from '../../db/sqlite/copied-rows.ts';
import { giveBackDatabase, takeDatabase } from './emptied-postgres.ts';

/** A PostgreSQL database with the rows of a SQLite database, as they are. */
export interface CopiedPostgres extends AsyncDisposable {
  readonly db: PgDb;
  readonly url: string;
  /** The connections of another process. */
  anotherPool(): Promise<PgDb>;
  /** Runs `work` after damaging statements, without constraints. Then rolls everything back. */
  damaged<T>(statements: string, work: (executor: Executor) => Promise<T>): Promise<T>;
}

/** Copies what SQLite has into a PostgreSQL database of its own, whether it is right or not. */
export async function copiedToPostgres(db: Db): Promise<CopiedPostgres> {
  const database = await takeDatabase();
  const connection = await database.connect({ connections: 2 });
  await copyInto(db, connection.db);
  return {
    db: connection.db,
    url: database.url,
    anotherPool: async () => (await database.connect({ connections: 2 })).db,
    damaged: async (statements, work) => {
      const undone = new Error('undone');
      const results: Awaited<ReturnType<typeof work>>[] = [];
      const transaction = connection.db.transaction(async (executor) => {
        // Takes the references out of force.
        await executor.execute(sql`SET LOCAL session_replication_role = replica`);
        for (const statement of statements.split(';')) await executor.execute(sql.raw(statement));
        results.push(await work(executor));
        throw undone;
      });
      await transaction.catch((error: unknown) => {
        if (error !== undone) throw error;
      });
      const [result] = results;
      if (result === undefined) throw undone;
      return result;
    },
    [Symbol.asyncDispose]: () => giveBackDatabase(database),
  };
}

/** Copies what SQLite has into an empty PostgreSQL database, whether it is right or not. */
export async function copyInto(db: Db, postgres: PgDb): Promise<void> {
  const target = new PostgresRows(postgres, 'the copy');
  await new SqliteRows(db).read((from) => target.write((to) => copyTables(from, to)));
}

/** All rows of all tables, as they are copied, in the order of their keys. */
export async function allRows(source: SqliteRows | PostgresRows): Promise<Record<string, CopiedRow[]>> {
  return await source.read(async (from) => {
    const tables: Record<string, CopiedRow[]> = {};
    for (const table of copiedTables()) {
      const keyOf = (row: CopiedRow) => JSON.stringify(table.key.map((column) => row[column]));
      const rows = (await Array.fromAsync(from.rows(table))).flat();
      tables[table.name] = rows.toSorted((row, other) => (keyOf(row) < keyOf(other) ? -1 : 1));
    }
    return tables;
  });
}
