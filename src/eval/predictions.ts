import { sigmoid, softmax } from '../decisions/answers.ts';
import type { Question } from '../questions/question.ts';

export type QuestionType = Question['type'];

/** The types in the order in which they are reported. */
export const QUESTION_TYPES: readonly QuestionType[] = ['noul', 'choice', 'score'];

/** What the model said to a question whose answer is known; classes as in `LabelledQuestion`. */
export interface Prediction {
  /** The set that the record belongs to. */
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
 * The probability of every class from a question's scores. They are the engine's: a noul is not yet committed to one
 * side (spec, "Answer: noul"), which is how an answer is presented and would hide how sure the model is.
 */
export function classProbabilities(question: Question, scores: readonly number[]): readonly number[] {
  if (question.type !== 'noul') return softmax(scores);
  const yes = sigmoid(scores[0] ?? Number.NaN);
  return [1 - yes, yes];
}

/** The most likely class; of equal ones the first, but yes for a noul at one half, as its answer would say. */
export function predictedClass(type: QuestionType, probabilities: readonly number[]): number {
  if (type === 'noul') return (probabilities[1] ?? 0) >= 0.5 ? 1 : 0;
  return probabilities.indexOf(Math.max(...probabilities));
}

/** The probability that the model gives to its own answer. */
export function confidenceOf(prediction: Prediction): number {
  return prediction.probabilities[predictedClass(prediction.type, prediction.probabilities)] ?? 0;
}

/** Whether the most likely class is the right one. */
export function isCorrect(prediction: Prediction): boolean {
  return predictedClass(prediction.type, prediction.probabilities) === prediction.answer;
}
