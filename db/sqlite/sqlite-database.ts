import { statSync } from 'node:fs';
import type { AuditReport } from '../../src/store/audit-report.ts';
import type { Backups } from '../../src/store/backups.ts';
import type { Database, ServedDatabase, ServingParts, Writer } from '../../src/store/database.ts';
import type { MovementReader } from '../../src/store/movement-reader.ts';
import { newestMigration_ms } from '../schema-state.ts';
import { continueAudit, runAudit } from './audit.ts';
import { isSound } from './check-file.ts';
import type { Db } from './connection.ts';
import type { GroupCommitOptions } from './group-commit.ts';
import { knownMigrations } from './migrate.ts';
import { SqliteMovementReader } from './movement-reader.ts';
import { lastWritten_ms } from './newest-time.ts';
import { lastWriter, noteVersion } from './program-versions.ts';
import { SqliteBackups } from './sqlite-backups.ts';
import { SqliteStore } from './sqlite-store.ts';

/** The largest database that a start reads as a whole, in about two seconds. */
const CHECKED_BYTES_MAX = 256 * 1_024 * 1_024;

/** All data in one file. One process at a time serves it (`lockDataDirectory`). Commands work beside it. */
export class SqliteDatabase implements Database {
  readonly name: string;
  readonly store: SqliteStore;
  readonly movements: MovementReader;
  readonly newestMigration_ms = newestMigration_ms(knownMigrations());
  readonly consoleSecret = null;

  /** `writes` bounds the waits of writes for another process's lock. */
  constructor(
    private readonly db: Db,
    private readonly writes?: Omit<GroupCommitOptions, 'onCommit'>,
  ) {
    this.name = db.$client.filename;
    this.store = new SqliteStore(db, writes);
    this.movements = new SqliteMovementReader(db);
  }

  async signIn() {
    const { signInDatabase } = await import('./sign-in-database.ts');
    return signInDatabase(this.db, this.store.outside);
  }

  audit(): Promise<AuditReport> {
    return Promise.try(() => runAudit(this.db));
  }

  continueAudit(now_ms: number): Promise<AuditReport> {
    return Promise.try(() => continueAudit(this.db, { now_ms }));
  }

  isSound(): Promise<boolean> {
    return Promise.try(() => statSync(this.name).size > CHECKED_BYTES_MAX || isSound(this.db.$client));
  }

  lastWritten_ms(): Promise<number | null> {
    return Promise.try(() => lastWritten_ms(this.db.$client));
  }

  lastWriter(): Promise<Writer | null> {
    return Promise.try(() => lastWriter(this.db.$client));
  }

  noteVersion(version: string, now_ms: number): Promise<void> {
    return Promise.try(() => noteVersion(this.db.$client, version, now_ms));
  }

  readonly backups = (directory: string, kept: number): Backups =>
    new SqliteBackups(this.name, directory, kept);

  async serve(parts: ServingParts): Promise<ServedDatabase> {
    // Modules that only a service needs would slow every command down.
    const { ServedSqliteDatabase } = await import('./served-sqlite-database.ts');
    return new ServedSqliteDatabase(this.db, parts, this.writes);
  }

  close(): Promise<void> {
    return Promise.try(() => this.db.$client.close());
  }
}
