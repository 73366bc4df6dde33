import type { DBAdapterInstance } from 'better-auth';
import type { CatalogRecords } from './catalog/catalog-records.ts';
import type { Clock } from './clock.ts';
import type { Books } from './ledger/books.ts';
import type { MovementReader } from './ledger/movement-reader.ts';
import type { RateWindows } from './limits/rate-windows.ts';
import type { AuditReport } from './ops/audit-report.ts';
import type { Backups } from './ops/backups.ts';
import type { HistoryRuns } from './ops/history-runs.ts';
import type { Log } from './ops/log.ts';
import type { DatabaseState } from './ops/metrics.ts';
import type { ProblemStep } from './problems/problems.ts';
import type { Store } from './store.ts';
import type { UsageReader } from './usage/usage-reader.ts';

/** The version of this program that last wrote a database. */
export interface Writer {
  readonly version: string;
  readonly last_ms: number;
}

/** What a database tells the service that works on it. */
export interface ServingParts {
  readonly clock: Clock;
  /** Names this process in what it writes. */
  readonly process_id: string;
  readonly log: Log;
  /** Gets the cause of what fails without a request. */
  readonly report: (step: ProblemStep, error: unknown) => void;
  /** Is told of every commit of requests: how long it took, to the disk, and how many writes were in it. */
  readonly onCommit: (duration_ms: number, writes: number) => void;
}

/** A database while a service answers requests on it. */
export interface ServedDatabase {
  readonly store: Store;
  readonly books: Books;
  /** The catalog, as requests read it. */
  readonly catalog: Pick<CatalogRecords, 'findModel' | 'findModelByAlias' | 'allModels'>;
  /** The rate windows of all services on the database; null where there is one, which has them in its memory. */
  readonly windows: RateWindows | null;
  /** Reads that may take long, beside the requests. */
  readonly reader: UsageReader & MovementReader;
  readonly history: HistoryRuns;
  /** The database as better-auth takes it. */
  readonly signIn: DBAdapterInstance;
  /** A durable write that changes nothing and goes the way of the writes of requests. Rejects as they do. */
  readonly write: () => Promise<void>;
  /** Whether an error says that the database cannot be reached or does not answer: the same may succeed in a moment. */
  readonly isAway: (error: unknown) => boolean;
  /** Free bytes where the database is; null where that is another machine. */
  readonly freeBytes: (() => Promise<number>) | null;
  /** What it takes, for whoever watches the service. Rejects as its reads do. */
  readonly state: () => Promise<DatabaseState>;
  /** Whether the hourly work is this service's to do now: of all services on a database one does it, once an hour. */
  readonly beginsHourlyRun: () => Promise<boolean>;
  /** What the database needs while requests are answered. Called once, when everything of the start is written. */
  startUpkeep(): void;
  /** Ends what was begun for the service, after its last request. The database stays open. */
  close(): Promise<void>;
}

/** Where everything is kept, for commands and for the service. */
export interface Database {
  /** How messages name it: a path, or an address without its password. */
  readonly name: string;
  readonly store: Store;
  readonly movements: MovementReader;
  /** The database as better-auth takes it, which is loaded only then. */
  signIn(): Promise<DBAdapterInstance>;
  /** Checks everything from the first entry on (`tds audit`). */
  audit(): Promise<AuditReport>;
  /** Checks what is new since the last clean audit, which a clean one then is. */
  continueAudit(now_ms: number): Promise<AuditReport>;
  /** Whether its structure is sound; true also where finding that out takes more than a moment. */
  isSound(): Promise<boolean>;
  /** When it was last written, as far as it says: the clock cannot be behind that. Null for a new one. */
  lastWritten_ms(): Promise<number | null>;
  /** Which version of this program last wrote it; null where none has noted that. */
  lastWriter(): Promise<Writer | null>;
  /** Notes that this version of the program writes it. */
  noteVersion(version: string, now_ms: number): Promise<void>;
  /** When the newest schema that this program knows was made: the program is not older than that. */
  readonly newestMigration_ms: number;
  /** Copies in a directory, at most `kept` of them; null where the database's own tools make them. */
  readonly backups: ((directory: string, kept: number) => Backups) | null;
  /** The secret of the console, which all services on the database have; null where the data directory has it. */
  readonly consoleSecret: (() => Promise<string>) | null;
  /** Opens what a service needs beside the commands. A connection has one service at a time. */
  serve(parts: ServingParts): Promise<ServedDatabase>;
  close(): Promise<void>;
}
