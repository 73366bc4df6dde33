import type { DBAdapterInstance } from 'better-auth';
import type { RateWindows } from '../limits/rate-windows.ts';
import type { Log } from '../log/log.ts';
import type { ProblemStep } from '../problems/problems.ts';
import type { Clock } from '../time/clock.ts';
import type { AuditReport } from './audit-report.ts';
import type { Backups } from './backups.ts';
import type { Books } from './books.ts';
import type { CatalogRecords } from './catalog-records.ts';
import type { HistoryRuns } from './history-runs.ts';
import type { MovementReader } from './movement-reader.ts';
import type { Store } from './store.ts';
import type { UsageReader } from './usage-reader.ts';

/** The version of this program that last wrote a database. */
export interface Writer {
  readonly version: string;
  readonly last_ms: number;
}

/** The parts of a service that its database uses. */
export interface ServingParts {
  readonly clock: Clock;
  /** The name of this process in the rows that it writes. */
  readonly process_id: string;
  readonly log: Log;
  /** Reports the cause of a failure outside of requests. */
  readonly report: (step: ProblemStep, error: unknown) => void;
  /** Called after every commit of requests with its duration, disk included, and its number of writes. */
  readonly onCommit: (duration_ms: number, writes: number) => void;
}

/** The use of a pool of connections. */
export interface PoolLoad {
  readonly connections_max: number;
  /** Transactions and single statements that have begun; those beyond `connections_max` wait. */
  readonly under_way: number;
}

/** The size and load of a database. */
export interface DatabaseState {
  /** The size of all stored data. */
  readonly bytes: number;
  /** The free bytes of its disk; null where that is on another machine. */
  readonly free_bytes: number | null;
  /** The pool of connections that requests share; null where there is none. */
  readonly pool: PoolLoad | null;
}

/** A database while a service answers requests on it. */
export interface ServedDatabase {
  readonly store: Store;
  readonly books: Books;
  /** The catalog, as requests read it. */
  readonly catalog: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>;
  /**
   * The rate windows that all services on the database share; null where the only service keeps them in
   * memory.
   */
  readonly windows: RateWindows | null;
  /** Long reads, which do not hold up requests. */
  readonly reader: UsageReader & MovementReader;
  readonly history: HistoryRuns;
  /** The database adapter for better-auth. */
  readonly signIn: DBAdapterInstance;
  /**
   * Commits a durable write that changes nothing, on the path of the writes of requests, and asks shared rate
   * windows. Rejects as they do.
   */
  readonly write: () => Promise<void>;
  /**
   * Returns true if an error says that the database is unreachable or silent, so that a retry may succeed.
   */
  readonly isAway: (error: unknown) => boolean;
  /** Returns the free bytes where the database is; null where that is another machine. */
  readonly freeBytes: (() => Promise<number>) | null;
  /** Returns the size and load of the database, for metrics. Rejects as its reads do. */
  readonly state: () => Promise<DatabaseState>;
  /** Resolves with the Unix milliseconds that all services on the database share. Rejects as its reads do. */
  readonly now_ms: () => Promise<number>;
  /**
   * Returns true if this service is to do the hourly work now. Of all services on a database, one does it
   * each hour.
   */
  readonly beginsHourlyRun: () => Promise<boolean>;
  /** Returns the time of the last hourly audit that found nothing wrong, of any service; null for none. */
  readonly auditedAt_ms: () => Promise<number | null>;
  /** Starts the database's background work. Called once, after the writes of the start. */
  startUpkeep(): void;
  /** Stops the work of `serve`, after the last request. The database stays open. */
  close(): Promise<void>;
}

/** The database, for commands and for the service. */
export interface Database {
  /** The name in messages: a path, or an address without its password. */
  readonly name: string;
  readonly store: Store;
  readonly movements: MovementReader;
  /** Returns the database adapter for better-auth, which is loaded only then. */
  signIn(): Promise<DBAdapterInstance>;
  /** Checks everything from the first entry on (`tds audit`). */
  audit(): Promise<AuditReport>;
  /**
   * Checks the entries since the last clean audit. The next call starts after this one if this one is clean.
   */
  continueAudit(now_ms: number): Promise<AuditReport>;
  /** Returns false if the structure is damaged; true also where the check would take more than a moment. */
  isSound(): Promise<boolean>;
  /**
   * Returns the time of the last write that the database knows of, or null for a new one. The clock cannot be
   * behind it.
   */
  lastWritten_ms(): Promise<number | null>;
  /** Returns the version of this program that last wrote it; null where none was noted. */
  lastWriter(): Promise<Writer | null>;
  /** Notes this version of the program as the last writer. */
  noteVersion(version: string, now_ms: number): Promise<void>;
  /** The time of the newest migration of this program; the program is not older than that. */
  readonly newestMigration_ms: number;
  /**
   * Opens a directory of backups with at most `kept` copies; null where the database's own tools make them.
   */
  readonly backups: ((directory: string, kept: number) => Backups) | null;
  /**
   * Returns the console's secret, which all services on the database share; null where it is in the data
   * directory.
   */
  readonly consoleSecret: (() => Promise<string>) | null;
  /** Opens the parts that only a service needs. A connection has one service at a time. */
  serve(parts: ServingParts): Promise<ServedDatabase>;
  close(): Promise<void>;
}
