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
  /** Anything unexpected while a request was answered. */
  | 'http'
  /** Background work: last-used times of keys, tiers with audit and usage, the copy of the write-ahead log, backups, traces. */
  | 'last_used'
  | 'hourly_run'
  | 'checkpoint'
  | 'backup'
  | 'trace_export'
  /** The life of a model: its load, the start of consistent mode, the question whether it still answers, its end. */
  | 'model_load'
  | 'model_warm_up'
  | 'model_probe'
  | 'model_close';

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

/** Takes the cause of every failure that is our own fault, so that none is lost. */
export interface Problems {
  /** Writes the cause to the log and counts it. Never throws. */
  report(problem: Problem): void;
  /** How many were reported since the start, by step. */
  counts(): Readonly<Record<ProblemStep, number>>;
}
