import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Migrations, SchemaRefused } from '../../db/schema-state.ts';
import { backUp, removeOldBackups } from '../../db/sqlite/backup.ts';
import { connectDatabase, type Db } from '../../db/sqlite/connection.ts';
import { DataDirectoryInUse, LOCK_FILE, lockDataDirectory } from '../../db/sqlite/lock.ts';
import { bringUpToDate, knownMigrations, schemaState } from '../../db/sqlite/migrate.ts';
import { makePrivateFile } from '../../db/sqlite/private-file.ts';
import { lastWriter, noteVersion } from '../../db/sqlite/program-versions.ts';
import { systemClock } from '../clock.ts';
import { errorMessage } from '../error-message.ts';
import { OWNER_ONLY_DIRECTORY } from '../file-permissions.ts';
import { systemErrorCode } from '../system-error-code.ts';
import { CommandFailed, NoData } from './command-failed.ts';
import { adviceOn } from './file-advice.ts';
import { keepDirectoryPrivate, keepFilesPrivate, whyOpenToOthers } from './file-modes.ts';
import { PROGRAM_VERSION } from './program-version.ts';

/** The database's file in the data directory. */
export const DATABASE_FILE = 'tds.sqlite';

/** Two processes that meet on a new database get in each other's way once: the second finds it made when it retries. */
const OPEN_ATTEMPTS = 5;
const OPEN_RETRY_MS = 50;

/** What a person can do about SQLite's reasons not to open a file, by the start of the code. */
const SQLITE_ADVICE: readonly (readonly [code: string, advice: string])[] = [
  ['SQLITE_NOTADB', 'is not a database: move it away or name another directory with --data'],
  ['SQLITE_CORRUPT', 'is damaged: restore it from a backup ("tds restore FILE --replace")'],
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

function isFromSqlite(error: unknown): boolean {
  return systemErrorCode(error)?.startsWith('SQLITE') === true;
}

/** One sentence about a failure of SQLite on this file, with what to do; null when the error is another. */
export function describeDatabaseError(path: string, error: unknown): string | null {
  const cause = rootCause(error);
  const advice = adviceFor(path, cause);
  if (advice !== null) return advice;
  return isFromSqlite(cause) ? `${path} failed: ${errorMessage(cause)}.` : null;
}

function adviceFor(path: string, cause: unknown): string | null {
  const code = systemErrorCode(cause);
  const known = SQLITE_ADVICE.find(([start]) => code?.startsWith(start));
  return known === undefined ? null : `${path} ${known[1]}.`;
}

function missing(directory: string): CommandFailed {
  return new NoData(
    `There is no data in ${directory}: run "tds init --data ${directory}" first or name another directory with --data.`,
  );
}

/** Makes the directory when it is missing, and looks who can reach it before anything is put into it. */
function prepareDirectory(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: OWNER_ONLY_DIRECTORY });
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      throw new CommandFailed(notDirectory(directory), { cause: error });
    }
    throw unwritable(directory, error);
  }
  keepDirectoryPrivate(directory);
}

/**
 * Why a first start could not fill the directory, in which `hasDatabase` saw none, as one sentence; null where it could.
 * Nothing is changed.
 */
export function whyUnfillable(directory: string): string | null {
  try {
    accessSync(existingParent(resolve(directory)), constants.W_OK | constants.X_OK);
  } catch (error) {
    return unwritable(directory, error).message;
  }
  return whyOpenToOthers(directory);
}

/** The path, or what there is of it. */
export function existingParent(path: string): string {
  return existsSync(path) ? path : existingParent(dirname(path));
}

function prepareFile(directory: string): void {
  try {
    makePrivateFile(join(directory, DATABASE_FILE));
  } catch (error) {
    throw unwritable(directory, error);
  }
}

function notDirectory(directory: string): string {
  return `${directory} is not a directory: name another with --data.`;
}

function unwritable(directory: string, error: unknown): CommandFailed {
  const code = systemErrorCode(error) ?? error;
  // Where not even the code is one of those that say what to do, the right to write is what is usually missing.
  const advice = adviceOn(error);
  const is_about_rights = advice === null || code === 'EACCES' || code === 'EPERM';
  const text = is_about_rights
    ? `The data directory ${directory} cannot be written (${code}): give this user the right to write it or name another with --data.`
    : `The data directory ${directory} ${advice}, or name another with --data.`;
  return new CommandFailed(text, { cause: error });
}

/**
 * Whether the directory, which need not be there, has a database. Throws `CommandFailed` where this user cannot see
 * that: such a directory must not be taken for an empty one.
 */
