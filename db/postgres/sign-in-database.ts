import type { DBAdapterInstance } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import { boolean, customType, type PgColumnBuilderBase, type PgTable, pgTable } from 'drizzle-orm/pg-core';
import { signInModels } from '../sign-in-models.ts';
import type { Executor } from './connection.ts';
import { integer, text } from './schema.ts';

/** A time column that better-auth reads and writes as a `Date`. */
const time = customType<{ data: Date; driverData: string | number }>({
  dataType: () => 'bigint',
  fromDriver: (value) => new Date(Number(value)),
  toDriver: (value) => value.getTime(),
});

const MODELS = signInModels<PgColumnBuilderBase, PgTable>(pgTable, {
  key: (name) => text(name).primaryKey(),
  text,
  requiredText: (name) => text(name).notNull(),
  time,
  requiredTime: (name) => time(name).notNull(),
  flag: (name) => boolean(name).notNull(),
  count: (name) => integer(name).notNull(),
});

/** Returns the database adapter of better-auth. Each of its statements is a transaction outside of the store's. */
export function signInDatabase(executor: Executor): DBAdapterInstance {
  return drizzleAdapter(executor, { provider: 'pg', schema: MODELS });
}
