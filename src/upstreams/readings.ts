import type { DecisionInput } from '../../native/engine.ts';
import { type Question, traitsOf } from '../questions/question.ts';

/** One call to an upstream. */
export interface Reading {
  /** The questions of the call, asked together. */
  readonly questions: readonly Question[];
  /** False for a second reading, which only steadies an answer. */
  readonly is_billed: boolean;
}

type Asked = Pick<DecisionInput, 'mode' | 'questions'>;

/**
 * Returns the calls of a request. Fast mode is one call. Consistent mode is one call a question, and a second
 * one with its options backward, so no question can change another's answer. A noul has no order.
 */
export function readingsOf({ mode, questions }: Asked): readonly Reading[] {
  if (mode === 'fast') return [{ questions, is_billed: true }];
  return questions.flatMap((question) => {
    const own = { questions: [question], is_billed: true };
    const backward = traitsOf(question).backward();
    return backward === null ? [own] : [own, { questions: [backward], is_billed: false }];
  });
}

/** Returns a list of scores for each question, from the scores of each of its `readingsOf`. */
export function combinedScores(
  { mode, questions }: Asked,
  readings: readonly (readonly (readonly number[])[])[],
): readonly (readonly number[])[] {
  if (mode === 'fast') return readings[0] ?? [];
  const scores = readings.map(([own = []]) => own).values();
  const next = (): readonly number[] => scores.next().value ?? [];
  return questions.map((question) => {
    const forward = next();
    return traitsOf(question).backward() === null ? forward : meanOf(forward, next().toReversed());
  });
}

/** Returns the scores of the mean probabilities; scores are logarithms of probabilities. */
function meanOf(forward: readonly number[], backward: readonly number[]): readonly number[] {
  return forward.map((score, index) =>
    Math.log((Math.exp(score) + Math.exp(backward[index] ?? Number.NaN)) / 2),
  );
}
