import type { DBAdapterInstance } from 'better-auth';
import { drizzleAdapter } from 'better-auth/adapters/drizzle';
import { boolean, customType, pgTable } from 'drizzle-orm/pg-core';
import type { Executor } from './connection.ts';
import { integer, text } from './schema.ts';

/** A time column that better-auth reads and writes as a `Date`. */
const time = customType<{ data: Date; driverData: string | number }>({
  dataType: () => 'bigint',
  fromDriver: (value) => new Date(Number(value)),
  toDriver: (value) => value.getTime(),
});
const requiredText = (name: string) => text(name).notNull();
const requiredTime = (name: string) => time(name).notNull();

/**
 * The tables of `schema.ts` that better-auth uses, under its names of models and fields. Columns that it does not need
 * are omitted, and get their defaults.
 */
const MODELS = {
  user: pgTable('users', {
    id: text('id').primaryKey(),
    name: requiredText('name'),
    email: requiredText('email'),
    emailVerified: boolean('email_verified').notNull(),
    isOperator: boolean('is_operator').notNull(),
    twoFactorEnabled: boolean('has_second_factor').notNull(),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
  }),
  session: pgTable('sessions', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    token: requiredText('token_sha256'),
    ipAddress: text('ip_address'),
    userAgent: text('user_agent'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('last_seen_at_ms'),
    expiresAt: requiredTime('expires_at_ms'),
  }),
  account: pgTable('sign_in_accounts', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    providerId: requiredText('provider'),
    accountId: requiredText('external_id'),
    password: text('password_hash'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
  }),
  twoFactor: pgTable('second_factors', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    secret: requiredText('secret_encrypted'),
    backupCodes: requiredText('recovery_codes_encrypted'),
    verified: boolean('is_confirmed').notNull(),
    failedVerificationCount: integer('failures').notNull(),
    lockedUntil: time('locked_until_ms'),
  }),
  passkey: pgTable('passkeys', {
    id: text('id').primaryKey(),
    userId: requiredText('user_id'),
    name: requiredText('name'),
    credentialID: requiredText('credential_id'),
    publicKey: requiredText('public_key'),
    counter: integer('signatures').notNull(),
    deviceType: requiredText('device_type'),
    backedUp: boolean('is_backed_up').notNull(),
    transports: requiredText('transports'),
    aaguid: requiredText('model_id'),
    createdAt: requiredTime('created_at_ms'),
    lastUsedAt: time('last_used_at_ms'),
  }),
  verification: pgTable('verifications', {
    id: text('id').primaryKey(),
    identifier: requiredText('identifier_hash'),
    value: requiredText('value'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
    expiresAt: requiredTime('expires_at_ms'),
  }),
};

/** Returns the database adapter of better-auth. Each of its statements is a transaction outside of the store's. */
export function signInDatabase(executor: Executor): DBAdapterInstance {
  return drizzleAdapter(executor, { provider: 'pg', schema: MODELS });
}
