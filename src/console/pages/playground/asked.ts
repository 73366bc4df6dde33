import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import type { Mode, QuestionType } from '../../../questions/question.ts';
import type { DecisionResponse } from '../../api/playground.ts';
import { isProbability, QUESTION_TYPES } from './draft.ts';

/** In which order a request's options were sent. */
export type Order = 'as_written' | 'reversed';

/** What a run is called. */
export function runName({ mode, order }: { readonly mode: Mode; readonly order: Order }): string {
  const name = mode === 'fast' ? 'Fast' : 'Consistent';
  return order === 'reversed' ? `${name}, reversed` : name;
}

/** A question of a request that was sent, as its answer is shown. */
export interface AskedQuestion {
  readonly id: string;
  readonly type: QuestionType;
  readonly instructions: string;
  /** Where a yes/no answer turns; null for none. */
  readonly threshold: number | null;
  /** The ids of a choice's options or a score's levels, as they were written. */
  readonly labels: readonly string[];
}

/** One bar of an answer. */
export interface Share {
  readonly label: string;
  readonly probability: number;
  readonly is_answer: boolean;
}

/** An answer as it is shown: its shares in the order in which the options were written. */
export type ShownAnswer = { readonly shares: readonly Share[] } & (
  | { readonly type: 'noul'; readonly yes: number }
  | { readonly type: 'choice'; readonly choice: string; readonly confidence: number }
  | {
      readonly type: 'score';
      /** The expected level, counted from the lowest as it was written. */
      readonly score: number;
      readonly confidence: number;
    }
);

/** The body with the options of every choice and the levels of every score in the opposite order. */
export function reversed(body: JsonObject<JsonValue>): JsonObject<JsonValue> {
  const questions = body.get('questions');
  return isJsonObject(questions)
    ? body.with('questions', new JsonObject(questions.names, questions.values.map(reversedQuestion)))
    : body;
}

function reversedQuestion(question: JsonValue): JsonValue {
  if (!isJsonObject(question)) return question;
  const criteria = question.get('criteria');
  switch (question.get('type')) {
    case 'choice':
      return isJsonObject(criteria)
        ? question.with('criteria', new JsonObject(criteria.names.toReversed(), criteria.values.toReversed()))
        : question;
    case 'score':
      return isJsonArray(criteria) ? question.with('criteria', criteria.toReversed()) : question;
    default:
      return question;
  }
}

/** Whether another order of options can change anything: a yes/no question has none. */
export function hasOrder(questions: readonly AskedQuestion[]): boolean {
  return questions.some(({ labels }) => labels.length > 0);
}

/** The questions of a body, as far as they are questions. */
export function askedQuestions(body: JsonObject<JsonValue>): readonly AskedQuestion[] {
  const questions = body.get('questions');
  if (!isJsonObject(questions)) return [];
  return questions.names.flatMap((id, at): readonly AskedQuestion[] => {
    const question = questions.values[at];
    if (!isJsonObject(question)) return [];
    const type = QUESTION_TYPES.find((one) => one === question.get('type'));
    if (type === undefined) return [];
    const threshold = question.get('threshold');
    return [
      {
        id,
        type,
        instructions: textOf(question.get('instructions') ?? ''),
        threshold: isProbability(threshold) ? threshold : null,
        labels: labelsOf(type, question.get('criteria')),
      },
    ];
  });
}

function labelsOf(type: QuestionType, criteria: JsonValue | undefined): readonly string[] {
  switch (type) {
    case 'noul':
      return [];
    case 'choice':
      return isJsonObject(criteria) ? criteria.names : [];
    case 'score':
      return isJsonArray(criteria) ? criteria.map(textOf) : [];
  }
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
}

/**
 * The answer to a question of a request whose options were sent in that order. Levels that were sent reversed are
 * counted back, so that a level means the same in every column. Undefined where the answer is of another type.
 */
export function shownAnswer(
  { id, type, labels }: AskedQuestion,
  answers: DecisionResponse['answers'],
  order: Order,
): ShownAnswer | undefined {
  const answer = Object.hasOwn(answers, id) ? answers[id] : undefined;
  if (answer?.type !== type) return undefined;
  switch (answer.type) {
    case 'noul': {
      const { noul: yes } = answer;
      return { type: 'noul', yes, shares: [{ label: 'yes', probability: yes, is_answer: true }] };
    }
    case 'choice': {
      const { choice, confidence, probabilities } = answer;
      const shares = labels.map((label) => ({
        label,
        probability: probabilities[label] ?? 0,
        is_answer: label === choice,
      }));
      return { type: 'choice', choice, confidence, shares };
    }
    case 'score': {
      const { score, confidence, probabilities } = answer;
      const highest = labels.length - 1;
      const shares = labels.map((label, level) => ({
        label: `${level} · ${label}`,
        probability: probabilities[order === 'reversed' ? highest - level : level] ?? 0,
      }));
      const most = Math.max(...shares.map(({ probability }) => probability));
      const likeliest = shares.findIndex(({ probability }) => probability === most);
      return {
        type: 'score',
        score: order === 'reversed' ? highest - score : score,
        confidence,
        shares: shares.map((share, level) => ({ ...share, is_answer: level === likeliest })),
      };
    }
  }
}

/** Whether two answers differ in what follows: the side of the threshold, the option, or the nearest level. */
export function isOther(a: ShownAnswer, b: ShownAnswer, threshold: number): boolean {
  return outcomeOf(a, threshold) !== outcomeOf(b, threshold);
}

function outcomeOf(answer: ShownAnswer, threshold: number): string {
  switch (answer.type) {
    case 'noul':
      return answer.yes >= threshold ? 'yes' : 'no';
    case 'choice':
      return answer.choice;
    case 'score':
      return String(Math.round(answer.score));
  }
}

/** How far the probabilities of an answer are from another's at most: 0 to 1. */
export function largestChange(a: ShownAnswer, b: ShownAnswer): number {
  const changes = a.shares.map(({ probability }, at) =>
    Math.abs(probability - (b.shares[at]?.probability ?? 0)),
  );
  return Math.max(0, ...changes);
}
