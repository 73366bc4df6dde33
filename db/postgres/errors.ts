import { SQL } from 'bun';
import { withCauses } from '../../src/errors/error-causes.ts';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';

/** SQLSTATEs of a lost connection. Uncommitted work is rolled back. */
const BROKEN_STATES: ReadonlySet<string> = new Set([
  // The server shuts down, has crashed, or ended an idle transaction, such as that of a paused process.
  '57P01',
  '57P02',
  '25P03',
  '08000',
  '08003',
  '08006',
]);
const BROKEN_CODES: ReadonlySet<string> = new Set(['ERR_POSTGRES_CONNECTION_CLOSED']);

/** SQLSTATEs of a conflict of two transactions. The one that was rolled back can be tried again. */
const CONFLICT_STATES: ReadonlySet<string> = new Set(['40P01', '40001']);

/** Advice on the server's errors, by the start of their SQLSTATE. */
const ADVICE_BY_STATE: readonly (readonly [state: string, advice: string])[] = [
  ['28', 'does not let this user in: check the user and the password in the address, and pg_hba.conf'],
  ['3D000', 'does not exist: create the database or name another with --database'],
  ['53300', 'has too many connections: raise its max_connections or run fewer nodes'],
  ['53100', "cannot grow: make room on the server's disk"],
  ['53', 'lacks memory or other resources: look at the server'],
  ['25006', 'can only be read: name the primary with --database, or set default_transaction_read_only = off'],
  ['42501', 'does not give this user the rights that it needs: grant them'],
  ['55P03', 'is busy: try again when the other command is done'],
  ['57P03', 'is starting or stopping: try again in a moment'],
  ['57P04', 'was dropped: name another with --database'],
  ['57P', 'ended the connection: try again'],
  ['25P03', 'ended the connection: try again'],
  ['08P01', 'does not take the settings of sessions, as a pooler does: name PostgreSQL itself'],
  ['08', 'broke the connection: try again'],
  ['58', 'cannot be read or written: check the disk of the server'],
  ['XX001', 'is damaged: restore it from a backup'],
  ['XX002', 'is damaged: restore it from a backup'],
];

const UNREACHABLE = 'cannot be reached: start the server or name another with --database';

/** Advice on the client's own errors, by their code. */
const ADVICE_BY_CODE: Readonly<Record<string, string>> = {
  ERR_POSTGRES_CONNECTION_REFUSED: UNREACHABLE,
  ERR_POSTGRES_CONNECTION_FAILED: UNREACHABLE,
  ERR_POSTGRES_CONNECTION_TIMEOUT: UNREACHABLE,
  ERR_POSTGRES_CONNECTION_CLOSED: 'broke the connection: try again',
  ERR_POSTGRES_TLS_NOT_AVAILABLE: 'offers no TLS, which its address asks for',
};

/** The TLS codes of a refused server certificate. */
const CERTIFICATE_CODE =
  /^(ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+|UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)\w*)$/;

/** An audit could not read a table or an index, for another reason than damage. The cause says why. */
export class FileUnread extends Error {
  override readonly name = 'FileUnread';
}

/** Returns the client's error among the causes of an error; null if there is none. */
export function postgresError(error: unknown): SQL.PostgresError | null {
  return withCauses(error).find((one) => one instanceof SQL.PostgresError) ?? null;
}

/** Returns the SQLSTATE of the server's error, such as `23505`; null for any other error. */
export function sqlState(error: unknown): string | null {
  return postgresError(error)?.errno ?? null;
}

/** Returns true if the connection broke. Work without a sent COMMIT is then rolled back. */
export function isConnectionBroken(error: unknown): boolean {
  const cause = postgresError(error);
  if (cause === null) return false;
  return cause.errno === undefined ? BROKEN_CODES.has(cause.code) : BROKEN_STATES.has(cause.errno);
}

/** Returns true if the server rolled the transaction back because of another one. It can be tried again. */
export function isConflict(error: unknown): boolean {
  return CONFLICT_STATES.has(sqlState(error) ?? '');
}

/** Returns true if the statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/**
 * Returns one sentence about a failure of PostgreSQL at this place (`databasePlace`), with advice; null for other
 * errors. It does not quote the error, because the server's messages contain values of rows.
 */
export function describePostgresError(place: string, error: unknown): string | null {
  const cause = postgresError(error);
  if (cause === null) {
    const code = certificateCode(error);
    return code === null
      ? null
      : `${place} has a certificate that is not trusted (${code}): name its authority with sslrootcert in the address, and the server as the certificate does.`;
  }
  const { errno: state, code } = cause;
  const advice =
    state === undefined
      ? ADVICE_BY_CODE[code]
      : ADVICE_BY_STATE.find(([start]) => state.startsWith(start))?.[1];
  const unread = withCauses(error).find((one) => one instanceof FileUnread);
  const of_what = unread === undefined ? '' : ` (${unread.message})`;
  return `${place} ${advice ?? `failed with the error ${state ?? code}`}${of_what}.`;
}

/** Returns the TLS code of a refused server certificate; null for other errors. */
function certificateCode(error: unknown): string | null {
  const codes = withCauses(error).map(systemErrorCode);
  return codes.find((code) => code !== undefined && CERTIFICATE_CODE.test(code)) ?? null;
}
