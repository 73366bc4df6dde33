import type { JsonValue } from '../../src/json/json-value.ts';
import type { Mode, Question } from '../../src/questions/question.ts';
import type { PlanLogits } from './plan.ts';
import type { ReadBounds } from './read-bounds.ts';
import type { RequestPlan } from './readings.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Text to token ids with special tokens disabled: nothing that a client writes becomes a control token. */
export interface Tokenizer {
  /**
   * The tokens of every text, in the order of the texts. The event loop goes on turning meanwhile. Rejects with
   * `EngineFailed` when the model is closed, and with `PlanRejected` for a text that its vocabulary's tokenizer
   * cannot take (`native/pre-tokenizer.ts`).
   */
  tokenize(texts: readonly string[]): Promise<readonly (readonly number[])[]>;
}

/** A request as a profile sees it: the record, the questions in order, and how to read them. */
export interface DecisionInput {
  readonly state: JsonValue;
  readonly questions: readonly Question[];
  readonly mode: Mode;
}

/** What a profile makes of a request: plans to evaluate, and the tokens that are billed for it. */
export interface RequestPlans {
  readonly plans: readonly RequestPlan[];
  /**
   * In fast mode the record once and every question; in consistent mode the record and the question, for each question.
   */
  readonly input_tokens: number;
  /**
   * How many tokens of the record the question that has the least room for it does not see; 0 where all see all of it.
   * Null where somebody else makes the plans.
   */
  readonly record_tokens_left_out: number | null;
}

/** The plans of a request with the request itself, so that no plan is evaluated for another one. */
export interface DecisionPlan extends RequestPlans {
  readonly input: DecisionInput;
}

/**
 * How text becomes tokens and logits become scores. Pure: the same input gives the same plans.
 * A profile is versioned by its name, and a calibration names the profile that it was fitted on.
 */
export interface PromptProfile {
  readonly name: string;
  /**
   * The plans for a request. A record that does not fit into `context_tokens` beside a question loses its middle for
   * that question, on token boundaries. No other question of the request changes what a question sees. Rejects with
   * `PlanRejected` when the questions alone do not fit, or have more characters than are looked at: what planning costs
   * is bounded. Texts are rendered at once, and tokenized in one batch.
   */
  plan(input: DecisionInput, context_tokens: number): Promise<RequestPlans>;
  /**
   * One list of scores a question, from the logits of each of the request's plans. They are the log-odds of yes for a
   * noul, and otherwise a score for each option or level, to be compared by softmax. Not calibrated.
   */
  scores(
    input: DecisionInput,
    plans: readonly RequestPlan[],
    logits: readonly PlanLogits[],
  ): readonly (readonly number[])[];
}

/** What a profile is made of: the model's own tokenizer, vocabulary and chat template. */
export interface PromptedModel {
  readonly tokenizer: Tokenizer;
  readonly vocabulary: Vocabulary;
  /** The model's Jinja template, or undefined where it has none. */
  readonly chat_template: string | undefined;
}

/** A profile in the table of `profiles.ts`: which models it is for, and what it needs of an evaluator. */
export interface RegisteredProfile {
  /** Whether a model with this vocabulary is asked by this profile. */
  fits(vocabulary: Vocabulary): boolean;
  readonly reads: ReadBounds;
  /** `auto` saves memory on long contexts; false where scores are pinned to fractions of a logit. */
  readonly flash_attention: 'auto' | false;
  /** Rejects with an `Error` that says why the model cannot be asked. */
  make(model: PromptedModel): Promise<PromptProfile>;
}
