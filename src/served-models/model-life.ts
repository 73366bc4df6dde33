import type {
  DecisionEngine,
  DecisionInput,
  DecisionPlan,
  EngineSpeed,
  EvaluateOptions,
} from '../../native/engine.ts';
import type { UpstreamCalibration } from '../store/catalog-records.ts';
import type { Clock } from '../time/clock.ts';
import type { LifecycleStatus, LoadFailure, ModelLifecycle } from './lifecycle.ts';

/** A model's answer to a request, before the charge. */
export interface ModelAnswer {
  /** One list for each question, as of `DecisionEngine.evaluate`. */
  readonly scores: readonly (readonly number[])[];
  /** The tokens that were read and are billed, at most the plan's. */
  readonly input_tokens: number;
}

/** An answer of a model that had been loaded before. */
export interface TimedAnswer extends ModelAnswer {
  /** The time from the loaded model to its answer, including the wait in the queue. */
  readonly latency_ms: number;
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

/** The engine or the pool of upstreams of a model of the catalog. */
export interface ModelLife {
  /**
   * Plans a request, with the most tokens that it can be billed; an engine's plan has the exact number. As
   * `ModelLifecycle.plan`.
   */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** Answers a plan. Loads a cold model first. Rejects as `ModelLifecycle.use` and `DecisionEngine.evaluate` do. */
  answer(plan: DecisionPlan, options: EvaluateOptions): Promise<TimedAnswer>;
  status(): LifecycleStatus;
  /** Returns the engine's measured speed; undefined while it is not known, and absent for upstreams. */
  speed?(): EngineSpeed | undefined;
  /** Returns the engine's counters; undefined while no engine is loaded, or where it has none. */
  counts(): ReturnType<NonNullable<DecisionEngine['counts']>> | undefined;
  /** Loads it. Resolves when it can answer. Rejects with `ModelUnavailable`. */
  load(failure?: LoadFailure): Promise<void>;
  /** Closes it and ends its running work. */
  close(): Promise<void>;
}

/** A pool of upstreams, as the models see it. */
export interface UpstreamLife extends ModelLife {
  /** Sets the members that get no new requests. */
  setDraining(addresses: readonly string[]): void;
  /** Sets the calibration of later answers, where it was fitted on the weights that gave them. */
  setCalibration(calibration: UpstreamCalibration | undefined): void;
  /** Makes each member say, from its next trial on, which model it has: tunings are bound to that. */
  requireFingerprints(): void;
  /** Returns the state of each member. */
  members(): readonly ObservedUpstream[];
}

/** Returns the lifecycle of a model with weights of its own, which bills the planned tokens. */
export function engineLife(lifecycle: ModelLifecycle, clock: Pick<Clock, 'monotonic_ms'>): ModelLife {
  return {
    plan: (input, signal) => lifecycle.plan(input, signal),
    answer: (plan, options) => {
      const answer = async (engine: DecisionEngine, signal: AbortSignal) => {
        const began_ms = clock.monotonic_ms();
        const scores = await engine.evaluate(plan, { ...options, signal });
        const latency_ms = clock.monotonic_ms() - began_ms;
        return { scores, input_tokens: plan.input_tokens, latency_ms };
      };
      return lifecycle.use(plan.input.mode, answer, options.signal);
    },
    status: () => lifecycle.status(),
    speed: () => lifecycle.speed(),
    counts: () => lifecycle.engineIfLoaded()?.counts?.(),
    load: async (failure) => {
      await lifecycle.ready('fast', undefined, failure);
    },
    close: () => lifecycle.close(),
  };
}
