import type { OpenDatabase } from './databases.ts';

/** Inserts a session, a password, a second factor, a passkey and a mailed link of a user. */
export async function addSignIn(database: Pick<OpenDatabase, 'run'>, user_id: string): Promise<void> {
  await database.run(`INSERT INTO sessions (id, user_id, token_sha256, created_at_ms, last_seen_at_ms, expires_at_ms)
    VALUES ('${user_id}', '${user_id}', '${user_id.padEnd(64, '0')}', 1, 1, 2)`);
  await database.run(`INSERT INTO sign_in_accounts
    (id, user_id, provider, external_id, password_hash, created_at_ms, updated_at_ms)
    VALUES ('${user_id}', '${user_id}', 'credential', '${user_id}', 'x', 1, 1)`);
  await database.run(`INSERT INTO second_factors (id, user_id, secret_encrypted, recovery_codes_encrypted)
    VALUES ('${user_id}', '${user_id}', 'x', 'x')`);
  await addPasskeyRow((sql) => database.run(sql), user_id, user_id);
  await database.run(`INSERT INTO verifications (id, identifier_hash, value, created_at_ms, updated_at_ms, expires_at_ms)
    VALUES ('${user_id}', 'x', '${user_id}', 1, 1, 2)`);
}

/** Inserts a passkey of a user, with which nobody can sign in. */
export async function addPasskeyRow(
  run: (statement: string) => Promise<unknown>,
  user_id: string,
  id: string,
): Promise<void> {
  await run(`INSERT INTO passkeys (id, user_id, name, credential_id, public_key, signatures, device_type, is_backed_up,
    transports, model_id, created_at_ms)
    VALUES ('${id}', '${user_id}', 'Passkey', '${id}', 'x', 0, 'singleDevice', FALSE, '', 'x', 1)`);
}
