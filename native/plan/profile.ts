import type { JsonValue } from '../../src/json/json-value.ts';
import type { Mode, Question } from '../../src/questions/question.ts';
import type { HiddenStates } from './hidden-state.ts';
import type { PlanLogits } from './plan.ts';
import type { RequestPlan } from './readings.ts';
import type { Vocabulary } from './vocabulary.ts';

/** A tokenizer without special tokens, so that no client's text becomes a control token. */
export interface Tokenizer {
  /**
   * Resolves with the tokens of every text in order, without blocking the event loop. Rejects with `EngineFailed` when
   * the model is closed. Rejects with `PlanRejected` for a text that its tokenizer cannot process
   * (`native/pre-tokenizer.ts`).
   */
  tokenize(texts: readonly string[]): Promise<readonly (readonly number[])[]>;
}

/** A profile's view of a request: the record, the questions in order, and the mode. */
export interface DecisionInput {
  readonly state: JsonValue;
  readonly questions: readonly Question[];
  readonly mode: Mode;
}

/** A profile's result for a request: plans to evaluate, and the billed tokens. */
export interface RequestPlans {
  readonly plans: readonly RequestPlan[];
  /**
   * The billed tokens. In fast mode the record once and every question; in consistent mode the record with each
   * question.
   */
  readonly input_tokens: number;
  /**
   * The largest number of the record's tokens that a question does not see; 0 if all see all of it. Null if an upstream
   * makes the plans.
   */
  readonly record_tokens_left_out: number | null;
}

/** The plans of a request with the request, so that no plan is evaluated for another one. */
export interface DecisionPlan extends RequestPlans {
  readonly input: DecisionInput;
}

/** A profile's way to the hidden states at its reads, which only some requests need. */
export interface StateReads {
  /** Returns the plans with the hidden states at the reads of the questions that `isWanted`. The tokens stay the same. */
  asked(
    input: DecisionInput,
    plans: readonly RequestPlan[],
    isWanted: (question: number) => boolean,
  ): readonly RequestPlan[];
  /** Returns the hidden states by question, with empty lists where none were asked for. */
  of(
    input: DecisionInput,
    plans: readonly RequestPlan[],
    logits: readonly PlanLogits[],
  ): readonly HiddenStates[];
}

/**
 * Turns text into tokens and logits into scores. It is pure: the same input gives the same plans. Its name is its
 * version, which a calibration stores.
 */
export interface PromptProfile {
  readonly name: string;
  /** True where a second reading of the likeliest of many options was measured to make choices better. */
  readonly reads_many_options_twice: boolean;
  /** Null where not every score has a read of its own, whose hidden state would be that of the score. */
  readonly states: StateReads | null;
  /** A sentence for the operator about a model that lacks something; undefined for none. */
  readonly warning?: string | undefined;
  /**
   * Resolves with the plans for a request. A record that does not fit into `context_tokens` beside a question loses its
   * middle for that question, on token boundaries. No other question changes that. Rejects with `PlanRejected` if the
   * questions alone do not fit, or exceed the bounded number of characters. Texts are rendered at once, and tokenized
   * in one batch.
   */
  plan(input: DecisionInput, context_tokens: number): Promise<RequestPlans>;
  /**
   * Returns one list of scores for each question, from the logits of each of the request's plans. They are the log-odds
   * of yes for a noul, and otherwise a score for each option or level, for a softmax. They are not calibrated.
   */
  scores(
    input: DecisionInput,
    plans: readonly RequestPlan[],
    logits: readonly PlanLogits[],
  ): readonly (readonly number[])[];
}

/** The model's tokenizer, vocabulary and chat template, of which a profile is made. */
export interface PromptedModel {
  readonly tokenizer: Tokenizer;
  readonly vocabulary: Vocabulary;
  /** The model's Jinja template, or undefined for none. */
  readonly chat_template: string | undefined;
}

/** A profile in the table of `profiles.ts`: its models, and its need of an evaluator. */
export interface RegisteredProfile {
  /** Returns true if the profile serves models with this vocabulary. */
  fits(vocabulary: Vocabulary): boolean;
  /** For `llama`: `auto` saves memory on long contexts; false if scores are pinned to fractions of a logit. */
  readonly flash_attention: 'auto' | false;
  /** Rejects with an `Error` with the reason if the model cannot be asked. */
  make(model: PromptedModel): Promise<PromptProfile>;
}
