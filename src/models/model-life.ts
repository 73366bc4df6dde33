import type { DecisionEngine, DecisionInput, DecisionPlan, EvaluateOptions } from '../../native/engine.ts';
import type { UpstreamCalibration } from '../catalog/catalog-records.ts';
import type { Mode } from '../questions/question.ts';
import type { LifecycleStatus, LoadFailure, ModelLifecycle } from './lifecycle.ts';

/** What a model says to a request, before it is paid for. */
export interface ModelAnswer {
  /** A list a question, as of `DecisionEngine.evaluate`. */
  readonly scores: readonly (readonly number[])[];
  /** Everything that was read: what is billed. Never more than the plan's. */
  readonly input_tokens: number;
}

/** A model that answers now: an engine of this process, or a pool of upstreams. */
export interface AnsweringModel {
  /** Rejects as `DecisionEngine.evaluate` does. */
  answer(plan: DecisionPlan, options: EvaluateOptions): Promise<ModelAnswer>;
}

/** A member of the pool of upstreams of a model. */
export interface ObservedUpstream {
  /** Its URL, as the operator gave it. */
  readonly address: string;
  readonly breaker: BreakerState;
  /** Of calls that it has not answered. */
  readonly outstanding_tokens: number;
  /** Since the pool was opened: calls for clients, and whatever failed through the member's fault, checks and trials too. */
  readonly requests: number;
  readonly failures: number;
}

export const BREAKER_STATES = ['untried', 'closed', 'half_open', 'open'] as const;
/** Whether a member was not needed yet, gets requests, is being tried, or failed and waits for that. */
export type BreakerState = (typeof BREAKER_STATES)[number];

/** What stands behind a model of the catalog. */
export interface ModelLife {
  /** The worst case of what a request is billed for; an engine's plan says exactly that. As `ModelLifecycle.plan`. */
  plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan>;
  /** As `ModelLifecycle.use`. */
  use<Result>(
    mode: Mode,
    work: (model: AnsweringModel, signal: AbortSignal) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result>;
  status(): LifecycleStatus;
  /** Undefined while no engine is loaded, or where none counts. */
  counts(): ReturnType<NonNullable<DecisionEngine['counts']>> | undefined;
  /** Resolves when it answers. Rejects with `ModelUnavailable`. */
  load(failure?: LoadFailure): Promise<void>;
  /** Ends what still runs on it. */
  close(): Promise<void>;
}

/** A pool of upstreams, as far as the models know it. */
export interface UpstreamLife extends ModelLife {
  /** From now on these members, and no others, get no new requests. */
  setDraining(addresses: readonly string[]): void;
  /** From now on answers are calibrated so, where it was fitted on the weights that gave them. */
  setCalibration(calibration: UpstreamCalibration | undefined): void;
  /** How each member stands. */
  members(): readonly ObservedUpstream[];
}

/** An engine as a model that answers: it is billed what was planned. */
export function answeringEngine(engine: DecisionEngine): AnsweringModel {
  return {
    answer: async (plan, options) => ({
      scores: await engine.evaluate(plan, options),
      input_tokens: plan.input_tokens,
    }),
  };
}

/** The life of a model with weights of its own. */
export function engineLife(lifecycle: ModelLifecycle): ModelLife {
  return {
    plan: (input, signal) => lifecycle.plan(input, signal),
    use: (mode, work, signal) =>
      lifecycle.use(mode, (engine, given_up) => work(answeringEngine(engine), given_up), signal),
    status: () => lifecycle.status(),
    counts: () => lifecycle.engineIfLoaded()?.counts?.(),
    load: async (failure) => {
      await lifecycle.ready('fast', undefined, failure);
    },
    close: () => lifecycle.close(),
  };
}
