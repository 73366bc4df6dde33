import type {
  DecisionEngine,
  DecisionInput,
  DecisionPlan,
  EngineSpeed,
  EvaluateOptions,
} from '../../native/engine.ts';
import type { UpstreamCalibration } from '../store/catalog-records.ts';

/**
 * Consistent mode is still starting, or a load takes longer than a request waits (contract: 503
 * `model_warming_up`).
 */
export class ModelWarmingUp extends Error {
  override readonly name = 'ModelWarmingUp';
  constructor(readonly retry_after_s: number) {
    super('The model is warming up.');
  }
}

/** The model could not be loaded (contract: 502 `model_unavailable`). */
export class ModelUnavailable extends Error {
  override readonly name = 'ModelUnavailable';
}

/** Returns the error for work on a model that is closed or closing. */
export function modelClosed(): ModelUnavailable {
  return new ModelUnavailable('The model has been closed.');
}

/** A model's answer to a request, before the charge. */
export interface ModelAnswer {
  /** One list for each question, as of `DecisionEngine.evaluate`. */
  readonly scores: readonly (readonly number[])[];
  /** The tokens that were read and are billed, at most the plan's. */
  readonly input_tokens: number;
  /** The tokens of the record that an upstream says it did not read; absent where the plan knows. */
  readonly record_tokens_left_out?: number;
}

/** The options of an answer. */
export interface AnswerOptions extends EvaluateOptions {
  /** Returns the longest time from the first scheduled plan to the answer; 0 by default. */
  readonly evaluation_ms?: () => number;
}

/** A member of a model's pool of upstreams. */
export interface ObservedUpstream {
  /** Its URL, as the operator gave it. */
  readonly address: string;
  readonly breaker: BreakerState;
  /** The tokens of calls that it has not answered. */
  readonly outstanding_tokens: number;
  /**
   * Counts since the pool was opened: calls for clients, and failures by the member's fault, including checks
   * and trials.
   */
  readonly requests: number;
  readonly failures: number;
}

export const BREAKER_STATES = ['untried', 'closed', 'half_open', 'open'] as const;
/** The state of a member: not needed yet, in use, on trial, or failed and waiting for a trial. */
export type BreakerState = (typeof BREAKER_STATES)[number];

/** The states of a model: not loaded, loading, ready for fast requests, and ready for both modes. */
export const LIFECYCLE_STATES = ['cold', 'loading', 'fast_ready', 'ready'] as const;
export type LifecycleState = (typeof LIFECYCLE_STATES)[number];

export interface LifecycleStatus {
  readonly state: LifecycleState;
  /** The reason why the last load failed, or undefined. */
  readonly load_error: string | undefined;
}

/**
 * The receiver of a load's failure: the lifecycle reports it, or the caller of the load gets it and reports
 * it.
 */
export type LoadFailure = 'reported' | 'thrown';

/** The engine or the pool of upstreams of a model of the catalog. */
export interface ModelAnswerer {
  /** Resolves once the vocabulary that `plan` needs is read. Rejects as `plan` does before it plans. */
  readyToPlan(signal?: AbortSignal): Promise<void>;
  /**
   * Plans a request, with the most tokens that it can be billed; an engine's plan has the exact number. As
   * `EngineLifecycle.plan`.
   */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** Answers a plan. Loads a cold model first. Rejects as `EngineLifecycle.use` and `DecisionEngine.evaluate` do. */
  answer(plan: DecisionPlan, options: AnswerOptions): Promise<ModelAnswer>;
  status(): LifecycleStatus;
  /** Returns the engine's measured speed; undefined while it is not known, and absent for upstreams. */
  speed?(): EngineSpeed | undefined;
  /** Returns the counters of all its engines; undefined before the first is loaded, or where they have none. */
  counts(): ReturnType<NonNullable<DecisionEngine['counts']>> | undefined;
  /** Loads it. Resolves when it can answer. Rejects with `ModelUnavailable`. */
  load(failure?: LoadFailure): Promise<void>;
  /** Closes it and ends its running work. */
  close(): Promise<void>;
}

/** A pool of upstreams, as the models see it. */
export interface UpstreamAnswerer extends ModelAnswerer {
  /** Sets the members that get no new requests. */
  setDraining(addresses: readonly string[]): void;
  /** Sets the calibration of later answers, where it was fitted on the weights that gave them. */
  setCalibration(calibration: UpstreamCalibration | undefined): void;
  /** Returns the state of each member. */
  members(): readonly ObservedUpstream[];
}
