import { is } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
import type { PgDb } from '../../db/postgres/connection.ts';
import * as postgresSchema from '../../db/postgres/schema.ts';
import type { Db } from '../../db/sqlite/connection.ts';

/** All rows, by table, in the same order each time. */
export type Everything = Readonly<Record<string, readonly unknown[]>>;

/** The tables that the service has on PostgreSQL. */
export const POSTGRES_TABLES: readonly string[] = Object.values(postgresSchema)
  .filter((value) => is(value, PgTable))
  .map((table) => getTableConfig(table).name);

/** Tables that nodes write at any time, and SQLite does not have. */
const OF_NODES = ['nodes', 'scheduled_runs', 'rate_windows', 'rate_window_entries'];

/** Everything that is stored in a SQLite database. */
export function everythingInSqlite({ $client }: Pick<Db, '$client'>): Record<string, unknown[]> {
  const tables = $client
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all();
  return Object.fromEntries(tables.map(({ name }) => [name, $client.query(`SELECT * FROM "${name}"`).all()]));
}

/** Everything that is stored in a PostgreSQL database, but for what nodes note of themselves. */
export async function everythingInPostgres({ $client }: Pick<PgDb, '$client'>): Promise<Everything> {
  // PostgreSQL gives rows in the order in which they were last written.
  const columns = POSTGRES_TABLES.filter((name) => !OF_NODES.includes(name)).map(
    (name) =>
      `(SELECT coalesce(json_agg(t ORDER BY t::text COLLATE "C"), '[]') FROM ${name} AS t) AS ${name}`,
  );
  const [everything] = await $client.unsafe<[Everything]>(`SELECT ${columns.join(', ')}`);
  return everything;
}
