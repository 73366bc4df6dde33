import type { Calibration } from '../../native/engine.ts';
import { QUESTION_TYPES, type QuestionType } from '../questions/question.ts';
import type { TypeTemperatures } from '../questions/temperatures.ts';
import { predictionOf, type ScoredQuestion } from './collect.ts';
import { brier, expectedCalibrationError, negativeLogLikelihood } from './metrics.ts';
import type { Prediction } from './predictions.ts';
import { type Random, shuffled } from './random.ts';
import { number, type Table } from './report-text.ts';
import {
  assignFolds,
  type FoldBy,
  fitTemperatures,
  isAtBound,
  outOfFoldTemperatures,
  QUESTIONS_MIN,
} from './temperature-fit.ts';

/** Measures of how well probabilities match the outcomes. */
interface CalibrationMeasures {
  readonly expected_calibration_error: number;
  readonly negative_log_likelihood: number;
  readonly brier: number;
}

/** The effect of calibration for a question type, on questions that it was not fitted on. */
export interface OutOfFold {
  readonly type: QuestionType;
  readonly questions: number;
  readonly before: CalibrationMeasures;
  /** Null where no question had a fit: all of the type are in one fold. */
  readonly after: CalibrationMeasures | null;
}

/** The calibration of one mode, and its effect. */
export interface CalibrationFit {
  /** The temperatures fitted on all questions; of the types in `kept` the present ones. */
  readonly temperatures: TypeTemperatures;
  /** The types with too few questions for a fit. */
  readonly kept: readonly QuestionType[];
  /** The effect on the fitted types. */
  readonly out_of_fold: readonly OutOfFold[];
  readonly fitted_on: Calibration['fitted_on']['fast'];
}

/**
 * Fits temperatures on all questions, and measures by folds the effect of such a fit on unseen questions. A type with
 * too few questions keeps its present temperatures, or stays uncalibrated where it has none.
 */
export function fitCalibration(
  questions: readonly ScoredQuestion[],
  options: {
    readonly present: TypeTemperatures | undefined;
    readonly cases_sha256: string;
    readonly folds: number;
    readonly fold_by: FoldBy;
    readonly random: Random;
  },
): CalibrationFit {
  const fold_of = assignFolds(questions, options.fold_by, options.folds, (groups) =>
    shuffled(groups, options.random),
  );
  const unseen = outOfFoldTemperatures(questions, fold_of);
  const before = questions.map(predictionOf);
  const after = questions.map((question, index) => {
    const temperature = unseen[index] ?? 1;
    return predictionOf({ ...question, scores: question.scores.map((score) => score / temperature) });
  });
  const isOf =
    (type: QuestionType) =>
    ({ type: own }: Prediction) =>
      own === type;
  const kept = QUESTION_TYPES.filter((type) => before.filter(isOf(type)).length < QUESTIONS_MIN);
  const fitted = fitTemperatures(questions);
  const present = options.present ?? fitTemperatures([]);
  const from = (type: QuestionType) => (kept.includes(type) ? present : fitted);
  return {
    temperatures: { noul: from('noul').noul, choice: from('choice').choice, score: from('score').score },
    kept,
    out_of_fold: QUESTION_TYPES.filter((type) => !kept.includes(type)).map((type) => {
      const of_type = before.filter(isOf(type));
      const folds = new Set(fold_of.filter((_, index) => questions[index]?.question.type === type));
      return {
        type,
        questions: of_type.length,
        before: measuresOf(of_type),
        after: folds.size < 2 ? null : measuresOf(after.filter(isOf(type))),
      };
    }),
    fitted_on: {
      cases_sha256: options.cases_sha256,
      records: new Set(questions.map(({ record }) => record)).size,
      questions: questions.length,
    },
  };
}

function measuresOf(predictions: readonly Prediction[]): CalibrationMeasures {
  return {
    expected_calibration_error: expectedCalibrationError(predictions),
    negative_log_likelihood: negativeLogLikelihood(predictions),
    brier: brier(predictions),
  };
}

/** Returns the results before and after, by question type. */
export function fitTable({ temperatures, out_of_fold }: CalibrationFit): Table {
  return [
    [
      'TYPE',
      'QUESTIONS',
      'ECE BEFORE',
      'AFTER',
      'NLL BEFORE',
      'AFTER',
      'BRIER BEFORE',
      'AFTER',
      'TEMPERATURES',
    ],
    ...out_of_fold.map(({ type, questions, before, after }) => [
      type,
      String(questions),
      ...(['expected_calibration_error', 'negative_log_likelihood', 'brier'] as const).flatMap((measure) => [
        number(before[measure]),
        number(after?.[measure] ?? Number.NaN),
      ]),
      temperatureText(temperatures, type),
    ]),
  ];
}

/** Returns the fitted types of which some answers are as good as even, because the scores tell nothing of them. */
export function evenTypes({ temperatures, out_of_fold }: CalibrationFit): readonly QuestionType[] {
  return out_of_fold
    .map(({ type }) => type)
    .filter((type) => {
      const of_type = temperatures[type];
      const all = typeof of_type === 'number' ? [of_type] : of_type.map(({ temperature }) => temperature);
      return all.some(isAtBound);
    });
}

function temperatureText(temperatures: TypeTemperatures, type: QuestionType): string {
  const of_type = temperatures[type];
  if (typeof of_type === 'number') return number(of_type);
  return of_type
    .map(({ most_options, temperature }) => `${number(temperature)} to ${most_options}`)
    .join(', ');
}
