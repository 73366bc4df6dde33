import type { ErrorCode } from '../errors.ts';

const NO_PROBLEMS = {
  /** The six steps of a request. */
  authenticate: 0,
  catalog: 0,
  plan: 0,
  /** The windows of requests and tokens a minute, also what is settled in them after a request. */
  rate_windows: 0,
  /** Looking up what an idempotency key stands for. */
  idempotency: 0,
  hold: 0,
  model: 0,
  charge: 0,
  /** The end of a hold that nothing is charged for, also in the background. */
  release: 0,
  webhook: 0,
  /** Work of the console after its answer: looking an address up, writing a new account. */
  sign_in: 0,
  mail: 0,
  /** Anything unexpected while a request was answered. */
  http: 0,
  /** The lease of this node on a shared database, and the holds of nodes that died. */
  node: 0,
  /**
   * Background work: last-used times of keys, tiers with audit and usage, an audit that the operator began, the copy of
   * the write-ahead log, backups, traces.
   */
  last_used: 0,
  hourly_run: 0,
  audit: 0,
  checkpoint: 0,
  backup: 0,
  trace_export: 0,
  /** A look at what the service needs to answer failed, and began to: not each time that somebody asks. */
  readiness: 0,
  /** The settings were to be read again. */
  settings: 0,
  /** The life of a model: its load, the start of consistent mode, the question whether it still answers, its end, new weights. */
  model_load: 0,
  model_warm_up: 0,
  model_probe: 0,
  model_close: 0,
  model_reload: 0,
  /** A member of a pool failed, and another one was asked; or one failed its trial, or read more than was held. */
  upstream: 0,
};

/** Where a failure can happen that is our own fault. Lines of the log, counts and metrics name it so. */
export type ProblemStep = keyof typeof NO_PROBLEMS;

/** No problem of any step: what counting begins with. */
export function noProblems(): Record<ProblemStep, number> {
  return { ...NO_PROBLEMS };
}

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
