import type { EvaluatorName } from './evaluators/evaluator-names.ts';
import type { Plan, PlanLogits } from './plan/plan.ts';

/**
 * The decoder that a plan is computed in. An evaluator has one for small plans, and may have another for large ones.
 */
export type DecoderSize = 'small' | 'large';

/** Plans that may wait in an evaluator unless configured. The service bounds its requests long before. */
export const WAITING_PLANS_MAX = 65_536;

/** Batches by their sizes, padding aside. */
export interface BatchCounts {
  /** How many had at most 1, 2, 4, … tokens, and more than half of that; the last is all above. */
  readonly by_size: readonly number[];
  /** Tokens of them all. */
  readonly tokens: number;
}

/** What an evaluator has done since it was opened, warm-ups included. */
export interface EvaluatorCounts {
  /** Batches that went through the model. */
  readonly decodes: number;
  /** Tokens of plans in them. */
  readonly read_tokens: number;
  /** Tokens of prefixes that were still in memory, and so were not read. */
  readonly reused_tokens: number;
  /** Bytes of the prefixes that are kept for reuse now, beside the context. */
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
  /** Why a GPU that this machine seems to have is not used. */
  readonly missing_gpu?: string | undefined;
  /** Positions that one plan may use: prefix and longest branch together. */
  readonly context_tokens: number;
  /** Tokens of plans that keep one decoder busy; plans beyond them only wait in it. */
  readonly decoder_tokens: number;
  /**
   * One decoder computes its plans one after the other, beside the other decoder: small plans do not wait for large
   * ones.
   */
  decoderOf(plan: Plan): DecoderSize;
  /**
   * The logits that the plan asks for. `scope` is the organization: what is kept of a prefix is reused within one scope
   * only. Rejects with the signal's reason when aborted before its work started, and with `EngineOverloaded` when the
   * queue is full. Rejects with `EvaluationFailed` when this plan cannot be answered, though others may be. Rejects
   * with `EngineFailed` when the model is closed or its device failed.
   */
  evaluate(
    plan: Plan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<PlanLogits>;
  counts(): EvaluatorCounts;
  /** Frees the model's memory; pending plans are rejected with `EngineFailed`. */
  close(): Promise<void>;
}
