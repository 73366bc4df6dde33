import type { Plan, PlanLogits } from './plan/plan.ts';
import type { Tokenizer } from './plan/profile.ts';

/** What evaluates plans: `llama/` through node-llama-cpp's objects, `addon/` in C++. Both give the same answers. */
export interface PlanEvaluator extends Tokenizer {
  readonly kind: 'llama' | 'addon';
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** Why a GPU that this machine seems to have is not used. */
  readonly missing_gpu?: string | undefined;
  /** Positions that one plan may use: prefix and longest branch together. */
  readonly context_tokens: number;
  /**
   * The logits that the plan asks for. `scope` is the organization: what is kept of a prefix is reused within one
   * scope only. Rejects with the signal's reason when aborted before its work started, with `EngineOverloaded` when
   * the queue is full, and with `EvaluationFailed` when the model could not answer; later plans are unaffected.
   */
  evaluate(
    plan: Plan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<PlanLogits>;
  /** Frees the model's memory; pending plans are rejected with `EvaluationFailed`. */
  close(): Promise<void>;
}

/** The model could not evaluate a plan (a decode failed, or the evaluator was closed). */
export class EvaluationFailed extends Error {
  override readonly name = 'EvaluationFailed';
}

/** The bounded queue is full; the caller may try again later. */
export class EngineOverloaded extends Error {
  override readonly name = 'EngineOverloaded';
}
