import type { QuestionType } from '../questions/question.ts';

/**
 * The model's answer to a question with a known answer; classes as in `LabelledQuestion`. Probabilities are
 * those of `classProbabilities`. A noul committed to one side, as in its answer, would hide the model's
 * confidence.
 */
export interface Prediction {
  /** The set of the record. */
  readonly source: string;
  /** The record, so that questions about one record are drawn together. */
  readonly record: string;
  readonly type: QuestionType;
  readonly classes: readonly string[];
  readonly probabilities: readonly number[];
  readonly answer: number;
  readonly target: readonly number[];
}

/**
 * Returns the most likely class; of equal ones the first, but yes for a noul at one half, as in its answer.
 */
export function predictedClass(type: QuestionType, probabilities: readonly number[]): number {
  switch (type) {
    case 'noul':
      return (probabilities[1] ?? 0) >= 0.5 ? 1 : 0;
    case 'choice':
    case 'score':
      return probabilities.indexOf(Math.max(...probabilities));
  }
}

/** Returns the probability that the model gives to its own answer. */
export function confidenceOf(prediction: Prediction): number {
  return prediction.probabilities[predictedClass(prediction.type, prediction.probabilities)] ?? 0;
}

/** Returns true if the most likely class is the right one. */
export function isCorrect(prediction: Prediction): boolean {
  return predictedClass(prediction.type, prediction.probabilities) === prediction.answer;
}
