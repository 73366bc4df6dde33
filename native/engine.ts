import type { DecisionInput, DecisionPlan } from './plan/profile.ts';

/** What is known of a loaded model without asking it anything. */
export interface EngineFacts {
  /** SHA-256 over the GGUF parts in order, in hex: what a calibration is bound to. */
  readonly weights_sha256: string;
  readonly profile: string;
  readonly context_tokens: number;
  readonly evaluator: 'llama' | 'addon';
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** Why a GPU that this machine seems to have is not used. */
  readonly missing_gpu?: string | undefined;
  /** Whether scores are divided by fitted temperatures. */
  readonly calibrated: boolean;
}

/** A loaded model: the only thing that `decisions/` knows of `native/`. */
export interface DecisionEngine {
  readonly facts: EngineFacts;
  /**
   * The plans and the exact billed tokens of a request. Rejects with `PlanRejected`, and with `EvaluationFailed` when
   * the model is closed, also meanwhile. No model work; the event loop goes on turning.
   */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Calibrated scores, a list a question: the log-odds of yes for a noul, a score an option or level otherwise (to be
   * compared by softmax). Rejects as `PlanEvaluator.evaluate` does.
   */
  evaluate(
    input: DecisionInput,
    plan: DecisionPlan,
    options: { readonly scope: string; readonly signal?: AbortSignal },
  ): Promise<readonly (readonly number[])[]>;
  close(): Promise<void>;
}
