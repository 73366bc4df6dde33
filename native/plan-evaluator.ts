import type { Plan, PlanLogits } from './plan/plan.ts';

/** What evaluates plans: `llama/` through node-llama-cpp's objects, `addon/` in C++. Both give the same answers. */
export interface PlanEvaluator {
  readonly kind: 'llama' | 'addon';
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** Why a GPU that this machine seems to have is not used. */
  readonly missing_gpu?: string | undefined;
  /** Positions that one plan may use: prefix and longest branch together. */
  readonly context_tokens: number;
  /** Tokens of plans in one lane that keep the model busy; plans beyond them only wait in it. */
  readonly lane_tokens: number;
  /** Plans of one lane are read one after the other, and the lanes side by side: small plans do not wait for large ones. */
  laneOf(plan: Plan): 'small' | 'large';
  /**
   * The logits that the plan asks for. `scope` is the organization: what is kept of a prefix is reused within one
   * scope only. Rejects with the signal's reason when aborted before its work started, with `EngineOverloaded` when
   * the queue is full, with `EvaluationFailed` when this plan cannot be answered, which says nothing of others, and
   * with `EngineFailed` when the model is closed or its device failed.
   */
  evaluate(
    plan: Plan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<PlanLogits>;
  /** Frees the model's memory; pending plans are rejected with `EngineFailed`. */
  close(): Promise<void>;
}

/** The model gave no answer to a plan: it does not fit, or its logits are no numbers. Others may be answered. */
export class EvaluationFailed extends Error {
  override readonly name: string = 'EvaluationFailed';
}

/** The evaluator is of no more use: it was closed, or a decode failed. */
export class EngineFailed extends EvaluationFailed {
  override readonly name = 'EngineFailed';
}

/** A request had its turn and was not answered in the time that it may take. */
export class EvaluationTimedOut extends Error {
  override readonly name = 'EvaluationTimedOut';
}

/** The bounded queue is full; the caller may try again later. */
export class EngineOverloaded extends Error {
  override readonly name = 'EngineOverloaded';
}
