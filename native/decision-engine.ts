import type { Calibration } from './calibration.ts';
import type { EngineSpeed } from './engine-speed.ts';
import type { EvaluatorName } from './evaluators/evaluator-names.ts';
import type { HiddenStates } from './plan/hidden-state.ts';
import type { PlanLogits } from './plan/plan.ts';
import type { DecisionInput, DecisionPlan } from './plan/profile.ts';
import type { DecoderSize, EvaluatorCounts } from './plan-evaluator.ts';

/** The facts of a loaded model. */
export interface EngineFacts {
  /** SHA-256 over the GGUF parts in order, in hex. A calibration is bound to it. */
  readonly weights_sha256: string;
  readonly profile: string;
  readonly context_tokens: number;
  readonly evaluator: EvaluatorName;
  /** `cpu`, `cuda`, `metal` or `vulkan`. */
  readonly device: string;
  /** The reason for a GPU of this machine that is not used. */
  readonly missing_gpu?: string | undefined;
  /** As `PromptProfile.warning`. */
  readonly warning?: string | undefined;
  /** The fitted temperatures by which scores are divided, by mode; null where there are none. */
  readonly temperatures: Calibration['temperatures'] | null;
  /** True if corrections can have the hidden states at its reads. */
  readonly reads_states: boolean;
}

/** The properties of a plan that schedule it. */
export interface ScheduledPlan {
  readonly tokens: number;
  /** The plan's decoder. Each decoder computes its plans one after the other, beside the other decoder. */
  readonly decoder: DecoderSize;
  /** A decoder accepts another plan while its plans have fewer tokens than this. */
  readonly decoder_tokens: number;
  /** Milliseconds that the plan should take alone; undefined while the speed was not measured. */
  readonly expected_ms?: number | undefined;
}

/** Calls `work` when the plan is scheduled. Resolves or rejects as it does, or rejects with the signal's reason. */
export type SchedulePlan = <Result>(
  plan: ScheduledPlan,
  work: () => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

/** Corrections of the scores of one request, which belong to one set of weights. */
export interface ScoreCorrection {
  /** As in `EngineFacts`: the weights and the profile that the corrections were fitted on. */
  readonly weights_sha256: string;
  readonly profile: string;
  /** Returns true for a question whose hidden states are read for `correct`. */
  needsStates(index: number): boolean;
  /**
   * Returns the scores of the question at `index`, from those without calibration; undefined to leave them. `states` are
   * undefined where `needsStates` is false, and by a profile without them.
   */
  correct(
    index: number,
    scores: readonly number[],
    states: HiddenStates | undefined,
  ): readonly number[] | undefined;
}

export interface EvaluateOptions {
  /** In place of the calibration, for the questions that it corrects; none by default. */
  readonly correction?: ScoreCorrection | undefined;
  /** The organization. Kept prefixes are not reused outside it. */
  readonly scope: string;
  readonly signal?: AbortSignal;
  /** Schedules each plan; undefined runs all at once. */
  readonly schedulePlan?: SchedulePlan | undefined;
}

/** A model's vocabulary without its weights. It plans requests, and loads engines. */
export interface DecisionPlanner {
  /**
   * Resolves with the plans and the exact billed tokens of a request. It needs no engine, and does not block the event
   * loop. Rejects with `PlanRejected`, and with `EngineFailed` when the planner is closed, also meanwhile.
   */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Loads the weights; one engine is open at a time. Rejects with `SetupError`. Rejects with `WeightsError` if the
   * files are missing, unusable, or not those that the planner was opened on. The same holds for a calibration of other
   * weights.
   */
  openEngine(): Promise<DecisionEngine>;
  /** Frees the vocabulary. Engines are closed separately. */
  close(): Promise<void>;
}

/** A planner whose plans a server evaluates. Its vocabulary must be that of the server's model. */
export interface ScoringPlanner {
  /** SHA-256 over the GGUF parts of the vocabulary. */
  readonly vocabulary_sha256: string;
  /** The name of the prompt profile. */
  readonly profile: string;
  /** The largest number of positions of a plan. */
  readonly context_tokens: number;
  /** As `PromptProfile.warning`. */
  readonly warning?: string | undefined;
  /** Plans as `DecisionPlanner.plan` does. */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Returns uncalibrated scores of a request, from the logits of each of its plans, as `DecisionEngine.evaluate` does.
   * A number that is added to all logits of one read changes nothing.
   */
  scores(plan: DecisionPlan, logits: readonly PlanLogits[]): readonly (readonly number[])[];
  /** Returns a token's word without its leading space; null if it is not one word of English letters. */
  wordOf(token: number): string | null;
  close(): Promise<void>;
}

/** A loaded model, which evaluates the plans of its planner. */
export interface DecisionEngine {
  readonly facts: EngineFacts;
  /** Plans as its planner does. */
  plan(input: DecisionInput): Promise<DecisionPlan>;
  /**
   * Resolves with calibrated scores of the plan's request, one list for each question. They are the log-odds of yes for
   * a noul, and otherwise a score for each option or level, for a softmax. Rejects with the signal's reason when
   * aborted, and with `EngineOverloaded` when the queue is full. Rejects with `EvaluationFailed` when only this request
   * cannot be answered. Rejects with `EngineFailed` when the engine is closed or its device failed.
   */
  evaluate(plan: DecisionPlan, options: EvaluateOptions): Promise<readonly (readonly number[])[]>;
  /**
   * Measures the speed by two plans of its own, of about a thousand tokens together, beside other work. Rejects as
   * `evaluate` does; absent if the engine has none.
   */
  measureSpeed?(): Promise<EngineSpeed>;
  /** Returns the engine's counters since its opening; absent if it has none. */
  counts?(): EvaluatorCounts;
  close(): Promise<void>;
}
