import { Database } from 'bun:sqlite';
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite';
import { SchemaRefused } from '../schema-state.ts';
import { bringUpToDate, schemaState } from './migrate.ts';
import * as schema from './schema.ts';

/** The one handle through which the service reads and writes its data. */
export type Db = BunSQLiteDatabase<typeof schema> & { readonly $client: Database };

/** A pragma that SQLite did not take: the file system or the build cannot give what the ledger needs. */
export class PragmaRefused extends Error {
  override readonly name = 'PragmaRefused';
}

/** How long a statement waits for another process (a `tds` command beside the server) to finish its write. */
const BUSY_TIMEOUT_MS = 5_000;

/** Set and then checked at every start, because the defaults are other and a refusal is silent. */
const PRAGMAS: readonly (readonly [name: string, value: string, answer: string | number])[] = [
  ['busy_timeout', String(BUSY_TIMEOUT_MS), BUSY_TIMEOUT_MS],
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['foreign_keys', 'ON', 1],
  ['temp_store', 'MEMORY', 2],
  ['trusted_schema', 'OFF', 0],
];

/**
 * Connects to the database file, creating it when it is missing, whatever schema it has. Its statements wait for other
 * processes' locks on the event loop, until `neverWait`. Throws what SQLite throws, and `PragmaRefused`.
 */
export function connectDatabase(path: string): Db {
  const client = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    for (const [name, value, answer] of PRAGMAS) {
      client.run(`PRAGMA ${name} = ${value}`);
      const [row] = client.query<Record<string, string | number>, []>(`PRAGMA ${name}`).all();
      const actual = row === undefined ? undefined : Object.values(row)[0];
      if (actual !== answer) throw new PragmaRefused(`SQLite answered ${name} = ${actual}, not ${answer}`);
    }
    return drizzle(client, { schema });
  } catch (error) {
    client.close();
    throw error;
  }
}

/**
 * Connects to a database of this program's schema; a new file gets it. An older database is refused, because updating
 * it needs a backup and the data directory's lock (`openDataDirectory`). Throws what SQLite throws, `PragmaRefused` and
 * `SchemaRefused`.
 */
export function openDatabase(path: string): Db {
  const db = connectDatabase(path);
  try {
    const state = schemaState(db.$client);
    if (state === 'older') throw new SchemaRefused('was made by an older version');
    if (state === 'new') bringUpToDate(db.$client);
    return db;
  } catch (error) {
    db.$client.close();
    throw error;
  }
}

/** Connects to a database file that is not to be changed, whatever schema it has. Throws what SQLite throws. */
export function openReadOnly(path: string): Db {
  return drizzle(new Database(path, { readonly: true, strict: true }), { schema });
}

/**
 * From now on a write that meets another process's lock fails at once with `SQLITE_BUSY`, instead of waiting on the
 * event loop. For a connection whose writes go through `GroupCommit`.
 */
export function neverWait(db: Db): void {
  db.$client.run('PRAGMA busy_timeout = 0');
}

/** Runs `work` in one immediate transaction; it must be synchronous, because a commit happens at the first `await`. */
export function transact<T>(db: Db, work: () => NotPromise<T>): T {
  const { $client } = db;
  // drizzle's own transaction takes a third longer, several times a request.
  $client.run('BEGIN IMMEDIATE');
  try {
    const result = work();
    $client.run('COMMIT');
    return result;
  } catch (error) {
    // SQLite has rolled back already when the disk is full or broken.
    if ($client.inTransaction) $client.run('ROLLBACK');
    throw error;
  }
}

/** Refuses functions that return a promise: bun:sqlite commits such a transaction before it is done. */
export type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;
