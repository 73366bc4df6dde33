import { type AnyErrorCode, type ErrorCode, Refusal } from '../errors/errors.ts';
import type { Cause } from './causes.ts';

const NO_PROBLEMS = {
  /** The steps of a request come first. */
  authenticate: 0,
  catalog: 0,
  plan: 0,
  /** The windows of requests and tokens per minute, including corrections after a request. */
  rate_windows: 0,
  /** The lookup of an idempotency key. */
  idempotency: 0,
  hold: 0,
  model: 0,
  charge: 0,
  /** The release of a hold without a charge, also in the background. */
  release: 0,
  webhook: 0,
  /** The console's work after its response: looking up an address, creating an account. */
  sign_in: 0,
  mail: 0,
  /** The search for what members are to be alerted to. */
  alerts: 0,
  /** Any unexpected failure while a request was answered. */
  http: 0,
  /** The lease of this node on a shared database, and the holds of nodes that died. */
  node: 0,
  /**
   * Background work: last-used times of keys, tiers with audit and usage, an audit that the operator started,
   * the copy of the write-ahead log, backups, traces.
   */
  last_used: 0,
  /** The counts of tuned models' answers. */
  answer_counts: 0,
  hourly_run: 0,
  audit: 0,
  checkpoint: 0,
  backup: 0,
  trace_export: 0,
  /**
   * A check of readiness that fails after it succeeded; later failures of the same check are not repeated. A database
   * file that was replaced or removed.
   */
  readiness: 0,
  /** Reading the settings again. */
  settings: 0,
  /**
   * The lifecycle of a model: its load, the start of consistent mode, its health probe, its end, new weights.
   */
  model_load: 0,
  model_warm_up: 0,
  model_probe: 0,
  model_close: 0,
  model_reload: 0,
  /**
   * A pool member's failure after which another one was asked, a failed trial, or an answer with more tokens
   * than were held.
   */
  upstream: 0,
};

/** A step in which a failure can be our own fault, as named in the log, counts and metrics. */
export type ProblemStep = keyof typeof NO_PROBLEMS;

/** Returns a count of 0 for every step. */
export function noProblems(): Record<ProblemStep, number> {
  return { ...NO_PROBLEMS };
}

/** One failure that is our own fault: neither the client's, nor overload with an error code of its own. */
export interface Problem {
  /** The `x-request-id` of the affected response; null for background work. */
  readonly request_id: string | null;
  readonly step: ProblemStep;
  /** The error code of the response; null when there was none. */
  readonly code: AnyErrorCode | null;
  /** The id of the failed model; undefined for other failures. */
  readonly model?: string | undefined;
  /** The thrown value, with its causes. */
  readonly error: unknown;
}

/** A remembered problem: metadata only, without any text of a client. */
export interface RecentProblem extends Omit<Problem, 'error' | 'model'> {
  /** Null where the wall clock itself failed. */
  readonly at_ms: number | null;
  readonly model: string | null;
  /** The classes of the error and of its causes, with the codes of SQLite, the system or an upstream. */
  readonly error: string;
  /** The innermost frame of the stack; empty where there is none. */
  readonly place: string;
}

/** The last problems since the start. */
export interface RecentProblems {
  /** Returns problems, newest first; all of one request where its id is given. */
  recent(filter?: { readonly request_id?: string | undefined; readonly limit?: number }): RecentProblem[];
}

/** Receives the cause of every failure that is our own fault, so that none is lost. */
export interface Problems {
  /** Writes the cause to the log and counts it. Never throws. */
  report(problem: Problem): void;
  /** Returns the number of reports since the start, by step. */
  counts(): Readonly<Record<ProblemStep, number>>;
}

/** Reports the cause of a failure that is our own fault, and returns the refusal of the request. */
export function reported<Code extends ErrorCode>(
  problems: Pick<Problems, 'report'>,
  problem: Problem & { readonly code: Code },
): Refusal<Code> {
  problems.report(problem);
  return new Refusal(problem.code);
}

/** Returns a failure of background work, which no request has; `model` is the id of the failed model. */
export function inBackground(step: ProblemStep, error: unknown, model?: string): Problem {
  return { request_id: null, step, code: null, model, error };
}

/** The log line of a failure that is our own fault: metadata only. */
export interface ProblemLine {
  /** The request's `x-request-id`; null for background work. */
  readonly request_id: string | null;
  readonly step: ProblemStep;
  readonly code: AnyErrorCode | null;
  /** The id of the failed model. */
  readonly model?: string | undefined;
  /** The classes and codes of the causes, outermost first. */
  readonly error: string;
  /** Present in the first line of a kind. */
  readonly causes?: readonly Cause[];
  /** Present in a later line: the request whose line has the causes. */
  readonly same_as?: string | null;
  /** Present in the line that sums up background work: the number of repeated failures. */
  readonly repeated?: number;
}
