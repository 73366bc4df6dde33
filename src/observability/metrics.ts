import type { EvaluatorCounts } from '../../native/engine.ts';
import type { Problems } from '../problems/problems.ts';
import type { Mode } from '../questions/question.ts';
import type { SchedulerLoad } from '../scheduling/model-scheduler.ts';
import type { ModelDrift } from '../served-models/answer-counts.ts';
import type { LifecycleStatus, ObservedUpstream } from '../served-models/model-answerer.ts';
import type { BackupFile } from '../store/backups.ts';
import type { Books } from '../store/books.ts';
import type { DatabaseState } from '../store/database.ts';
import type { Readiness } from './readiness.ts';

/** An answered request, with labels that have few values. */
export interface AnsweredRequest {
  /** The path of a route, or the console's label; null for a path that the service does not have. */
  readonly endpoint: string | null;
  /** Null for requests without a decision, or refused before their mode was known. */
  readonly mode: Mode | null;
  /** The id of the requested model; null for requests that were refused before it was known. */
  readonly model: string | null;
  /** One of the codes of the API or of the console; null for success. */
  readonly code: string | null;
  /** The status of the response, or of the refusal in it. */
  readonly status: number;
  /** The organization of its key; null without a valid one. */
  readonly organization_id: string | null;
}

/**
 * The durations of a request that had a slot at the model, whatever came of it; the three parts make the whole. Lines of
 * batches have none, because they wait on purpose.
 */
export interface DecisionTimes {
  readonly model: string;
  readonly mode: Mode;
  /** The time in our own code: reading, planning, the books, the response. */
  readonly platform_ms: number;
  /** The time from the hold to the answer in which the model had no plan of it, including a load of the model. */
  readonly queue_ms: number;
  /** The time in which the model had a plan of it: the contract's `latency_ms`. */
  readonly model_ms: number;
}

/** An answered and charged request. */
export interface ChargedDecision {
  readonly model: string;
  readonly mode: Mode;
  readonly input_tokens: number;
  readonly questions: number;
  readonly cost_micros: number;
}

/** One of the models of the service. */
export interface ObservedModel {
  /** Its id in the catalog. */
  readonly id: string;
  readonly status: () => LifecycleStatus;
  /** Undefined before an engine is loaded, or where it has no counters. */
  readonly counts: () => EvaluatorCounts | undefined;
  /** Returns the members of its pool; none for a model of this process. */
  readonly upstreams: () => readonly ObservedUpstream[];
}

/** The state of the scheduled backups. */
export interface BackupState {
  readonly every_ms: number;
  /** Null where there is none. */
  readonly newest: BackupFile | null;
  /** True if the last try failed. */
  readonly has_failed: boolean;
}

/** The open connections and descriptors of the process, with their limits. */
export interface ServerLoad {
  readonly connections: number;
  readonly connections_max: number;
  readonly descriptors: number;
  readonly descriptors_max: number;
}

/** Sources that are read when metrics are read, and only then. */
export interface MetricsSources {
  /** Returns the open models of the catalog. */
  readonly models: () => readonly ObservedModel[];
  /** Returns the load of all models together. */
  readonly schedulerLoad: () => SchedulerLoad;
  /** Returns the largest stability index of each tuned model's questions, where one has enough answers. */
  readonly answerDrifts: () => readonly ModelDrift[];
  readonly books: Pick<Books, 'open' | 'unwritten'>;
  readonly problems: Pick<Problems, 'counts'>;
  readonly readiness: Pick<Readiness, 'failing'>;
  /** Rejects where the database does not answer. */
  readonly databaseState: () => Promise<DatabaseState>;
  /** Returns the number of payment events that wait for the operator. Rejects where the database does not answer. */
  readonly unresolvedEvents: () => Promise<number>;
  /** Wall-clock Unix milliseconds. */
  readonly now_ms: () => number;
}

/** Receives the events of the service. No method throws or waits. */
export interface Metrics {
  requestAnswered(request: AnsweredRequest): void;
  decisionTimed(times: DecisionTimes): void;
  decisionCharged(decision: ChargedDecision): void;
  /** Counts a request that got the answer of an earlier one with its idempotency key. */
  decisionReplayed(decision: Pick<ChargedDecision, 'model' | 'mode'>): void;
  /** Counts one durable commit of so many writes. */
  committed(duration_ms: number, writes: number): void;
  /** Notes the last audit: how many violations it found, and its wall-clock time. */
  audited(violations: number, at_ms: number): void;
  /** Sets the sources that are read when metrics are read. Called once. */
  watch(sources: MetricsSources): void;
}

function nothing(): void {
  // There are no metrics.
}

/** The metrics of a service without any. */
export const NO_METRICS: Metrics = {
  requestAnswered: nothing,
  decisionTimed: nothing,
  decisionCharged: nothing,
  decisionReplayed: nothing,
  committed: nothing,
  audited: nothing,
  watch: nothing,
};
