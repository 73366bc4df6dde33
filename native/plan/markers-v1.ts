import type { Question, QuestionType } from '../../src/questions/question.ts';
import { Slices } from '../slices.ts';
import { withConsistentReadings } from './consistent-readings.ts';
import { hiddenState, stateTokens, withStateTokens } from './hidden-state.ts';
import type { Branch, PlanLogits } from './plan.ts';
import { planTokens } from './plan.ts';
import type { DecisionInput, PromptProfile, RegisteredProfile, RequestPlans, Tokenizer } from './profile.ts';
import { QuestionTexts, type ReadingTexts, type TokensOf } from './question-texts.ts';
import {
  leftOut,
  logitsByReading,
  type RequestPlan,
  recordRoom,
  sharedPlans,
  sharedTokens,
} from './readings.ts';
import { type RecordTokens, readRecord, recordTokens } from './record.ts';
import { optionText, type TextReader } from './render.ts';
import { cutMiddle } from './shorten.ts';

/** The control tokens that a vocabulary must have at these ids for this profile; text never produces them. */
export const MARKERS_V1_TOKENS = {
  '<|record|>': 3,
  '<|question|>': 4,
  '<|option|>': 5,
  '<|answer|>': 6,
  '<|yes|>': 7,
  '<|no|>': 8,
} as const;

const RECORD = MARKERS_V1_TOKENS['<|record|>'];
const QUESTION = MARKERS_V1_TOKENS['<|question|>'];
const OPTION = MARKERS_V1_TOKENS['<|option|>'];
const ANSWER = MARKERS_V1_TOKENS['<|answer|>'];
const ANSWER_TOKENS = [MARKERS_V1_TOKENS['<|yes|>'], MARKERS_V1_TOKENS['<|no|>']] as const;

/** Returns the texts of a question's options: answered ones for choice and score, read-only ones for a noul. */
function optionTexts(question: Question, text: TextReader): readonly string[] {
  switch (question.type) {
    case 'noul': {
      const yes = text(question.yes);
      const no = text(question.no);
      return [...(yes === '' ? [] : [`yes: ${yes}`]), ...(no === '' ? [] : [`no: ${no}`])];
    }
    case 'choice':
      return question.options.map((option) => optionText(option.id, option.description, text));
    case 'score':
      return question.levels.map((value) => text(value));
  }
}

/** The texts of a question to tokenize. */
interface RenderedQuestion {
  readonly type: QuestionType;
  readonly instructions: string;
  readonly options: readonly string[];
}

function renderQuestion(question: Question, { text, take }: ReadingTexts): RenderedQuestion {
  const instructions = take(text(question.instructions));
  return { type: question.type, instructions, options: optionTexts(question, text).map(take) };
}

/** A question's tokens before the record (consistent mode) and its branch after it. */
interface TokenizedQuestion {
  readonly head: readonly number[];
  readonly branch: Branch;
}

function tokenizeQuestion(question: RenderedQuestion, tokensOf: TokensOf): TokenizedQuestion {
  const opening = [QUESTION, ...tokensOf(question.instructions)];
  const options = question.options.map((option) => [OPTION, ...tokensOf(option)]);
  const head = [...opening, ...options.flat()];
  switch (question.type) {
    case 'noul':
      return {
        head,
        branch: { tokens: [...head, ANSWER], reads: [{ index: head.length, tokens: ANSWER_TOKENS }] },
      };
    case 'choice':
    case 'score':
      return { head, branch: answeredOptions(opening, options) };
  }
}

/** Returns a branch that reads an answer token after each option. */
function answeredOptions(opening: readonly number[], options: readonly (readonly number[])[]): Branch {
  const answered = options.map((option) => [...option, ANSWER]);
  let index = opening.length - 1;
  const reads = answered.map((option) => {
    index += option.length;
    return { index, tokens: ANSWER_TOKENS };
  });
  return { tokens: [...opening, ...answered.flat()], reads };
}