export function hasDatabase(directory: string): boolean {
  try {
    return statSync(join(directory, DATABASE_FILE), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOTDIR')
      throw new CommandFailed(notDirectory(directory), { cause: error });
    throw unwritable(directory, error);
  }
}

function requireDirectory(directory: string): void {
  const path = join(directory, DATABASE_FILE);
  if (!hasDatabase(directory)) throw missing(directory);
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

/** How a data directory is opened. */
export interface OpenDataOptions {
  /** Makes a missing directory (mode 0700) and database file (mode 0600). */
  readonly create: boolean;
  /** The caller has claimed the directory (`claimDataDirectory`). */
  readonly claimed?: boolean;
  /** What this program knows, and its version, for tests. */
  readonly migrations?: Migrations;
  readonly version?: string;
}

/**
 * Claims the data directory for this server, making it when it is missing; nothing in it is read or changed before.
 * Returns the function that gives the claim back. Throws `CommandFailed` with one sentence that says what to do.
 */
export function claimDataDirectory(directory: string): () => void {
  prepareDirectory(directory);
  try {
    return lockDataDirectory(directory);
  } catch (error) {
    if (error instanceof DataDirectoryInUse) {
      throw new CommandFailed(
        `Another server is running on ${directory}: stop it, or name another directory with --data.`,
        { cause: error },
      );
    }
    if (isFromSqlite(error)) throw unusable(join(directory, LOCK_FILE), error);
    throw unwritable(directory, error);
  }
}

/** Whether a server has claimed the data directory, which need not be there, or a command that updates its database. */
export function isServerRunning(directory: string): boolean {
  if (!existsSync(join(directory, LOCK_FILE))) return false;
  const unclaim = claimForUpdate(directory);
  unclaim?.();
  return unclaim === null;
}

/**
 * Opens the database in a data directory, with a schema that is this program's. An older schema is brought up to date
 * by whoever has the directory's claim, after a backup; so not beneath a running server. Other users' access to the
 * files is taken away. Throws `CommandFailed` with one sentence that says what to do.
 */
export function openDataDirectory(directory: string, options: OpenDataOptions): Db {
  const path = join(directory, DATABASE_FILE);
  if (options.create) {
    prepareDirectory(directory);
    prepareFile(directory);
  }
  requireDirectory(directory);
  keepDirectoryPrivate(directory);
  keepFilesPrivate(directory, DATABASE_FILE);
  const db = connect(path);
  try {
    ensureSchema(db, directory, options);
    return db;
  } catch (error) {
    const refused = error instanceof SchemaRefused ? refusedSchema(db, path, error, options) : null;
    db.$client.close();
    if (refused !== null) throw refused;
    throw error instanceof CommandFailed ? error : unusable(path, error);
  }
}

function connect(path: string): Db {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return connectDatabase(path);
    } catch (error) {
      if (attempt === OPEN_ATTEMPTS) throw unusable(path, error);
      Bun.sleepSync(OPEN_RETRY_MS);
    }
  }
}

function ensureSchema(
  { $client }: Db,
  directory: string,
  { claimed = false, migrations = knownMigrations(), version = PROGRAM_VERSION }: OpenDataOptions,
): void {
  if (schemaState($client, migrations) === 'current') return;
  const unclaim = claimed ? () => undefined : claimForUpdate(directory);
  try {
    // Whoever had the claim before may have done it.
    const state = schemaState($client, migrations);
    if (state === 'current') return;
    if (unclaim === null) {
      throw new CommandFailed(
        `A server is running on ${directory} with a database that this version has to update: stop the server, then run this command again.`,
      );
    }
    const backup = state === 'older' ? backUp($client, systemClock.now_ms()) : null;
    bringUpToDate($client, migrations);
    noteVersion($client, version, systemClock.now_ms());
    if (backup === null) return;
    removeOldBackups(directory);
    process.stderr.write(
      `tds: the database was updated for this version; as it was before, it is kept in ${backup}.\n`,
    );
  } finally {
    unclaim?.();
  }
}

/** The claim of a command that has to update the database; null while a server, or another update, has it. */
function claimForUpdate(directory: string): (() => void) | null {
  try {
    return lockDataDirectory(directory);
  } catch (error) {
    if (error instanceof DataDirectoryInUse) return null;
    throw error;
  }
}

/** The sentence about a database whose schema is not this program's, with both versions where they are known. */
function refusedSchema(
  { $client }: Db,
  path: string,
  error: SchemaRefused,
  { version = PROGRAM_VERSION }: OpenDataOptions,
): CommandFailed {
  const writer = lastWriter($client)?.version ?? version;
  const versions =
    writer === version ? '' : `, last written by version ${writer} while this is version ${version},`;
  return new CommandFailed(
    `${path}${versions} ${error.message}: use the program that made it, or name another directory with --data.`,
    { cause: error },
  );
}

function unusable(path: string, error: unknown): CommandFailed {
  const cause = rootCause(error);
  const text =
    adviceFor(path, cause) ??
    `${path} cannot be used (${errorMessage(cause)}): name another directory with --data.`;
  return new CommandFailed(text, { cause: error });
}
