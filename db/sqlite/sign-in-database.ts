import type { DBAdapterInstance } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import {
  integer,
  type SQLiteColumnBuilderBase,
  type SQLiteTable,
  sqliteTable,
  text,
} from 'drizzle-orm/sqlite-core';
import { type AsyncRemoteCallback, drizzle } from 'drizzle-orm/sqlite-proxy';
import { signInModels } from '../sign-in-models.ts';
import type { Db } from './connection.ts';
import type { Access } from './transactions.ts';

/** A time column that better-auth reads and writes as a `Date`. */
const time = (name: string) => integer(name, { mode: 'timestamp_ms' });

const MODELS = signInModels<SQLiteColumnBuilderBase, SQLiteTable>(sqliteTable, {
  key: (name) => text(name).primaryKey(),
  text: (name) => text(name),
  requiredText: (name) => text(name).notNull(),
  time,
  requiredTime: (name) => time(name).notNull(),
  flag: (name) => integer(name, { mode: 'boolean' }).notNull(),
  count: (name) => integer(name).notNull(),
});

const READING = /^\s*select\b/i;

/**
 * Returns the database adapter of better-auth. Each statement runs through `access`, outside of any transaction. A
 * statement sent directly to the connection could join another transaction, and be rolled back with it.
 */
export function signInDatabase(
  { $client }: Pick<Db, '$client'>,
  access: Pick<Access, 'read' | 'write'>,
): DBAdapterInstance {
  const run: AsyncRemoteCallback = (sql, params, method) => {
    const statement = () => $client.query<unknown, (string | number | null)[]>(sql);
    if (READING.test(sql)) return access.read(() => ({ rows: statement().values(...params) }));
    return access.write(() => {
      if (method !== 'run') return { rows: statement().values(...params) };
      // The adapter reads the number of changed rows here.
      const { changes } = statement().run(...params);
      return { rows: [], changes };
    });
  };
  return drizzleAdapter(drizzle(run), { provider: 'sqlite', schema: MODELS });
}
