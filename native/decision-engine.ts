import type { EvaluatorName } from './evaluators/evaluator-names.ts';
import type { PlanLogits } from './plan/plan.ts';
import type { DecisionInput, DecisionPlan } from './plan/profile.ts';
import type { DecoderSize, EvaluatorCounts } from './plan-evaluator.ts';

/** What is known of a loaded model without asking it anything. */
export interface EngineFacts {
  /** SHA-256 over the GGUF parts in order, in hex: what a calibration is bound to. */
  readonly weights_sha256: string;
  readonly profile: string;
  readonly context_tokens: number;
  readonly evaluator: EvaluatorName;
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** Why a GPU that this machine seems to have is not used. */
  readonly missing_gpu?: string | undefined;
  /** Whether scores are divided by fitted temperatures. */
  readonly calibrated: boolean;
}

/** What one plan takes of the model: all that decides when it has its turn. */
export interface PlanTurn {
  readonly tokens: number;
  /** Plans of one decoder are computed one after the other, beside those of the other decoder. */
  readonly decoder: DecoderSize;
  /** A decoder takes another plan while plans of fewer tokens than these are in it. */
  readonly decoder_tokens: number;
}

/** Calls `work` when the plan's turn has come, and resolves or rejects as it does, or with the signal's reason. */
export type TakeTurn = <Result>(
  turn: PlanTurn,
  work: () => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

export interface EvaluateOptions {
  /** The organization: nothing that is kept of a record is reused outside of it. */
  readonly scope: string;
  readonly signal?: AbortSignal;
  /** When each plan is given to the model; at once when undefined. */
  readonly takeTurn?: TakeTurn | undefined;
}

/** A model of which the vocabulary is in memory, and not the weights: it plans requests, and loads engines. */
export interface DecisionPlanner {
  /**
   * The plans and the exact billed tokens of a request, whether an engine is open or not. Rejects with `PlanRejected`,
   * and with `EngineFailed` when the planner is closed, also meanwhile. No model work; the event loop goes on turning.
   */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Loads the weights; one engine is open at a time. Rejects with `SetupError`; with `WeightsError` when the files are
   * missing, cannot be loaded, or are not those that the planner was opened on. The same for a calibration beside them
   * that was fitted on other weights.
   */
  openEngine(): Promise<DecisionEngine>;
  /** Frees the vocabulary; engines are closed apart. */
  close(): Promise<void>;
}

/** A planner whose plans are evaluated elsewhere, where its vocabulary is that of the model. */
export interface ScoringPlanner {
  /** SHA-256 over the GGUF parts that the vocabulary was read from. */
  readonly vocabulary_sha256: string;
  /** The name of the prompt profile. */
  readonly profile: string;
  /** Positions that a plan may use. */
  readonly context_tokens: number;
  /** As `DecisionPlanner.plan`. */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * The scores of a request, from the logits of each of its plans; not calibrated. They are those of
   * `DecisionEngine.evaluate`. A number that is added to all logits of one read changes nothing.
   */
  scores(plan: DecisionPlan, logits: readonly PlanLogits[]): readonly (readonly number[])[];
  /** The word that a token is, without a space before it; null where it is not one word of English letters. */
  wordOf(token: number): string | null;
  close(): Promise<void>;
}

/** A loaded model, which evaluates the plans of its planner. */
export interface DecisionEngine {
  readonly facts: EngineFacts;
  /** As its planner. */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Calibrated scores of the request that the plan was made of, a list a question. They are the log-odds of yes for a
   * noul, and otherwise a score for each option or level, to be compared by softmax. Rejects with the signal's reason
   * when aborted, and with `EngineOverloaded` when too much waits. Rejects with `EvaluationFailed` when this request
   * cannot be answered, though others may be. Rejects with `EngineFailed` when the engine is closed or its device
   * failed.
   */
  evaluate(plan: DecisionPlan, options: EvaluateOptions): Promise<readonly (readonly number[])[]>;
  /** What it has read since it was opened; absent where nobody counts. */
  counts?(): EvaluatorCounts;
  close(): Promise<void>;
}
