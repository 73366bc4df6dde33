import type { DBAdapterInstance } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import { type AsyncRemoteCallback, drizzle } from 'drizzle-orm/sqlite-proxy';
import type { Db } from './connection.ts';
import type { Access } from './transactions.ts';

/** A time column that better-auth reads and writes as a `Date`. */
const time = (name: string) => integer(name, { mode: 'timestamp_ms' });
const requiredText = (name: string) => text(name).notNull();
const requiredTime = (name: string) => time(name).notNull();

/**
 * The tables of `schema.ts` that better-auth uses, under its names of models and fields. Columns that it does not need
 * are omitted, and get their defaults.
 */
const MODELS = {
  user: sqliteTable('users', {
    id: text('id').primaryKey(),
    name: requiredText('name'),
    email: requiredText('email'),
    emailVerified: integer('email_verified', { mode: 'boolean' }).notNull(),
    isOperator: integer('is_operator', { mode: 'boolean' }).notNull(),
    twoFactorEnabled: integer('has_second_factor', { mode: 'boolean' }).notNull(),
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
  twoFactor: sqliteTable('second_factors', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    secret: requiredText('secret_encrypted'),
    backupCodes: requiredText('recovery_codes_encrypted'),
    verified: integer('is_confirmed', { mode: 'boolean' }).notNull(),
    failedVerificationCount: integer('failures').notNull(),
    lockedUntil: time('locked_until_ms'),
  }),
  passkey: sqliteTable('passkeys', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    name: requiredText('name'),
    credentialID: requiredText('credential_id'),
    publicKey: requiredText('public_key'),
    counter: integer('signatures').notNull(),
    deviceType: requiredText('device_type'),
    backedUp: integer('is_backed_up', { mode: 'boolean' }).notNull(),
    transports: requiredText('transports'),
    aaguid: requiredText('model_id'),
    createdAt: requiredTime('created_at_ms'),
    lastUsedAt: time('last_used_at_ms'),
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
