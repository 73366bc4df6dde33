import { logSoftmax } from '../questions/probabilities.ts';
import { type QuestionType, traitsOf } from '../questions/question.ts';
import { type TypeTemperatures, temperatureFor } from '../questions/temperatures.ts';
import type { ScoredQuestion } from './collect.ts';

/** The largest option counts of the buckets, where there are enough questions to fit one. */
const BUCKETS: Readonly<Record<Exclude<QuestionType, 'noul'>, readonly number[]>> = {
  choice: [2, 3, 4, 6, 255],
  score: [3, 5, 255],
};
/**
 * The fewest questions of a temperature, which would be noise of fewer. A smaller bucket is joined to the next, and a
 * type with fewer is not calibrated.
 */
export const QUESTIONS_MIN = 100;

const TEMPERATURE_MIN = 0.05;
const TEMPERATURE_MAX = 20;
/** A search that ends at the bound ends this near to it. */
const AT_BOUND = 0.99 * TEMPERATURE_MAX;
/** Each step keeps 0.618 of the interval: 40 of them leave 1e-8 of it. */
const SEARCH_STEPS = 40;
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/** The part of a question that a fit uses. */
type Fitted = Pick<ScoredQuestion, 'question' | 'target' | 'scores'>;

/**
 * Returns the temperatures with the highest likelihood of the true answers, for each type and bucket of
 * option counts.
 */
export function fitTemperatures(questions: readonly Fitted[]): TypeTemperatures {
  const of = (type: QuestionType) => questions.filter(({ question }) => question.type === type);
  return {
    noul: fitTemperature(of('noul')),
    choice: fitBuckets(of('choice'), BUCKETS.choice),
    score: fitBuckets(of('score'), BUCKETS.score),
  };
}

function fitBuckets(
  questions: readonly Fitted[],
  limits: readonly number[],
): { most_options: number; temperature: number }[] {
  const buckets: { most_options: number; questions: readonly Fitted[] }[] = [];
  let waiting = questions;
  let least = 0;
  limits.forEach((most_options, index) => {
    const inside = waiting.filter(({ scores }) => scores.length > least && scores.length <= most_options);
    const last = index === limits.length - 1;
    if (inside.length < QUESTIONS_MIN && !last) return;
    buckets.push({ most_options, questions: inside });
    waiting = waiting.filter(({ scores }) => scores.length > most_options);
    least = most_options;
  });
  // The last bucket has no next one, so it absorbs the one before.
  const last = buckets.at(-1);
  const before = buckets.at(-2);
  if (last !== undefined && before !== undefined && last.questions.length < QUESTIONS_MIN) {
    buckets.splice(-2, 2, {
      most_options: last.most_options,
      questions: [...before.questions, ...last.questions],
    });
  }
  return buckets.map((bucket) => ({
    most_options: bucket.most_options,
    temperature: fitTemperature(bucket.questions),
  }));
}

/**
 * Returns the temperature from 0.05 to 20 with the highest likelihood of the questions' answers; 1 without
 * questions. The likelihood has one peak in the inverse of the temperature, so a golden-section search finds
 * it.
 */
export function fitTemperature(questions: readonly Fitted[]): number {
  if (questions.length === 0) return 1;
  const loss = (log_temperature: number) => totalLoss(questions, Math.exp(log_temperature));
  let low = Math.log(TEMPERATURE_MIN);
  let high = Math.log(TEMPERATURE_MAX);
  for (let step = 0; step < SEARCH_STEPS; step += 1) {
    const left = high - GOLDEN * (high - low);
    const right = low + GOLDEN * (high - low);
    if (loss(left) <= loss(right)) high = right;
    else low = left;
  }
  return Math.exp((low + high) / 2);
}

/** Returns true if only the bound kept a temperature from being higher. */
export function isAtBound(temperature: number): boolean {
  return temperature > AT_BOUND;
}

function totalLoss(questions: readonly Fitted[], temperature: number): number {
  return questions.reduce((sum, { question, scores, target }) => {
    const class_scores = traitsOf(question).classScores(scores);
    const logarithms = logSoftmax(class_scores.map((score) => score / temperature));
    return target.reduce(
      (loss, share, index) => (share === 0 ? loss : loss - share * (logarithms[index] ?? 0)),
      sum,
    );
  }, 0);
}

/** The unit of the folds: whole sets, or whole records. */
export type FoldBy = 'set' | 'record';

/**
 * Returns the fold of every question, from 0 to `folds` - 1. Each group is in one fold, and the folds are as
 * even as the groups allow. `groups` are in the order in which they are dealt out.
 */
export function assignFolds(
  questions: readonly Pick<ScoredQuestion, 'source' | 'record'>[],
  by: FoldBy,
  folds: number,
  order: (groups: readonly string[]) => readonly string[],
): readonly number[] {
  const groupOf = ({ source, record }: Pick<ScoredQuestion, 'source' | 'record'>) =>
    by === 'set' ? source : record;
  const groups = order([...new Set(questions.map(groupOf))]);
  const fold_of = new Map(groups.map((group, index) => [group, index % folds]));
  return questions.map((question) => fold_of.get(groupOf(question)) ?? 0);
}

/** Returns for every question the temperature that was fitted without its fold. */
export function outOfFoldTemperatures(
  questions: readonly ScoredQuestion[],
  fold_of: readonly number[],
): readonly number[] {
  const fits = new Map<number, TypeTemperatures>();
  for (const fold of new Set(fold_of)) {
    fits.set(fold, fitTemperatures(questions.filter((_, index) => fold_of[index] !== fold)));
  }
  return questions.map(({ question }, index) => {
    const fit = fits.get(fold_of[index] ?? 0);
    return fit === undefined ? 1 : temperatureFor(question, fit);
  });
}
