import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Db, openDatabase } from '../../db/connection.ts';
import { CommandFailed } from './command-failed.ts';

/** The database's file in the data directory. */
export const DATABASE_FILE = 'tds.sqlite';

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

/** Two processes that meet on a new database get in each other's way once: the second finds it made when it retries. */
const OPEN_ATTEMPTS = 5;
const OPEN_RETRY_MS = 50;

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
  const advice = adviceFor(path, cause);
  if (advice !== null) return advice;
  return codeOf(cause).startsWith('SQLITE') && cause instanceof Error
    ? `${path} failed: ${cause.message}.`
    : null;
}

function adviceFor(path: string, cause: unknown): string | null {
  const code = codeOf(cause);
  const known = SQLITE_ADVICE.find(([start]) => code.startsWith(start));
  return known === undefined ? null : `${path} ${known[1]}.`;
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
    const code = codeOf(error);
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      throw new CommandFailed(`${directory} is not a directory: name another with --data.`, { cause: error });
    }
    throw new CommandFailed(
      `The data directory ${directory} cannot be written (${code}): give this user the right to write it or name another with --data.`,
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
  for (let attempt = 1; ; attempt += 1) {
    try {
      return openDatabase(path);
    } catch (error) {
      if (attempt === OPEN_ATTEMPTS) throw unusable(path, error);
      Bun.sleepSync(OPEN_RETRY_MS);
    }
  }
}

function unusable(path: string, error: unknown): CommandFailed {
  const cause = rootCause(error);
  const text =
    adviceFor(path, cause) ??
    `${path} is no database of this version (${cause instanceof Error ? cause.message : cause}): name another directory with --data.`;
  return new CommandFailed(text, { cause: error });
}
