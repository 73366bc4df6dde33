import { Database } from 'bun:sqlite';
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite';
import { SchemaRefused } from '../schema-state.ts';
import { bringUpToDate, schemaState } from './migrate.ts';

/** A connection to a database file. */
export type Db = BunSQLiteDatabase & { readonly $client: Database };

/** SQLite did not accept a pragma that the ledger needs. */
export class PragmaRefused extends Error {
  override readonly name = 'PragmaRefused';
}

/** The longest wait of a statement for another process's write, such as that of a `tds` command beside the server. */
const BUSY_TIMEOUT_MS = 5_000;

/** Pragmas that are set and then checked at every start, because the defaults differ and a refusal is silent. */
const PRAGMAS: readonly (readonly [name: string, value: string, answer: string | number])[] = [
  ['busy_timeout', String(BUSY_TIMEOUT_MS), BUSY_TIMEOUT_MS],
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['foreign_keys', 'ON', 1],
  ['temp_store', 'MEMORY', 2],
  ['trusted_schema', 'OFF', 0],
];

/**
 * Connects to a database file of any schema, and creates a missing one. Until `neverWait`, statements wait for other
 * processes' locks on the event loop. Throws SQLite's errors, and `PragmaRefused`.
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
    return drizzle(client);
  } catch (error) {
    client.close();
    throw error;
  }
}

/**
 * Connects to a database of this program's schema, which a new file gets. Refuses an older database, because an update
 * needs a backup and the data directory's lock (`openDataDirectory`). Throws SQLite's errors, `PragmaRefused` and
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

/** Connects to a database file of any schema, read-only. Throws SQLite's errors. */
export function openReadOnly(path: string): Db {
  return drizzle(new Database(path, { readonly: true, strict: true }));
}

/**
 * Makes a write that meets another process's lock fail at once with `SQLITE_BUSY`, instead of blocking the event loop.
 * It is for a connection whose writes go through `GroupCommit`.
 */
export function neverWait(db: Db): void {
  db.$client.run('PRAGMA busy_timeout = 0');
}

/** Runs synchronous `work` in one immediate transaction. A promise would be committed at its first `await`. */
export function transact<T>(db: Db, work: () => NotPromise<T>): T {
  const { $client } = db;
  // drizzle's own transaction takes a third longer, and a request has several.
  $client.run('BEGIN IMMEDIATE');
  try {
    const result = work();
    $client.run('COMMIT');
    return result;
  } catch (error) {
    // SQLite has already rolled back if the disk is full or broken.
    if ($client.inTransaction) $client.run('ROLLBACK');
    throw error;
  }
}

/** The type of any result but a promise, whose transaction bun:sqlite would commit too early. */
export type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;
