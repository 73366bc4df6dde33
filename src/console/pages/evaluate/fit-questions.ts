import { writeJson } from '../../../json/write-json.ts';
import { questionBody } from '../../../questions/question.ts';
import type { EvaluatedQuestion } from './evaluated.ts';

/** The seed of the folds, so that the same labels give the same corrections. */
export const TUNING_SEED = 1;
/** A question with its labels and answers. */
export interface FitQuestion {
  readonly name: string;
  /** In JSON, as in a request. */
  readonly body: string;
  /** Classes are those of the question's identity. */
  readonly answers: readonly {
    /** In JSON. */
    readonly record: string;
    readonly probabilities: readonly number[];
    readonly answer: number;
    readonly target: readonly number[];
  }[];
}

/** Returns the labels of evaluated questions, without the parts that a fit does not use. */
export function fitQuestions(evaluated: readonly EvaluatedQuestion[]): readonly FitQuestion[] {
  return evaluated.map(({ name, question, judged }) => ({
    name,
    body: writeJson(questionBody(question)),
    answers: judged.map(({ record, probabilities, answer, target }) => ({
      ...{ record, probabilities, answer, target },
    })),
  }));
}
