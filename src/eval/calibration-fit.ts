import type { Calibration } from '../../native/engine.ts';
import { QUESTION_TYPES, type QuestionType } from '../questions/question.ts';
import type { TypeTemperatures } from '../questions/temperatures.ts';
import { predictionOf, type ScoredQuestion } from './collect.ts';
import { assignFolds, type FoldBy, fitTemperatures, outOfFoldTemperatures } from './fit.ts';
import { brier, expectedCalibrationError, negativeLogLikelihood } from './metrics.ts';
import type { Prediction } from './predictions.ts';
import { type Random, shuffled } from './random.ts';
import { number, type Table } from './text.ts';

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
  readonly after: CalibrationMeasures;
}

/** The calibration of one mode, and its effect. */
export interface CalibrationFit {
  /** The temperatures fitted on all questions. */
  readonly temperatures: TypeTemperatures;
  readonly out_of_fold: readonly OutOfFold[];
  readonly fitted_on: Calibration['fitted_on']['fast'];
}

/** Fits temperatures on all questions, and measures by folds the effect of such a fit on unseen questions. */
export function fitCalibration(
  questions: readonly ScoredQuestion[],
  options: {
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
  return {
    temperatures: fitTemperatures(questions),
    out_of_fold: QUESTION_TYPES.flatMap((type) => {
      const of_type = ({ type: own }: Prediction) => own === type;
      const count = before.filter(of_type).length;
      return count === 0
        ? []
        : [
            {
              type,
              questions: count,
              before: measuresOf(before.filter(of_type)),
              after: measuresOf(after.filter(of_type)),
            },
          ];
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
      number(before.expected_calibration_error),
      number(after.expected_calibration_error),
      number(before.negative_log_likelihood),
      number(after.negative_log_likelihood),
      number(before.brier),
      number(after.brier),
      temperatureText(temperatures, type),
    ]),
  ];
}

function temperatureText(temperatures: TypeTemperatures, type: QuestionType): string {
  switch (type) {
    case 'noul':
      return number(temperatures.noul);
    case 'choice':
    case 'score':
      return temperatures[type]
        .map(({ most_options, temperature }) => `${number(temperature)} to ${most_options}`)
        .join(', ');
  }
}
