import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { type BunSQLiteDatabase, drizzle } from 'drizzle-orm/bun-sqlite';
import { migrate } from 'drizzle-orm/bun-sqlite/migrator';
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
 * Opens the database file, creating it when it is missing, and brings its schema up to date.
 * Throws what SQLite throws when the file cannot be opened or written, and `PragmaRefused`.
 */
export function openDatabase(path: string): Db {
  const client = new Database(path, { create: true, readwrite: true, strict: true });
  try {
    for (const [name, value, answer] of PRAGMAS) {
      client.run(`PRAGMA ${name} = ${value}`);
      const [row] = client.query<Record<string, string | number>, []>(`PRAGMA ${name}`).all();
      const actual = row === undefined ? undefined : Object.values(row)[0];
      if (actual !== answer) throw new PragmaRefused(`SQLite answered ${name} = ${actual}, not ${answer}`);
    }
    const db = drizzle(client, { schema });
    migrate(db, { migrationsFolder: join(import.meta.dir, 'migrations') });
    return db;
  } catch (error) {
    client.close();
    throw error;
  }
}

/** Runs `work` in one immediate transaction; it must be synchronous, because a commit happens at the first `await`. */
export function transact<T>(db: Db, work: () => NotPromise<T>): T {
  return db.transaction(() => work(), { behavior: 'immediate' });
}

/** Refuses functions that return a promise: bun:sqlite commits such a transaction before it is done. */
export type NotPromise<T> = T extends PromiseLike<unknown> ? never : T;
