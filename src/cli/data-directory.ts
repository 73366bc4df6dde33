import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Db, openDatabase } from '../../db/connection.ts';
import { CommandFailed } from './command-failed.ts';

/** The database's file in the data directory. */
export const DATABASE_FILE = 'tds.sqlite';

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

/** What a person can do about SQLite's reasons not to open a file, by the start of the code. */
const SQLITE_ADVICE: readonly (readonly [code: string, advice: string])[] = [
  ['SQLITE_NOTADB', 'is not a database: move it away or name another directory with --data'],
  ['SQLITE_CORRUPT', 'is damaged: restore it from a backup'],
  ['SQLITE_BUSY', 'is busy: try again when the other command is done'],
  ['SQLITE_FULL', 'cannot grow: make room on the disk'],
  [
    'SQLITE_READONLY',
    'cannot be written: give this user the right to write it or name another directory with --data',
  ],
  [
    'SQLITE_CANTOPEN',
    'cannot be opened: give this user the right to it or name another directory with --data',
  ],
  ['SQLITE_PERM', 'cannot be opened: give this user the right to it or name another directory with --data'],
  ['SQLITE_IOERR', 'cannot be read or written: check the disk'],
];

/** The innermost error: drizzle wraps what SQLite throws. */
function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** One sentence about a failure of SQLite on this file, with what to do; null when the error is another. */
export function describeDatabaseError(path: string, error: unknown): string | null {
  const cause = rootCause(error);
  const code = codeOf(cause);
  const known = SQLITE_ADVICE.find(([start]) => code.startsWith(start));
  if (known !== undefined) return `${path} ${known[1]}.`;
  return code.startsWith('SQLITE') && cause instanceof Error ? `${path} failed: ${cause.message}.` : null;
}

function missing(directory: string): CommandFailed {
  return new CommandFailed(
    `There is no data in ${directory}: run "tds init --data ${directory}" first or name another directory with --data.`,
  );
}

function prepareDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
    closeSync(openSync(join(directory, DATABASE_FILE), 'a', FILE_MODE));
  } catch (error) {
    throw new CommandFailed(
      `The data directory ${directory} cannot be written (${codeOf(error)}): give this user the right to write it or name another with --data.`,
      { cause: error },
    );
  }
}

function requireDirectory(directory: string): void {
  const path = join(directory, DATABASE_FILE);
  if (!existsSync(path)) throw missing(directory);
  try {
    if (!statSync(path).isFile())
      throw new CommandFailed(`${path} is not a file: name another directory with --data.`);
    accessSync(directory, constants.W_OK);
    accessSync(path, constants.W_OK);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(
      `The data directory ${directory} cannot be written: give this user the right to write it or name another with --data.`,
      { cause: error },
    );
  }
}

/**
 * Opens the database in a data directory and brings its schema up to date. With `create`, a missing directory (mode
 * 0700) and database file (mode 0600) are made. Throws `CommandFailed` with one sentence that says what to do.
 */
export function openDataDirectory(directory: string, options: { readonly create: boolean }): Db {
  const path = join(directory, DATABASE_FILE);
  if (options.create) prepareDirectory(directory);
  requireDirectory(directory);
  try {
    return openDatabase(path);
  } catch (error) {
    const cause = rootCause(error);
    const text =
      describeDatabaseError(path, error) ??
      `${path} cannot be used: ${cause instanceof Error ? cause.message : cause}.`;
    throw new CommandFailed(text, { cause: error });
  }
}
