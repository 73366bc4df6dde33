import { InvalidArgumentError } from 'commander';
import { MASK } from './setting.ts';

/** The address of the SQLite database in the data directory. */
export const SQLITE = 'sqlite:';

/** Instructions for backing up a PostgreSQL database. */
export const POSTGRES_BACKUPS =
  'back PostgreSQL up with pg_basebackup and its write-ahead log (the state of every second), or pg_dump (a copy)';

/** Instructions for restoring one. */
export const POSTGRES_RESTORES =
  'start PostgreSQL on what pg_basebackup wrote, or put a dump of pg_dump back with pg_restore, while no service runs';

const POSTGRES_PROTOCOLS = ['postgres:', 'postgresql:'];

/** Returns the address if it is one of a supported database. Throws `InvalidArgumentError`. */
export function parseDatabaseAddress(text: string): string {
  if (text === SQLITE || isPostgres(text)) return text;
  throw new InvalidArgumentError(
    'It must be sqlite: (a file in the data directory) or an address such as postgres://user@host:5432/name.',
  );
}

/** Returns true if the database is in PostgreSQL. */
export function isPostgres(address: string): boolean {
  const url = URL.parse(address);
  // Without the two slashes no part is recognized as a password, so that none could be hidden.
  return (
    url !== null && POSTGRES_PROTOCOLS.includes(url.protocol) && url.href.startsWith(`${url.protocol}//`)
  );
}

/** Returns the address with its password masked. */
export function hiddenPassword(address: string): string {
  if (!isPostgres(address)) return address;
  const url = new URL(address);
  if (url.password !== '') url.password = MASK;
  // The password may also be a parameter, as libpq accepts it.
  if (url.searchParams.has('password')) url.searchParams.set('password', MASK);
  return url.href;
}

/** Returns the address without its password. */
export function withoutPassword(address: string): string {
  const url = new URL(address);
  url.password = '';
  // Only where there is one, because deleting rewrites the other parameters.
  if (url.searchParams.has('password')) url.searchParams.delete('password');
  return url.href;
}

/** Returns the address with the password, where it has none yet. */
export function withPassword(address: string, password: string | undefined): string {
  const url = new URL(address);
  // The setter leaves a percent sign unchanged, which the client would decode.
  if (url.password === '' && password !== undefined) url.password = encodeURIComponent(password);
  return url.href;
}
