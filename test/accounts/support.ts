import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Db, openDatabase } from '../../db/sqlite/connection.ts';
import type { Clock } from '../../src/time/clock.ts';
import { migratedFile } from '../support/sqlite-database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** A clock that a test sets; both times go forward together. */
export class TestClock implements Clock {
  #now_ms: number;

  constructor(now_ms: number = Date.UTC(2026, 0, 15)) {
    this.#now_ms = now_ms;
  }

  now_ms(): number {
    return this.#now_ms;
  }

  monotonic_ms(): number {
    return this.#now_ms;
  }

  advance(ms: number): void {
    this.#now_ms += ms;
  }
}

/** A migrated database in a new folder, or one with the contents of that file. */
export function temporaryDatabase(file: Uint8Array = migratedFile()): {
  readonly db: Db;
  readonly directory: string;
  readonly path: string;
  remove(): void;
} {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'tds.sqlite');
  writeFileSync(path, file);
  const db = openDatabase(path);
  // These tests are about rules, not about power cuts: they need not wait for the disk.
  db.$client.run('PRAGMA synchronous = OFF');
  return {
    db,
    directory: directory.path,
    path,
    remove: () => {
      db.$client.close();
      directory.remove();
    },
  };
}
