/** The kinds of columns of a database. A time is one that better-auth reads and writes as a `Date`. */
type ColumnKinds<Column> = Readonly<
  Record<
    'key' | 'text' | 'requiredText' | 'time' | 'requiredTime' | 'flag' | 'count',
    (name: string) => Column
  >
>;

/**
 * Returns the tables of `db/tables.ts` that better-auth uses, under its names of models and fields. Columns that it
 * does not need are omitted, and get their defaults.
 */
export const signInModels = <Column, Table>(
  table: (name: string, columns: Record<string, Column>) => Table,
  { key, text, requiredText, time, requiredTime, flag, count }: ColumnKinds<Column>,
) => ({
  user: table('users', {
    id: key('id'),
    name: requiredText('name'),
    email: requiredText('email'),
    emailVerified: flag('email_verified'),
    isOperator: flag('is_operator'),
    twoFactorEnabled: flag('has_second_factor'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
  }),
  session: table('sessions', {
    id: key('id'),
    userId: requiredText('user_id'),
    token: requiredText('token_sha256'),
    ipAddress: text('ip_address'),
    userAgent: text('user_agent'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('last_seen_at_ms'),
    expiresAt: requiredTime('expires_at_ms'),
  }),
  account: table('sign_in_accounts', {
    id: key('id'),
    userId: requiredText('user_id'),
    providerId: requiredText('provider'),
    accountId: requiredText('external_id'),
    password: text('password_hash'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
  }),
  twoFactor: table('second_factors', {
    id: key('id'),
    userId: requiredText('user_id'),
    secret: requiredText('secret_encrypted'),
    backupCodes: requiredText('recovery_codes_encrypted'),
    verified: flag('is_confirmed'),
    failedVerificationCount: count('failures'),
    lockedUntil: time('locked_until_ms'),
  }),
  passkey: table('passkeys', {
    id: key('id'),
    userId: requiredText('user_id'),
    name: requiredText('name'),
    credentialID: requiredText('credential_id'),
    publicKey: requiredText('public_key'),
    counter: count('signatures'),
    deviceType: requiredText('device_type'),
    backedUp: flag('is_backed_up'),
    transports: requiredText('transports'),
    aaguid: requiredText('model_id'),
    createdAt: requiredTime('created_at_ms'),
    lastUsedAt: time('last_used_at_ms'),
  }),
  verification: table('verifications', {
    id: key('id'),
    identifier: requiredText('identifier_hash'),
    value: requiredText('value'),
    createdAt: requiredTime('created_at_ms'),
    updatedAt: requiredTime('updated_at_ms'),
    expiresAt: requiredTime('expires_at_ms'),
  }),
});
