import { confidenceOf, isCorrect, type Prediction } from './predictions.ts';

/** The share of wrong answers that automatic decisions may have. */
export const AUTOMATIC_ERROR_MAX = 0.05;

/** What a threshold leaves to the model. */
export interface Automatic {
  /** The share of all questions that is answered automatically. */
  readonly share: number;
  /** The share of these that is answered wrong; null where there are none. */
  readonly error_rate: number | null;
}

/** The least confidence with which an answer is taken automatically, and what that comes to. */
export interface Abstaining extends Automatic {
  /** Null where no answer may be taken: too many of the surest are wrong. */
  readonly threshold: number | null;
  /**
   * Each question under the threshold that was chosen on the other folds. Null where there is only one fold: nothing
   * is left to choose by.
   */
  readonly out_of_fold: Automatic | null;
}

/**
 * The least confidence at which at most `error_max` of the answers that are as sure or surer are wrong; null where
 * there is none. Answers of equal confidence are taken or left together.
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
    if (last_of_its_confidence && wrong <= error_max * (index + 1)) threshold = item.confidence;
  });
  return threshold;
}

/** What is left to the model where each prediction has a threshold of its own, by position. */
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
 * The threshold of the predictions of one type. On the predictions that it was chosen on, a threshold looks better than
 * it is. So it is also measured out of fold; `fold_of` has the fold of each prediction.
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
