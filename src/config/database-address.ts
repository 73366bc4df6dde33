import { InvalidArgumentError } from 'commander';
import { MASK } from './setting.ts';

/** The address of the database that is a file in the data directory. */
export const SQLITE = 'sqlite:';

/** How a database in PostgreSQL is backed up. */
export const POSTGRES_BACKUPS =
  'back PostgreSQL up with pg_basebackup and its write-ahead log (the state of every second), or pg_dump (a copy)';

/** How it is put back. */
export const POSTGRES_RESTORES =
  'start PostgreSQL on what pg_basebackup wrote, or put a dump of pg_dump back with pg_restore, while no service runs';

const POSTGRES_PROTOCOLS = ['postgres:', 'postgresql:'];

/** The address, when it is one of a database that this program knows. Throws `InvalidArgumentError`. */
export function parseDatabaseAddress(text: string): string {
  if (text === SQLITE || isPostgres(text)) return text;
  throw new InvalidArgumentError(
    'It must be sqlite: (a file in the data directory) or an address such as postgres://user@host:5432/name.',
  );
}

/** Whether everything is kept in PostgreSQL. */
export function isPostgres(address: string): boolean {
  const url = URL.parse(address);
  // Without the two slashes nothing of it is known to be a password, so that none could be hidden.
  return (
    url !== null && POSTGRES_PROTOCOLS.includes(url.protocol) && url.href.startsWith(`${url.protocol}//`)
  );
}

/** The address without its password, which is written anew where there is one. */
export function hiddenPassword(address: string): string {
  if (!isPostgres(address)) return address;
  const url = new URL(address);
  if (url.password !== '') url.password = MASK;
  // Also given as a parameter, as libpq takes it.
  if (url.searchParams.has('password')) url.searchParams.set('password', MASK);
  return url.href;
}

/** The address without its password. */
export function withoutPassword(address: string): string {
  const url = new URL(address);
  url.password = '';
  // Only where it is one: what is left would be written anew.
  if (url.searchParams.has('password')) url.searchParams.delete('password');
  return url.href;
}

/** The address with the password, where it has none yet. */
export function withPassword(address: string, password: string | undefined): string {
  const url = new URL(address);
  // The setter leaves a percent sign as it is, which the client would decode.
  if (url.password === '' && password !== undefined) url.password = encodeURIComponent(password);
  return url.href;
}
