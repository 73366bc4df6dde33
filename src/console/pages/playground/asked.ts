import { isJsonArray, isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { isQuestionType, type Mode, type QuestionType } from '../../../questions/types-and-modes.ts';
import type { DecisionResponse } from '../../api/playground.ts';
import { MODE_NAMES } from '../mode-options.ts';
import { isProbability } from './draft.ts';

/** The order of a request's options, in the words of runs that browsers keep: `reversed` is backward. */
export type Order = 'as_written' | 'reversed';

interface NamedRun {
  readonly model: string;
  readonly mode: Mode;
  readonly order: Order;
}

/** The name of a run beside the others: it has the model only where there are several. */
export function runName({ model, mode, order }: NamedRun, all: readonly NamedRun[]): string {
  const mode_name = MODE_NAMES[mode];
  const name = all.some((other) => other.model !== model)
    ? `${model}, ${mode_name.toLowerCase()}`
    : mode_name;
  return order === 'reversed' ? `${name}, reversed` : name;
}

/** A question of a sent request, as shown with its answer. */
export interface AskedQuestion {
  readonly id: string;
  readonly type: QuestionType;
  readonly instructions: string;
  /** The threshold of a yes/no answer; null for none. */
  readonly threshold: number | null;
  /** The ids of a choice's options or a score's levels, as written. */
  readonly labels: readonly string[];
  /** The names of the same in the probabilities of an answer. */
  readonly classes: readonly string[];
}

/** One bar of an answer. */
export interface Share {
  readonly label: string;
  readonly probability: number;
  readonly is_answer: boolean;
}

/** An answer as shown: its shares in the order of the written options. */
export type ShownAnswer = { readonly shares: readonly Share[] } & (
  | { readonly type: 'noul'; readonly yes: number }
  | { readonly type: 'choice'; readonly choice: string; readonly confidence: number }
  | {
      readonly type: 'score';
      /** The expected level, counted from the lowest as written. */
      readonly score: number;
      readonly confidence: number;
    }
);

/** Returns the body with the options of every choice and the levels of every score backward. */
export function backward(body: JsonObject<JsonValue>): JsonObject<JsonValue> {
  const questions = body.get('questions');
  return isJsonObject(questions)
    ? body.with('questions', new JsonObject(questions.names, questions.values.map(backwardQuestion)))
    : body;
}

function backwardQuestion(question: JsonValue): JsonValue {
  if (!isJsonObject(question)) return question;
  const type = question.get('type');
  if (!isQuestionType(type)) return question;
  const criteria = question.get('criteria');
  switch (type) {
    case 'noul':
      return question;
    case 'choice':
      return isJsonObject(criteria)
        ? question.with('criteria', new JsonObject(criteria.names.toReversed(), criteria.values.toReversed()))
        : question;
    case 'score':
      return isJsonArray(criteria) ? question.with('criteria', criteria.toReversed()) : question;
  }
}

/** Returns true if the order of options can matter: a yes/no question has none. */
export function hasOrder(questions: readonly AskedQuestion[]): boolean {
  return questions.some(({ labels }) => labels.length > 0);
}

/** Returns the questions of a body, without members that are not questions. */
export function askedQuestions(body: JsonObject<JsonValue>): readonly AskedQuestion[] {
  const questions = body.get('questions');
  if (!isJsonObject(questions)) return [];
  return questions.entries().flatMap(([id, question]): readonly AskedQuestion[] => {
    if (!isJsonObject(question)) return [];
    const type = question.get('type');
    if (!isQuestionType(type)) return [];
    const threshold = question.get('threshold');
    return [
      {
        id,
        type,
        instructions: textOf(question.get('instructions') ?? ''),
        threshold: isProbability(threshold) ? threshold : null,
        ...optionsOf(type, question.get('criteria')),
      },
    ];
  });
}

function optionsOf(
  type: QuestionType,
  criteria: JsonValue | undefined,
): Pick<AskedQuestion, 'labels' | 'classes'> {
  switch (type) {
    case 'noul':
      return { labels: [], classes: [] };
    case 'choice': {
      const names = isJsonObject(criteria) ? criteria.names : [];
      return { labels: names, classes: names };
    }
    case 'score': {
      const labels = isJsonArray(criteria) ? criteria.map(textOf) : [];
      return { labels, classes: labels.map((_, level) => String(level)) };
    }
  }
}

function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
}

/**
 * Returns the answer to a question of a request whose options were sent in that order. Backward levels are
 * counted back, so that a level means the same in every column. Undefined where the answer is of another
 * type.
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

/**
 * Returns true if two answers differ in their outcome: the side of the threshold, the option, or the nearest
 * level.
 */
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

/** Returns the largest difference between the probabilities of two answers: 0 to 1. */
export function largestChange(a: ShownAnswer, b: ShownAnswer): number {
  const changes = a.shares.map(({ probability }, at) =>
    Math.abs(probability - (b.shares[at]?.probability ?? 0)),
  );
  return Math.max(0, ...changes);
}
