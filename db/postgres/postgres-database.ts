import type { AuditReport } from '../../src/store/audit-report.ts';
import type { Database, ServedDatabase, ServingParts, Writer } from '../../src/store/database.ts';
import type { MovementReader } from '../../src/store/movement-reader.ts';
import { newestMigration_ms } from '../schema-state.ts';
import { continueAudit, runAudit } from './audit.ts';
import { connectPostgres, type PgConnection } from './connection.ts';
import { consoleSecret } from './console-secret.ts';
import { knownMigrations } from './migrate.ts';
import { PostgresMovementReader } from './movement-reader.ts';
import { lastWritten_ms } from './newest-time.ts';
import { PostgresStore } from './postgres-store.ts';
import { lastWriter, noteVersion } from './program-versions.ts';
import type { NodeOptions } from './served-postgres-database.ts';

/** A command runs one statement after the other. */
const CONNECTIONS = 2;

/** All data in one PostgreSQL database, which any number of nodes serve at once. */
export class PostgresDatabase implements Database {
  readonly name: string;
  readonly store: PostgresStore;
  readonly movements: MovementReader;
  readonly newestMigration_ms = newestMigration_ms(knownMigrations());
  readonly backups = null;

  private constructor(
    private readonly node: NodeOptions,
    private readonly connection: PgConnection,
  ) {
    this.name = connection.place;
    this.store = new PostgresStore(connection.db);
    this.movements = new PostgresMovementReader(connection.db);
  }

  /**
   * Connects to a database of this program's schema. A node that serves uses the options. Rejects as `connectPostgres`
   * does.
   */
  static async open(node: NodeOptions): Promise<PostgresDatabase> {
    return new PostgresDatabase(node, await connectPostgres(node.url, { connections: CONNECTIONS }));
  }

  /** The connection, through which the schema is checked before the database is used. */
  get db(): PgConnection['db'] {
    return this.connection.db;
  }

  async signIn() {
    const { signInDatabase } = await import('./sign-in-database.ts');
    return signInDatabase(this.db);
  }

  audit(): Promise<AuditReport> {
    return runAudit(this.db);
  }

  continueAudit(now_ms: number): Promise<AuditReport> {
    return continueAudit(this.db, { now_ms });
  }

  /** Always true: the audit checks PostgreSQL's files, and a start need not. */
  isSound(): Promise<boolean> {
    return Promise.resolve(true);
  }

  lastWritten_ms(): Promise<number | null> {
    return lastWritten_ms(this.db);
  }

  lastWriter(): Promise<Writer | null> {
    return lastWriter(this.db);
  }

  noteVersion(version: string, now_ms: number): Promise<void> {
    return noteVersion(this.db, version, now_ms);
  }

  readonly consoleSecret = (): Promise<string> => consoleSecret(this.db);

  async serve(parts: ServingParts): Promise<ServedDatabase> {
    // Modules that only a service needs would slow every command down.
    const { ServedPostgresDatabase } = await import('./served-postgres-database.ts');
    return await ServedPostgresDatabase.open(this.node, parts);
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}
