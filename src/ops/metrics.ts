import type { EvaluatorCounts } from '../../native/engine.ts';
import type { Books } from '../ledger/books.ts';
import type { TurnsLoad } from '../limits/model-turns.ts';
import type { LifecycleStatus } from '../models/lifecycle.ts';
import type { ObservedUpstream } from '../models/model-life.ts';
import type { Problems } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import type { BackupFile } from './backups.ts';
import type { Readiness } from './readiness.ts';

/** A request that got its response, in words of which there are few. */
export interface AnsweredRequest {
  /** The path of a route, or a word for one of the console's; null for every path that the service does not know. */
  readonly endpoint: string | null;
  /** Null for requests that ask for no decision, or were refused before their mode was known. */
  readonly mode: Mode | null;
  /** The id of the catalog's model that was asked; null for requests that were refused before it was known. */
  readonly model: string | null;
  /** One of the codes of the API or of the console; null for success. */
  readonly code: string | null;
  /** Of the response. */
  readonly status: number;
}

/** The time of a request that got as far as the model; the three parts make the whole. */
export interface DecisionTimes {
  readonly model: string;
  readonly mode: Mode;
  /** Everything of ours: reading, planning, the books, the response. */
  readonly platform_ms: number;
  /** From the hold to the first turn at the model, a load of the model included. */
  readonly queue_ms: number;
  /** From the first turn to the answer. */
  readonly model_ms: number;
}

/** A request that was answered and charged. */
export interface ChargedDecision {
  readonly model: string;
  readonly mode: Mode;
  readonly input_tokens: number;
  readonly questions: number;
  readonly cost_micros: number;
}

/** One of the models that the service runs. */
export interface ObservedModel {
  /** Its id in the catalog. */
  readonly id: string;
  readonly status: () => LifecycleStatus;
  /** Undefined while no engine is loaded, or where none counts. */
  readonly counts: () => EvaluatorCounts | undefined;
  /** The members of its pool; none for a model of this process. */
  readonly upstreams: () => readonly ObservedUpstream[];
}

/** What a database takes, and has left. */
export interface DatabaseState {
  /** Everything that it has stored. */
  readonly bytes: number;
  /** Of the disk that it lies on; null where that is another machine. */
  readonly free_bytes: number | null;
  /** The pool of connections that requests share; null where there is none. */
  readonly pool: PoolLoad | null;
}

/** How much of a pool of connections is in use. */
export interface PoolLoad {
  readonly connections_max: number;
  /** Transactions and single statements that have begun; those beyond `connections_max` wait. */
  readonly under_way: number;
}

/** How the backups of the schedule stand. */
export interface BackupState {
  readonly every_ms: number;
  /** Null where there is none. */
  readonly newest: BackupFile | null;
  /** Whether the last try failed. */
  readonly has_failed: boolean;
}

/** How much of what the process may have open it has open. */
export interface ServerLoad {
  readonly connections: number;
  readonly connections_max: number;
  readonly descriptors: number;
  readonly descriptors_max: number;
}

/** What is looked at when metrics are read, and costs nothing before. */
export interface MetricsSources {
  /** Those that the catalog has opened now. */
  readonly models: () => readonly ObservedModel[];
  /** Of all models together. */
  readonly turnsLoad: () => TurnsLoad;
  readonly books: Pick<Books, 'open' | 'unwritten'>;
  readonly problems: Pick<Problems, 'counts'>;
  readonly readiness: Pick<Readiness, 'failing'>;
  /** Rejects where the database does not say. */
  readonly databaseState: () => Promise<DatabaseState>;
  /** Wall-clock Unix milliseconds. */
  readonly now_ms: () => number;
}

/** Takes what happens, for whoever watches the service. Nothing here throws or waits. */
export interface Metrics {
  requestAnswered(request: AnsweredRequest): void;
  decisionTimed(times: DecisionTimes): void;
  decisionCharged(decision: ChargedDecision): void;
  /** A request got the answer of an earlier one with its idempotency key. */
  decisionReplayed(decision: Pick<ChargedDecision, 'model' | 'mode'>): void;
  /** One durable commit of so many writes. */
  committed(duration_ms: number, writes: number): void;
  /** An audit has ended with so many violations, at a wall-clock time. */
  audited(violations: number, at_ms: number): void;
  /** Names what is looked at when metrics are read. Called once. */
  watch(sources: MetricsSources): void;
}

function nothing(): void {
  // Nobody watches.
}

/** For a service that nobody watches. */
export const NO_METRICS: Metrics = {
  requestAnswered: nothing,
  decisionTimed: nothing,
  decisionCharged: nothing,
  decisionReplayed: nothing,
  committed: nothing,
  audited: nothing,
  watch: nothing,
};
