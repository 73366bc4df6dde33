import type { Question } from '../../src/questions/question.ts';
import { PlanRejected } from '../errors.ts';
import { Slices } from '../slices.ts';
import { type ChatFrame, chatFrame, clientTokenizer } from './chat-frame.ts';
import { findLabels, type Label, type Labels } from './labels.ts';
import type { Branch, PlanLogits } from './plan.ts';
import type {
  DecisionInput,
  PromptedModel,
  PromptProfile,
  RegisteredProfile,
  RequestPlans,
  Tokenizer,
} from './profile.ts';
import { QuestionTexts, type TokensOf } from './question-texts.ts';
import {
  leftOut,
  logitsByReading,
  type RequestPlan,
  recordRoom,
  sharedPlans,
  sharedTokens,
} from './readings.ts';
import { type RecordTexts, readRecord, recordTokens } from './record.ts';
import { optionText, type TextReader, text } from './render.ts';
import { cutMiddle } from './shorten.ts';

/** A question as text with labels. `labels[i]` answers option `i` of the client's order. */
interface ListedQuestion {
  readonly text: string;
  readonly labels: readonly Label[];
}

/** The order of a question's options: the client's, or backward. */
type Order = 'forward' | 'backward';
const ORDERS = ['forward', 'backward'] as const;
/** In consistent mode a question is read in each order, with the record and without it. */
const CONSISTENT_READINGS = 2 * ORDERS.length;

function inOrder<Item>(items: readonly Item[], order: Order): readonly Item[] {
  return order === 'forward' ? items : items.toReversed();
}

const NO_TEMPLATE =
  'The file has no chat template that can be used: the model is asked without one, and may answer worse. Take a file with its template.';

const YES_NO = ['Yes', 'No'] as const;

/**
 * Returns the line with the meaning of a noul's answer; none if its label is the word itself and no meaning is given.
 */
function meaningLine(label: Label, word: string, meaning: string): readonly string[] {
  if (label.text === word) return meaning === '' ? [] : [`${word}: ${meaning}`];
  return [`${label.text}. ${meaning === '' ? word : `${word}: ${meaning}`}`];
}

/** Returns the text before the record. `asked` is the question if it comes first. */
function openingText(asked: string): string {
  return `Answer a question about a record, from the record alone.\n\n${asked}Record:\n`;
}

/** Returns an option on one line, so that no description looks like another option. */
function oneLine(value: string): string {
  return value.replace(/\s+/g, ' ');
}

function optionTexts(question: Question, read: TextReader): readonly string[] {
  switch (question.type) {
    case 'noul':
      return [question.yes, question.no].map((value) => read(value));
    case 'choice':
      return question.options.map((option) => optionText(option.id, option.description, read));
    case 'score':
      return question.levels.map((value) => read(value));
  }
}

