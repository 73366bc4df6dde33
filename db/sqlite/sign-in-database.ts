import type { DBAdapterInstance } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { type AsyncRemoteCallback, drizzle } from 'drizzle-orm/sqlite-proxy';
import type { Db } from './connection.ts';
import type { Access } from './transactions.ts';

/** A time that better-auth reads and writes as a `Date`. */
const time = (name: string) => integer(name, { mode: 'timestamp_ms' });
const requiredText = (name: string) => text(name).notNull();
const requiredTime = (name: string) => time(name).notNull();

/**
 * The tables of `schema.ts` that better-auth works on, under its own names of models and fields. Columns that it has no
 * use for are left out: a row that it writes gets their defaults.
 */
const MODELS = {
  user: sqliteTable('users', {
    id: text('id').primaryKey(),
    name: requiredText('name'),
    email: requiredText('email'),
    emailVerified: integer('email_verified', { mode: 'boolean' }).notNull(),
    isOperator: integer('is_operator', { mode: 'boolean' }).notNull(),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
  }),
  session: sqliteTable('sessions', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    token: requiredText('token_sha256'),
    ipAddress: text('ip_address'),
    userAgent: text('user_agent'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('last_seen_at_ms'),
    expiresAt: requiredTime('expires_at_ms'),
  }),
  account: sqliteTable('sign_in_accounts', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    providerId: requiredText('provider'),
    accountId: requiredText('external_id'),
    password: text('password_hash'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
  }),
  verification: sqliteTable('verifications', {
    id: text('id').primaryKey(),
    identifier: requiredText('identifier_hash'),
    value: requiredText('value'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
    expiresAt: requiredTime('expires_at_ms'),
  }),
};

const READING = /^\s*select\b/i;

/**
 * The database as better-auth takes it. Each statement runs through `access`, which is that outside of any transaction.
 * A statement that went straight to the connection could land in somebody else's transaction, and be rolled back with it.
 */
export function signInDatabase({ $client }: Pick<Db, '$client'>, access: Access): DBAdapterInstance {
  const run: AsyncRemoteCallback = (sql, params, method) => {
    const statement = () => $client.query<unknown, (string | number | null)[]>(sql);
    if (READING.test(sql)) return access.read(() => ({ rows: statement().values(...params) }));
    return access.write(() => {
      if (method !== 'run') return { rows: statement().values(...params) };
      // The adapter reads the number of rows that a statement changed here.
      const { changes } = statement().run(...params);
      return { rows: [], changes };
    });
  };
  return drizzleAdapter(drizzle(run), { provider: 'sqlite', schema: MODELS });
}
