import { isJsonArray, type JsonValue } from '../json/json-value.ts';
import type { ChoiceQuestion } from '../questions/choice.ts';
import type { Question } from '../questions/question.ts';
import type { EvalCase } from './cases.ts';

/** Changes to a request that should not change its answers. */
export const PROBES = [
  'options_reversed',
  'option_added',
  'question_reworded',
  'questions_added',
  'text_added',
] as const;
export type Probe = (typeof PROBES)[number];

/** A changed request. `asked[i]` is the case's question of the request's question `i`; the rest are extra. */
export interface ProbedRequest {
  readonly state: JsonValue;
  readonly questions: readonly Question[];
  readonly asked: readonly number[];
}

/** An option that is the right answer to no other question. */
const ADDED_OPTION = { id: 'lighthouse_paint', description: 'the paint of a lighthouse' } as const;

const UNRELATED_QUESTIONS: readonly Question[] = [
  {
    type: 'noul',
    instructions: 'Does the text mention a lighthouse?',
    yes: undefined,
    no: undefined,
  },
  {
    type: 'choice',
    instructions: 'Which season is it?',
    options: ['spring', 'summer', 'autumn', 'winter'].map((id) => ({ id, description: null })),
  },
];

/** Text that is irrelevant to every question; our own, so that it is in no set. */
const IRRELEVANT_TEXT =
  'Page 3 of 7. This page was printed on recycled paper. The margin on the left is for binding.';

/** Rewordings of a question that keep its meaning, whatever it is. */
const REWORDINGS: readonly ((instructions: string) => string)[] = [
  (instructions) => `Read the record and answer this: ${instructions}`,
  (instructions) => `${instructions} Answer from the record alone.`,
  (instructions) => `Please decide. ${instructions}`,
  (instructions) => `Here is what we need to know. ${instructions}`,
];

/**
 * Returns the case's request with one change; undefined where the change does not apply to any of its
 * questions.
 */
export function probed(probe: Probe, subject: EvalCase): ProbedRequest | undefined {
  const questions = subject.questions.map(({ question }) => question);
  switch (probe) {
    case 'options_reversed':
      return changed(subject, questions.map(backward));
    case 'option_added':
      return changed(
        subject,
        questions.map((question, index) => withAddedOption(question, drawnNumber(subject, index))),
      );
    case 'question_reworded':
      return changed(
        subject,
        questions.map((question, index) =>
          reworded(question, REWORDINGS[drawnNumber(subject, index) % REWORDINGS.length]),
        ),
      );
    case 'questions_added':
      return {
        state: subject.state,
        questions: [...questions, ...UNRELATED_QUESTIONS],
        asked: questions.map((_, index) => index),
      };
    case 'text_added':
      return {
        state: withIrrelevantText(subject.state),
        questions,
        asked: questions.map((_, index) => index),
      };
  }
}

/** Returns a number drawn by the case's digest, so that every run of a case draws the same. */
function drawnNumber({ digest }: EvalCase, question: number): number {
  return Number.parseInt(digest.slice(0, 8), 16) + question;
}

/**
 * Returns a request with only the questions that the change applies to, because the others would show
 * nothing.
 */
function changed(subject: EvalCase, questions: readonly (Question | undefined)[]): ProbedRequest | undefined {
  const applied = questions.flatMap((question, index) =>
    question === undefined ? [] : [{ question, index }],
  );
  if (applied.length === 0) return undefined;
  return {
    state: subject.state,
    questions: applied.map(({ question }) => question),
    asked: applied.map(({ index }) => index),
  };
}

/** Returns a choice; undefined for a noul, whose two sides have names, and a score, whose levels are a scale. */
function withFreeOrder(question: Question): ChoiceQuestion | undefined {
  switch (question.type) {
    case 'choice':
      return question;
    case 'noul':
    case 'score':
      return undefined;
  }
}

/** Returns a choice with its options backward, because their order alone has no meaning. */
function backward(question: Question): Question | undefined {
  const choice = withFreeOrder(question);
  return choice && { ...choice, options: choice.options.toReversed() };
}

/**
 * Returns a choice with one more option at a drawn position. At the end, the options before it could not see
 * it.
 */
function withAddedOption(question: Question, number: number): Question | undefined {
  const choice = withFreeOrder(question);
  if (choice === undefined || choice.options.some(({ id }) => id === ADDED_OPTION.id)) return undefined;
  const place = number % (choice.options.length + 1);
  return { ...choice, options: choice.options.toSpliced(place, 0, ADDED_OPTION) };
}

function reworded(
  question: Question,
  rewording: ((instructions: string) => string) | undefined,
): Question | undefined {
  const { instructions } = question;
  if (rewording === undefined || typeof instructions !== 'string' || instructions.trim() === '')
    return undefined;
  return { ...question, instructions: rewording(instructions) };
}

function withIrrelevantText(state: JsonValue): JsonValue {
  if (state === null || typeof state !== 'object') return `${String(state)}\n\n${IRRELEVANT_TEXT}`;
  if (isJsonArray(state)) return [...state, IRRELEVANT_TEXT];
  return state.with('footer', IRRELEVANT_TEXT);
}
