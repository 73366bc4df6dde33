import { expectedLevel } from '../questions/score.ts';
import { automaticAnswers, automaticThreshold } from './abstaining.ts';
import { confidenceOf, isCorrect, type Prediction } from './predictions.ts';

/** The number of bins of equal width for calibration. */
const CALIBRATION_BINS = 10;
/** The replacement of a probability of zero, so that one question cannot make the likelihood infinite. */
const PROBABILITY_MIN = 1e-12;

/** A number about predictions of one question type; NaN where there are none. */
export type Metric = (predictions: readonly Prediction[]) => number;

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The share of questions whose most likely class is right. */
export const accuracy: Metric = (predictions) =>
  mean(predictions.map((prediction) => Number(isCorrect(prediction))));

/**
 * The mean over classes of the recall of each. A noul's classes are no and yes, a score's its levels; the
 * options of a choice have a meaning only within their set.
 */
export const balancedAccuracy: Metric = (predictions) => {
  const classes = new Map<string, { found: number; all: number }>();
  for (const prediction of predictions) {
    const name = trueClass(prediction);
    const tally = classes.get(name) ?? { found: 0, all: 0 };
    tally.found += Number(isCorrect(prediction));
    tally.all += 1;
    classes.set(name, tally);
  }
  return mean([...classes.values()].map(({ found, all }) => found / all));
};

/** Returns the name of the right class, which is the same for all questions with this class. */
function trueClass({ type, source, classes, answer }: Prediction): string {
  switch (type) {
    case 'noul':
    case 'score':
      return String(answer);
    case 'choice':
      return `${source}\n${classes[answer] ?? ''}`;
  }
}

/** The accuracy of a uniform guess among the classes. */
export const chance: Metric = (predictions) => mean(predictions.map(({ classes }) => 1 / classes.length));

/**
 * The squared distance of the probabilities from the truth, as expected over the annotators. It is from 0 to
 * 1 for a noul (its probability of yes only), and from 0 to 2 otherwise (all classes).
 */
export const brier: Metric = (predictions) => mean(predictions.map(brierOf));

function brierOf({ type, probabilities, target }: Prediction): number {
  // For a label drawn from the target, E‖p − label‖² = ‖p‖² − 2 p·target + 1.
  const norm = probabilities.reduce((sum, probability) => sum + probability ** 2, 0);
  const overlap = probabilities.reduce(
    (sum, probability, index) => sum + probability * (target[index] ?? 0),
    0,
  );
  const all = norm - 2 * overlap + 1;
  switch (type) {
    case 'noul':
      return all / 2;
    case 'choice':
    case 'score':
      return all;
  }
}

/** The mean negative logarithm (in nats) of the true class's probability, as expected over the annotators. */
export const negativeLogLikelihood: Metric = (predictions) => meanLogLoss(predictions, PROBABILITY_MIN);

/** Returns `negativeLogLikelihood` where a probability below `probability_min` counts as that. */
export function meanLogLoss(predictions: readonly Prediction[], probability_min: number): number {
  return mean(
    predictions.map(({ probabilities, target }) =>
      target.reduce(
        (sum, share, index) =>
          share === 0 ? sum : sum - share * Math.log(Math.max(probability_min, probabilities[index] ?? 0)),
        0,
      ),
    ),
  );
}

/** The predictions of one bin: their number, the mean prediction, and the observed rate. */
export interface ReliabilityBin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly predicted: number;
  readonly observed: number;
}

/**
 * Returns a predicted probability and its outcome: of yes for a noul, otherwise of the answer being right.
 */
function claim(prediction: Prediction): { readonly probability: number; readonly outcome: number } {
  switch (prediction.type) {
    case 'noul':
      return { probability: prediction.probabilities[1] ?? 0, outcome: prediction.answer };
    case 'choice':
    case 'score':
      return { probability: confidenceOf(prediction), outcome: Number(isCorrect(prediction)) };
  }
}

/** Returns the bins of a reliability diagram that have predictions, from low to high. */
export function reliabilityBins(predictions: readonly Prediction[]): readonly ReliabilityBin[] {
  const bins = Array.from({ length: CALIBRATION_BINS }, () => ({ count: 0, predicted: 0, observed: 0 }));
  for (const prediction of predictions) {
    const { probability, outcome } = claim(prediction);
    const bin = bins[Math.min(CALIBRATION_BINS - 1, Math.floor(probability * CALIBRATION_BINS))];
    if (bin === undefined) continue;
    bin.count += 1;
    bin.predicted += probability;
    bin.observed += outcome;
  }
  return bins.flatMap(({ count, predicted, observed }, index) =>
    count === 0
      ? []
      : [
          {
            from: index / CALIBRATION_BINS,
            to: (index + 1) / CALIBRATION_BINS,
            count,
            predicted: predicted / count,
            observed: observed / count,
          },
        ],
  );
}

/** Expected calibration error: the mean gap between prediction and observation, over ten equal bins. */
export const expectedCalibrationError: Metric = (predictions) => {
  const gap = reliabilityBins(predictions).reduce(
    (sum, { count, predicted, observed }) => sum + count * Math.abs(predicted - observed),
    0,
  );
  return gap / predictions.length;
};

/** The largest share of questions that can be automatic with at most 5% wrong answers. */
export const automaticShare: Metric = (predictions) => {
  const threshold = automaticThreshold(predictions);
  return automaticAnswers(predictions, () => threshold).share;
};

/**
 * The mean distance of the expected level from the true one, in levels; NaN for types without levels. The
 * expected level is the mean of the levels by their probabilities, as in the answer to a score.
 */
export const meanAbsoluteLevelError: Metric = (predictions) => mean(predictions.flatMap(levelErrors));

/** Returns the error in levels; none for a type without levels. */
function levelErrors({ type, probabilities, answer }: Prediction): readonly number[] {
  switch (type) {
    case 'noul':
    case 'choice':
      return [];
    case 'score':
      return [Math.abs(expectedLevel(probabilities) - answer)];
  }
}

/** Every reported metric, by its name in a report. */
export const METRICS = {
  accuracy,
  balanced_accuracy: balancedAccuracy,
  chance,
  brier,
  negative_log_likelihood: negativeLogLikelihood,
  expected_calibration_error: expectedCalibrationError,
  automatic_share: automaticShare,
  mean_absolute_level_error: meanAbsoluteLevelError,
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;