function fastPlans(
  record: readonly number[],
  asked: readonly TokenizedQuestion[],
  context_tokens: number,
): readonly RequestPlan[] {
  const branches = asked.map(({ branch }, index) => ({
    branch,
    room: recordRoom(1 + branch.tokens.length, context_tokens, index),
  }));
  return sharedPlans([RECORD], record, branches, context_tokens);
}

function consistentPlans(
  record: RecordTokens,
  asked: readonly TokenizedQuestion[],
  context_tokens: number,
): RequestPlans {
  const planned = asked.map(({ head, branch }, index) => {
    const room = recordRoom(head.length + 1 + branch.tokens.length, context_tokens, index);
    const read = cutMiddle(record.tokens, room);
    return {
      plan: { prefix: [...head, RECORD, ...read], branches: [branch], readings: [index] },
      left_out: record.count - read.length,
    };
  });
  const plans = planned.map(({ plan }) => plan);
  return {
    plans,
    input_tokens: plans.reduce((sum, plan) => sum + planTokens(plan), 0),
    record_tokens_left_out: Math.max(0, ...planned.map(({ left_out }) => left_out)),
  };
}

function readScore(logits: readonly number[]): number {
  const [yes, no] = logits;
  if (yes === undefined || no === undefined) throw new Error('A read lacks the logits of yes and no.');
  return yes - no;
}

/**
 * Returns decision-1's profile. An answer token follows every option, whose score is the logit of yes minus that of no
 * there. In fast mode the record is the prefix and each question is a branch. In consistent mode each question has its
 * own plan and also stands before the record. `tokenizer` is the model's. `state_tokens` are those of its hidden states.
 */
export function markersV1(tokenizer: Tokenizer, state_tokens: readonly number[] = []): PromptProfile {
  return {
    name: 'markers-v1',
    reads_many_options_twice: true,
    // Reading `i` is question `i`.
    states: {
      asked: (_input, plans, isWanted) => withStateTokens(plans, state_tokens, isWanted),
      of: (_input, plans, logits) =>
        logitsByReading(plans, logits).map((branch) =>
          branch.map((read) => hiddenState(read.slice(ANSWER_TOKENS.length))),
        ),
    },

    async plan(input: DecisionInput, context_tokens: number): Promise<RequestPlans> {
      const slices = new Slices();
      const texts = new QuestionTexts(tokenizer, context_tokens);
      const rendered = await slices.map(input.questions, (question, index) =>
        renderQuestion(question, texts.reading(index)),
      );
      await slices.pause();
      const record_texts = readRecord(input.state, context_tokens);
      const tokensOf = await texts.tokenize(record_texts.windows);
      const asked = await slices.map(rendered, (question) => tokenizeQuestion(question, tokensOf));
      const record = recordTokens(record_texts, tokensOf);
      if (input.mode === 'fast') {
        const plans = fastPlans(record.tokens, asked, context_tokens);
        const record_tokens_left_out = leftOut(plans, record.count, 1);
        return { plans, input_tokens: sharedTokens(plans), record_tokens_left_out };
      }
      return consistentPlans(record, asked, context_tokens);
    },

    scores(
      _input: DecisionInput,
      plans: readonly RequestPlan[],
      logits: readonly PlanLogits[],
    ): readonly (readonly number[])[] {
      return logitsByReading(plans, logits).map((branch) => branch.map(readScore));
    },
  };
}

/** `markers-v1` with consistent readings, for decision-1: the control tokens are in its vocabulary at fixed ids. */
export const MARKERS_V1: RegisteredProfile = {
  fits: (vocabulary) =>
    Object.entries(MARKERS_V1_TOKENS).every(
      ([text, id]) => vocabulary.texts[id] === text && vocabulary.special.has(id),
    ),
  // For the `llama` evaluator only; the addon chooses by itself. The pinned scores were made without it. With it, the
  // same weights in 32 bits are up to .005 off, the whole tolerance.
  flash_attention: false,
  make: ({ tokenizer, vocabulary }) =>
    Promise.resolve(withConsistentReadings(markersV1(tokenizer, stateTokens(vocabulary.texts.length)))),
};
