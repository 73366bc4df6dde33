import type { ErrorCode } from '../errors.ts';

/** Where a failure can happen that is our own fault. Lines of the log, counts and metrics name it so. */
export type ProblemStep =
  /** The six steps of a request. */
  | 'authenticate'
  | 'catalog'
  | 'plan'
  | 'hold'
  | 'model'
  | 'charge'
  /** The end of a hold that nothing is charged for, also in the background. */
  | 'release'
  | 'webhook'
  /** Work of the console after its answer: looking an address up, writing a new account. */
  | 'sign_in'
  | 'mail'
  /** Anything unexpected while a request was answered. */
  | 'http'
  /**
   * Background work: last-used times of keys, tiers with audit and usage, an audit that the operator began, the copy of
   * the write-ahead log, backups, traces.
   */
  | 'last_used'
  | 'hourly_run'
  | 'audit'
  | 'checkpoint'
  | 'backup'
  | 'trace_export'
  /** A look at what the service needs to answer failed, and began to: not each time that somebody asks. */
  | 'readiness'
  /** The settings were to be read again. */
  | 'settings'
  /** The life of a model: its load, the start of consistent mode, the question whether it still answers, its end, new weights. */
  | 'model_load'
  | 'model_warm_up'
  | 'model_probe'
  | 'model_close'
  | 'model_reload'
  /** A member of a pool failed, and another one was asked; or one failed its trial, or read more than was held. */
  | 'upstream';

/** One failure that is our own fault: neither the client's, nor load that the error's code tells of. */
export interface Problem {
  /** The `x-request-id` of the response that it spoiled; null for background work. */
  readonly request_id: string | null;
  readonly step: ProblemStep;
  /** What the client was told; null when no client was told anything. */
  readonly code: ErrorCode | null;
  /** The id of the catalog's model that failed; undefined where none did. */
  readonly model?: string | undefined;
  /** What was thrown, with its causes. */
  readonly error: unknown;
}

/** A problem as it is remembered: metadata only, without a word that a client wrote. */
export interface RecentProblem extends Omit<Problem, 'error' | 'model'> {
  /** Null where the wall clock itself failed. */
  readonly at_ms: number | null;
  readonly model: string | null;
  /** The classes of what was thrown and of its causes, with the codes of SQLite or the system. */
  readonly error: string;
  /** The innermost frame of the stack; empty where there is none. */
  readonly place: string;
}

/** The last problems since the start. */
export interface RecentProblems {
  /** Newest first; all of one request where its id is given. */
  recent(filter?: { readonly request_id?: string | undefined; readonly limit?: number }): RecentProblem[];
}

/** Takes the cause of every failure that is our own fault, so that none is lost. */
export interface Problems {
  /** Writes the cause to the log and counts it. Never throws. */
  report(problem: Problem): void;
  /** How many were reported since the start, by step. */
  counts(): Readonly<Record<ProblemStep, number>>;
}
