import type { EvaluatorName } from './evaluators/evaluator-names.ts';
import type { Plan, PlanLogits } from './plan/plan.ts';

/** The decoder of a plan. An evaluator has one for small plans, and may have another for large ones. */
export type DecoderSize = 'small' | 'large';

/** The default of the largest number of waiting plans. The service's own bounds are far lower. */
export const WAITING_PLANS_MAX = 65_536;

/** Batches by their sizes, padding aside. */
export interface BatchCounts {
  /** How many had at most 1, 2, 4, … tokens, and more than half of that; the last is all above. */
  readonly by_size: readonly number[];
  /** Tokens of them all. */
  readonly tokens: number;
}

/** Counters of an evaluator since its opening, with warm-ups. */
export interface EvaluatorCounts {
  /** The batches that went through the model. */
  readonly decodes: number;
  /** The plans' tokens in them. */
  readonly read_tokens: number;
  /** The tokens of reused prefixes. */
  readonly reused_tokens: number;
  /** The bytes of prefixes now kept for reuse, beside the context. */
  readonly kept_prefix_bytes: number;
  /** Bytes of the context's keys and values, whether used or free; undefined where that is not known. */
  readonly kv_cache_bytes?: number;
  /** Undefined where batches are not counted by size. */
  readonly batches?: BatchCounts;
}

/** Computes the logits of plans. All evaluators give the same answers. */
export interface PlanEvaluator {
  readonly kind: EvaluatorName;
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** The reason for a GPU of this machine that is not used. */
  readonly missing_gpu?: string | undefined;
  /** The largest number of positions of a plan: prefix and longest branch together. */
  readonly context_tokens: number;
  /** The tokens of plans that keep one decoder busy. More plans only wait in it. */
  readonly decoder_tokens: number;
  /**
   * Returns the plan's decoder. Each computes its plans one after the other, so small plans do not wait for large ones.
   * Throws `EvaluationFailed` if the plan is malformed.
   */
  decoderOf(plan: Plan): DecoderSize;
  /**
   * Resolves with the plan's logits. `scope` is the organization, within which kept prefixes are reused. Rejects with
   * the signal's reason when aborted before its work started, and with `EngineOverloaded` when the queue is full.
   * Rejects with `EvaluationFailed` when only this plan cannot be answered. Rejects with `EngineFailed` when the model
   * is closed or its device failed.
   */
  evaluate(
    plan: Plan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<PlanLogits>;
  counts(): EvaluatorCounts;
  /**
   * Returns how many times as long the newest plan would have taken beside other work, which leaves it fewer threads.
   * Absent in evaluators whose number of threads never changes.
   */
  slowdown?(): number;
  /** Frees the model's memory; pending plans are rejected with `EngineFailed`. */
  close(): Promise<void>;
}
