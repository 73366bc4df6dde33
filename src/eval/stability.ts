import type { Prediction } from './predictions.ts';
import { predictedClass } from './predictions.ts';

/** A question's answer before and after an irrelevant change of the request. */
export interface AnswerPair {
  readonly before: Prediction;
  /**
   * The answer to the changed question; its classes may be in another order, and there may be more of them.
   */
  readonly after: Pick<Prediction, 'classes' | 'probabilities'>;
}

/** The stability of answers under one kind of change. */
export interface Steadiness {
  readonly questions: number;
  /** The share of questions whose answer changed. */
  readonly flip_rate: number;
  /** The mean total variation distance between the probabilities: 0 when none moved, 1 when all did. */
  readonly mean_change: number;
}

/** Returns the flip rate and mean change over the pairs; NaN where there are none. */
export function steadiness(pairs: readonly AnswerPair[]): Steadiness {
  const flips = pairs.filter(flipped).length;
  const change = pairs.reduce((sum, pair) => sum + totalVariation(pair), 0);
  return { questions: pairs.length, flip_rate: flips / pairs.length, mean_change: change / pairs.length };
}

/** Returns true if the answer became another class. */
export function flipped({ before, after }: AnswerPair): boolean {
  return (
    before.classes[predictedClass(before.type, before.probabilities)] !==
    after.classes[predictedClass(before.type, after.probabilities)]
  );
}

/** Returns the probability that moved from one class to another, including new classes. */
export function totalVariation({ before, after }: AnswerPair): number {
  const then = new Map(before.classes.map((name, index) => [name, before.probabilities[index] ?? 0]));
  const now = new Map(after.classes.map((name, index) => [name, after.probabilities[index] ?? 0]));
  let distance = 0;
  for (const name of new Set([...then.keys(), ...now.keys()])) {
    distance += Math.abs((then.get(name) ?? 0) - (now.get(name) ?? 0));
  }
  return distance / 2;
}