function logSoftmax(logits: readonly number[]): readonly number[] {
  const highest = Math.max(...logits);
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  return logits.map((logit) => logit - highest - total);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Returns the log-probabilities of the labels at the one read of every branch of a plan. */
function labelScores(logits: PlanLogits | undefined): readonly (readonly number[])[] {
  return (logits ?? []).map((reads) => logSoftmax(reads[0] ?? []));
}

/** Returns the scores of question `index` from those of its labels. Throws if there are fewer than two. */
function scoresOf(question: Question, index: number, label_scores: readonly number[]): readonly number[] {
  const [first, second] = label_scores;
  if (first === undefined || second === undefined)
    throw new Error(`The logits of question ${index} are missing.`);
  switch (question.type) {
    case 'noul':
      return [first - second];
    case 'choice':
    case 'score':
      return label_scores;
  }
}

/**
 * The profile for any instruct model, through its chat template. Options get codes of one token (A…Z, then two
 * letters), which one read at the cue scores. The words yes and no answer a noul.
 *
 * Fast mode: the record is the prefix of one plan, each question a branch. Consistent mode has one plan for each
 * question, with the question before and after the record and its options in both orders. A second plan without the
 * record gives the model's bias to the labels, which is divided out.
 */
class CodesV1 implements PromptProfile {
  readonly name = 'codes-v1';
  readonly reads_many_options_twice = false;
  readonly states = null;
  readonly warning: string | undefined;
  readonly #frame: ChatFrame;
  readonly #client: Tokenizer;
  readonly #cue: readonly number[];
  readonly #codes: readonly Label[];
  readonly #yes_no: readonly [Label, Label];

  /** `client` tokenizes what clients write. Throws when fewer than two codes are one token each. */
  constructor(frame: ChatFrame, client: Tokenizer, { cue, codes, yes_no }: Labels) {
    const [first, second] = codes;
    if (first === undefined || second === undefined) {
      throw new Error(
        'The vocabulary has no two letters that are one token each: options cannot be told apart.',
      );
    }
    this.#frame = frame;
    this.warning = frame.has_template ? undefined : NO_TEMPLATE;
    this.#client = client;
    this.#cue = cue;
    this.#codes = codes;
    this.#yes_no = yes_no ?? [first, second];
  }

  async plan(input: DecisionInput, context_tokens: number): Promise<RequestPlans> {
    const record = readRecord(input.state, context_tokens);
    return input.mode === 'consistent'
      ? await this.#consistentPlans(record, input.questions, context_tokens)
      : await this.#fastPlans(record, input.questions, context_tokens);
  }

  scores(
    input: DecisionInput,
    plans: readonly RequestPlan[],
    logits: readonly PlanLogits[],
  ): readonly (readonly number[])[] {
    const readings = logitsByReading(plans, logits);
    return input.questions.map((question, index) => {
      const own = readings.slice(CONSISTENT_READINGS * index, CONSISTENT_READINGS * (index + 1));
      const scores =
        input.mode === 'fast'
          ? (readings[index]?.[0] ?? [])
          : this.#consistentScores(question, index, own.slice(0, ORDERS.length), own.slice(ORDERS.length));
      return scoresOf(question, index, scores);
    });
  }

  async #fastPlans(
    record_texts: RecordTexts,
    questions: readonly Question[],
    context_tokens: number,
  ): Promise<RequestPlans> {
    const texts = new QuestionTexts(this.#client, context_tokens);
    const opening_text = openingText('');
    const slices = new Slices();
    const listed = await slices.map(questions, (question, index) =>
      this.#listed(question, index, 'forward', texts),
    );
    const tokensOf = await texts.tokenize([opening_text, ...record_texts.windows]);
    const opening = [...this.#frame.head, ...tokensOf(opening_text)];
    const branches = await slices.map(listed, (question, index) => {
      const branch = this.#branch(question, tokensOf);
      return { branch, room: recordRoom(opening.length + branch.tokens.length, context_tokens, index) };
    });
    const record = recordTokens(record_texts, tokensOf);
    const plans = sharedPlans(opening, record.tokens, branches, context_tokens);
    const record_tokens_left_out = leftOut(plans, record.count, opening.length);
    return { plans, input_tokens: sharedTokens(plans), record_tokens_left_out };
  }

  /** Makes a plan with the record and one without it, for each question. */
  async #consistentPlans(
    record_texts: RecordTexts,
    questions: readonly Question[],
    context_tokens: number,
  ): Promise<RequestPlans> {
    const texts = new QuestionTexts(this.#client, context_tokens);
    const slices = new Slices();
    const rendered = await slices.map(questions, (question, index) => {
      const first = texts.reading(index);
      const asked = this.#labelled(question, index, 'forward', first.text);
      return {
        opening: first.take(openingText(`${asked.text}\n\n`)),
        listed: ORDERS.map((order) => this.#listed(question, index, order, texts)),
      };
    });
    const opening_text = openingText('');
    const tokensOf = await texts.tokenize([opening_text, ...record_texts.windows]);
    const record = recordTokens(record_texts, tokensOf);
    const format_tokens = this.#frame.head.length + tokensOf(opening_text).length;
    const asked = await slices.map(rendered, (question, index) => {
      const opening = [...this.#frame.head, ...tokensOf(question.opening)];
      const branches = question.listed.map((listed) => this.#branch(listed, tokensOf));
      const longest = Math.max(...branches.map((branch) => branch.tokens.length));
      const room = recordRoom(opening.length + longest, context_tokens, index);
      const read = cutMiddle(record.tokens, room);
      const first_reading = CONSISTENT_READINGS * index;
      const numbers = (from: number) => branches.map((_, order) => first_reading + from + order);
      return {
        plans: [
          { prefix: [...opening, ...read], branches, readings: numbers(0) },
          { prefix: opening, branches, readings: numbers(ORDERS.length) },
        ],
        // The record and the question are billed once, however often they are read.
        input_tokens: format_tokens + read.length + (branches[0]?.tokens.length ?? 0),
        left_out: record.count - read.length,
      };
    });
    return {
      plans: asked.flatMap(({ plans }) => plans),
      input_tokens: asked.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
      record_tokens_left_out: Math.max(0, ...asked.map(({ left_out }) => left_out)),
    };
  }

  /** Returns a question as it stands after the record. Its text is added to the batch to tokenize. */
  #listed(question: Question, index: number, order: Order, texts: QuestionTexts): ListedQuestion {
    const reading = texts.reading(index);
    const { text, labels } = this.#labelled(question, index, order, reading.text);
    return { text: reading.take(`\n\n${text}`), labels };
  }

  #branch(listed: ListedQuestion, tokensOf: TokensOf): Branch {
    const tokens = [...tokensOf(listed.text), ...this.#frame.tail, ...this.#cue];
    return {
      tokens,
      reads: [{ index: tokens.length - 1, tokens: listed.labels.map((label) => label.token) }],
    };
  }

  /** Returns a question as text with labels. `read` renders its values within its own bounds. */
  #labelled(question: Question, index: number, order: Order, read: TextReader = text): ListedQuestion {
    const asked = `Question: ${read(question.instructions) || 'Which option fits the record?'}`;
    const options = optionTexts(question, read).map(oneLine);
    switch (question.type) {
      case 'noul':
        return this.#answeredByWord(asked, options, order);
      case 'choice':
      case 'score':
        return this.#answeredByCode(asked, options, index, order);
    }
  }

  #answeredByWord(asked: string, meanings: readonly string[], order: Order): ListedQuestion {
    const labels = this.#yes_no;
    const meaning_lines = labels.flatMap((label, at) =>
      meaningLine(label, YES_NO[at] ?? '', meanings[at] ?? ''),
    );
    const names = inOrder(labels, order).map((label) => label.text);
    const lines = [asked, ...inOrder(meaning_lines, order), `Answer with ${names.join(' or ')}.`];
    return { text: lines.join('\n'), labels };
  }

  #answeredByCode(asked: string, options: readonly string[], index: number, order: Order): ListedQuestion {
    const codes = this.#codes.slice(0, options.length);
    if (codes.length < options.length) {
      throw new PlanRejected(
        `The question has ${options.length} options, and this model has single-token codes for ${codes.length} only.`,
        index,
      );
    }
    const lines = inOrder(options, order).map((option, at) => `${codes[at]?.text}. ${option}`);
    return {
      text: [asked, ...lines, 'Answer with the code of one option.'].join('\n'),
      labels: inOrder(codes, order),
    };
  }

  /**
   * Returns the mean over both orders of each option's log-probability, minus its label's bias. The bias is the label's
   * mean over both orders without a record, in which it named different options.
   */
  #consistentScores(
    question: Question,
    index: number,
    with_record: PlanLogits | undefined,
    without_record: PlanLogits | undefined,
  ): readonly number[] {
    const orders = ORDERS.map((order) =>
      this.#labelled(question, index, order).labels.map((label) => label.token),
    );
    const pulls = new Map<number, number[]>();
    labelScores(without_record).forEach((scores, at) => {
      orders[at]?.forEach((token, option) => {
        pulls.set(token, [...(pulls.get(token) ?? []), scores[option] ?? Number.NaN]);
      });
    });
    const corrected = labelScores(with_record).map((scores, at) =>
      scores.map((score, option) => score - mean(pulls.get(orders[at]?.[option] ?? -1) ?? [])),
    );
    return (corrected[0] ?? []).map((_, option) =>
      mean(corrected.map((scores) => scores[option] ?? Number.NaN)),
    );
  }
}

/**
 * Makes `codes-v1` for a model. A plain frame replaces a missing chat template. Rejects if the vocabulary has no
 * single-token codes. A question with more options than codes gets `PlanRejected`.
 */
export async function codesV1({
  tokenizer,
  vocabulary,
  chat_template,
}: PromptedModel): Promise<PromptProfile> {
  const labels = await findLabels(tokenizer);
  const frame = await chatFrame(chat_template, vocabulary, tokenizer);
  return new CodesV1(frame, await clientTokenizer(frame, vocabulary, tokenizer), labels);
}

/** `codes-v1`, for any vocabulary. */
export const CODES_V1: RegisteredProfile = {
  fits: () => true,
  flash_attention: 'auto',
  make: codesV1,
};
