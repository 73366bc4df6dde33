import { noulAnswer } from '../questions/noul.ts';
import type { QuestionType } from '../questions/question.ts';
import { confidenceOf, isCorrect, type Prediction } from './predictions.ts';

/** The largest share of wrong answers among automatic decisions. */
export const AUTOMATIC_ERROR_MAX = 0.05;

/** The automatic decisions under a threshold. */
export interface Automatic {
  /** The share of all questions that is answered automatically. */
  readonly share: number;
  /** The share of these with wrong answers; null where there are none. */
  readonly error_rate: number | null;
}

/** The lowest confidence for an automatic answer, and the resulting decisions. */
export interface Abstaining extends Automatic {
  /** Null where no answer may be automatic, because too many of the surest are wrong. */
  readonly threshold: number | null;
  /**
   * The result with each question under the threshold that was chosen on the other folds. Null with only one
   * fold.
   */
  readonly out_of_fold: Automatic | null;
}

/**
 * Returns the lowest confidence at which at most `error_max` of the answers at or above it are wrong; null
 * for none. Answers of equal confidence are accepted or rejected together.
 */
export function automaticThreshold(
  predictions: readonly Prediction[],
  error_max = AUTOMATIC_ERROR_MAX,
): number | null {
  const ranked = predictions
    .map((prediction) => ({ confidence: confidenceOf(prediction), wrong: isCorrect(prediction) ? 0 : 1 }))
    .sort((a, b) => b.confidence - a.confidence);
  let wrong = 0;
  let threshold: number | null = null;
  ranked.forEach((item, index) => {
    wrong += item.wrong;
    const last_of_its_confidence = ranked[index + 1]?.confidence !== item.confidence;
    // A product could be rounded below a share that is exactly allowed, as 0.29 × 100 is.
    if (last_of_its_confidence && wrong / (index + 1) <= error_max) threshold = item.confidence;
  });
  return threshold;
}

/** The condition of an automatic answer, by the fields of a response. */
export interface AutomaticBounds {
  /** The least `noul` of a yes, or the least of the largest probabilities of a choice or score. */
  readonly least: number;
  /** The largest `noul` of a no; null for the other types. */
  readonly most: number | null;
}

/** Responses have whole millionths, to which a probability is rounded down or up. */
const PARTS = 1_000_000;
/** More than the error of a multiplication by `PARTS`. */
const PARTS_ERROR = 1e-6;

/** Returns the condition of a threshold. All answers that are as sure meet it. */
export function automaticBounds(type: QuestionType, threshold: number): AutomaticBounds {
  switch (type) {
    case 'noul':
      return { least: noulAnswer(threshold, null).noul, most: noulAnswer(1 - threshold, null).noul };
    case 'choice':
    case 'score':
      return { least: Math.floor(threshold * PARTS + PARTS_ERROR) / PARTS, most: null };
  }
}

/** Returns the automatic decisions where each prediction has a threshold of its own, by position. */
export function automaticAnswers(
  predictions: readonly Prediction[],
  thresholdOf: (index: number) => number | null,
): Automatic {
  const taken = predictions.filter((prediction, index) => {
    const threshold = thresholdOf(index);
    return threshold !== null && confidenceOf(prediction) >= threshold;
  });
  const wrong = taken.filter((prediction) => !isCorrect(prediction)).length;
  return {
    share: taken.length / predictions.length,
    error_rate: taken.length === 0 ? null : wrong / taken.length,
  };
}

/**
 * Returns the threshold for the predictions of one type. A threshold looks better than it is on the
 * predictions that it was chosen on. It is therefore also measured out of fold; `fold_of` has the fold of
 * each prediction.
 */
export function abstaining(predictions: readonly Prediction[], fold_of: readonly number[]): Abstaining {
  const threshold = automaticThreshold(predictions);
  const folds = new Set(fold_of);
  const by_fold = new Map(
    [...folds].map((fold) => [
      fold,
      automaticThreshold(predictions.filter((_, index) => fold_of[index] !== fold)),
    ]),
  );
  return {
    threshold,
    ...automaticAnswers(predictions, () => threshold),
    out_of_fold:
      folds.size < 2
        ? null
        : automaticAnswers(predictions, (index) => by_fold.get(fold_of[index] ?? Number.NaN) ?? null),
  };
}
