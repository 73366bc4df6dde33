import type { JsonValue } from '../../src/json/json-value.ts';
import type { Mode, Question } from '../../src/questions/question.ts';
import type { PlanLogits } from './plan.ts';
import type { RequestPlan } from './readings.ts';

/** Text to token ids with special tokens disabled: nothing that a client writes becomes a control token. */
export interface BatchTokenizer {
  /**
   * The tokens of every text, in the order of the texts. The event loop goes on turning meanwhile. Rejects with
   * `EngineFailed` when the model is closed, and with `PlanRejected` for a text that its vocabulary's tokenizer
   * cannot take (`native/pre-tokenizer.ts`).
   */
  tokenizeAll(texts: readonly string[]): Promise<readonly (readonly number[])[]>;
}

/** A model's own tokenizer. */
export interface Tokenizer extends BatchTokenizer {
  /** The same at once, holding the event loop up: for the short texts that a profile itself is made of. */
  tokenize(text: string): readonly number[];
}

/** A request as a profile sees it: the record, the questions in order, and how to read them. */
export interface DecisionInput {
  readonly state: JsonValue;
  readonly questions: readonly Question[];
  readonly mode: Mode;
}

/** What a request became: plans to evaluate, and the tokens that are billed for it. */
export interface DecisionPlan {
  readonly plans: readonly RequestPlan[];
  /** In fast mode the record once and every question; in consistent mode the record and the question, for each question. */
  readonly input_tokens: number;
}

/**
 * How text becomes tokens and logits become scores (design, "profiles"). Pure: the same input gives the same plan.
 * A profile is versioned by its name, and a calibration names the profile that it was fitted on.
 */
export interface PromptProfile {
  readonly name: string;
  /**
   * The plans for a request. A record that does not fit into `context_tokens` beside a question loses its middle for
   * that question, on token boundaries: no other question of the request changes what it sees.
   * Rejects with `PlanRejected` when the questions alone do not fit, or have more characters than are looked at: what
   * planning costs is bounded. Texts are rendered at once, and tokenized in one batch.
   */
  plan(input: DecisionInput, context_tokens: number): Promise<DecisionPlan>;
  /**
   * One list of scores a question, from the logits of each of the request's plans: the log-odds of yes for a noul, a score an option
   * or level otherwise, to be compared by softmax. Not calibrated.
   */
  scores(
    input: DecisionInput,
    plans: readonly RequestPlan[],
    logits: readonly PlanLogits[],
  ): readonly (readonly number[])[];
}

/** The model's own reason for refusing a request that passed the service's checks (spec, `invalid_request`). */
export class PlanRejected extends Error {
  override readonly name = 'PlanRejected';
  /** `question` is the index of the question at fault, or null when no single one is. */
  constructor(
    message: string,
    readonly question: number | null,
  ) {
    super(message);
  }
}
