import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Migrations, SchemaRefused } from '../../db/schema-state.ts';
import { backUp, removeOldBackups, removeUnfinishedBackups } from '../../db/sqlite/backup.ts';
import { connectDatabase, type Db } from '../../db/sqlite/connection.ts';
import { DataDirectoryInUse, LOCK_FILE, lockDataDirectory } from '../../db/sqlite/lock.ts';
import { bringUpToDate, knownMigrations, schemaState } from '../../db/sqlite/migrate.ts';
import { makePrivateFile } from '../../db/sqlite/private-file.ts';
import { lastWriter, noteVersion } from '../../db/sqlite/program-versions.ts';
import { errorMessage } from '../errors/error-message.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { OWNER_ONLY_DIRECTORY } from '../files/file-permissions.ts';
import { PROGRAM_VERSION } from '../program/build-info.ts';
import { systemClock } from '../time/clock.ts';
import { CommandFailed, NoData, OlderData } from './command-failed.ts';
import { adviceOn } from './file-advice.ts';
import { keepDirectoryPrivate, keepFilesPrivate, whyOpenToOthers } from './file-modes.ts';

/** The database's file in the data directory. */
export const DATABASE_FILE = 'tds.sqlite';

/** When two processes create a new database at once, one may fail. Its retry finds the database created. */
const OPEN_ATTEMPTS = 5;
const OPEN_RETRY_MS = 50;

/** Advice about SQLite's reasons for not opening a file, by the start of the code. */
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

/** Returns the innermost error, because drizzle wraps SQLite's. */
function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

function isFromSqlite(error: unknown): boolean {
  return systemErrorCode(error)?.startsWith('SQLITE') === true;
}

/** Returns one sentence about a failure of SQLite on this file, with advice; null for other errors. */
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

/** Creates a missing directory, and checks its permissions before it gets any data. */
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
 * Returns the reason, as one sentence, why a first start could not fill a directory without a database, or
 * null. Changes nothing.
 */
export function whyUnfillable(directory: string): string | null {
  try {
    accessSync(existingParent(resolve(directory)), constants.W_OK | constants.X_OK);
  } catch (error) {
    return unwritable(directory, error).message;
  }
  return whyOpenToOthers(directory);
}

/** Returns the longest existing part of the path. */
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
  // For codes without advice, missing write permission is the most likely reason.
  const advice = adviceOn(error);
  const is_about_rights = advice === null || code === 'EACCES' || code === 'EPERM';
  const text = is_about_rights
    ? `The data directory ${directory} cannot be written (${code}): give this user the right to write it or name another with --data.`
    : `The data directory ${directory} ${advice}, or name another with --data.`;
  return new CommandFailed(text, { cause: error });
}

/**
 * Returns true if the directory, which may not exist, has a database. Throws `CommandFailed` where this user
 * cannot read it, so that such a directory is not mistaken for an empty one.
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
    throw error instanceof CommandFailed ? error : unwritable(directory, error);
  }
}

/** The options of opening a data directory. */
export interface OpenDataOptions {
  /** Creates a missing directory (mode 0700) and database file (mode 0600). */
  readonly create: boolean;
  /** False leaves a database that is not of this version as it is, and throws `OlderData` or `NoData`. */
  readonly update?: boolean;
  /** The caller has claimed the directory (`claimDataDirectory`). */
  readonly claimed?: boolean;
  /** The program's migrations and version, replaced in tests. */
  readonly migrations?: Migrations;
  readonly version?: string;
}

/**
 * Claims the data directory for this server, and creates it when it is missing. Must precede any read or
 * change of its content. Returns the function that ends the claim. Throws `CommandFailed` with one sentence
 * of advice.
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

/**
 * Returns true if a server, or a command that updates the database, has claimed the directory, which may not
 * exist.
 */
export function isServerRunning(directory: string): boolean {
  if (!existsSync(join(directory, LOCK_FILE))) return false;
  const unclaim = claimForUpdate(directory);
  unclaim?.();
  return unclaim === null;
}

/**
 * Opens the database in a data directory, with this program's schema. An older schema is updated after a
 * backup, by the holder of the directory's claim, so not while a server runs. Removes other users' access to
 * the files. Throws `CommandFailed` with one sentence of advice.
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
  {
    update = true,
    claimed = false,
    migrations = knownMigrations(),
    version = PROGRAM_VERSION,
  }: OpenDataOptions,
): void {
  const found = schemaState($client, migrations);
  if (found === 'current') return;
  if (!update)
    throw found === 'new'
      ? missing(directory)
      : new OlderData(
          `${directory} is of an older version: the next start, or another command, backs it up and updates it.`,
        );
  const unclaim = claimed ? () => undefined : claimForUpdate(directory);
  try {
    // The previous holder of the claim may have updated it.
    const state = schemaState($client, migrations);
    if (state === 'current') return;
    if (unclaim === null) {
      throw new CommandFailed(
        `This version has to update the database in ${directory}, which a server or an update by another command uses: stop the server or wait for the command, then run this one again.`,
      );
    }
    if (state === 'older')
      process.stderr.write(
        `tds: the database is backed up and updated for this version now; a large one takes minutes.\n`,
      );
    removeUnfinishedBackups(directory, 'copy');
    const backup = state === 'older' ? backUp($client, systemClock.now_ms()) : null;
    // Before the update, because one that fails is tried again with each start, and each makes a copy.
    if (backup !== null) removeOldBackups(directory, systemClock.now_ms());
    bringUpToDate($client, migrations);
    noteVersion($client, version, systemClock.now_ms());
    if (backup === null) return;
    process.stderr.write(
      `tds: the database was updated for this version; as it was before, it is kept in ${backup}.\n`,
    );
  } finally {
    unclaim?.();
  }
}

/** Takes the claim for an update of the database; null while a server, or another update, has it. */
function claimForUpdate(directory: string): (() => void) | null {
  try {
    return lockDataDirectory(directory);
  } catch (error) {
    if (error instanceof DataDirectoryInUse) return null;
    throw error;
  }
}

/** Returns the sentence about a database with another schema, with both versions where they are known. */
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
