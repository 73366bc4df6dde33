import type { TObject } from '@sinclair/typebox';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import type { WritableJson } from '../json/write-json.ts';
import { softmax } from './probabilities.ts';
import type { InvalidCriteria, ParsedQuestion } from './question-fields.ts';

/** All that depends on a type of questions. The file of the type has it, and `question.ts` asks it. */
export interface TypeDefinition<Asked, Answered> {
  readonly question_schema: TObject;
  readonly answer_schema: TObject;
  readonly parse: (body: JsonObject<JsonValue>) => ParsedQuestion<Asked> | InvalidCriteria;
  /** Returns the names of the criteria that are read; null where all names are the client's own. */
  readonly criteriaFields: (criteria: JsonObject<JsonValue>) => readonly string[] | null;
  readonly traitsOf: (question: Asked) => QuestionTraits<Asked, Answered>;
}

/** All that depends on the type of one question. Its classes are its possible answers, each with a probability. */
export interface QuestionTraits<Asked, Answered> {
  /** The names of the classes: no and yes, the options' ids, or the levels' indexes. */
  readonly classes: readonly string[];
  /** The number of the engine's scores: the log-odds of yes for a noul, otherwise one for each class. */
  readonly score_count: number;
  /** Returns the question in the form of a request's body, from which `parse` reads the same question. */
  readonly body: () => WritableJson;
  /** Returns the question with its options or levels backward; null where it has no order. */
  readonly backward: () => Asked | null;
  /**
   * Returns the criteria in an order that the client's order of options does not change. `places` are the classes'
   * indexes in it.
   */
  readonly identity: () => { readonly places: readonly number[]; readonly criteria: readonly WritableJson[] };
  /** Returns the index of an answer's class: of `true` or `false`, an option's id, or a level; -1 for none. */
  readonly classIndex: (answer: boolean | string | number) => number;
  /** Returns one score for each class. Only differences between them matter. */
  readonly classScores: (scores: readonly number[]) => readonly number[];
  /** Returns the engine's scores from one for each class: the inverse of `classScores`. */
  readonly engineScores: (class_scores: readonly number[]) => number[];
  /** Returns the probability of every class from the engine's scores; NaN for missing scores. */
  readonly probabilities: (scores: readonly number[]) => readonly number[];
  /** Returns the answer from the probability of every class. Throws `RangeError` for NaN. */
  readonly answer: (probabilities: readonly number[], threshold: number | null) => Answered;
  /** Returns the answer with exactly these numbers, which are those of `numbersOf`. */
  readonly answerOfNumbers: (numbers: readonly number[], threshold: number | null) => Answered;
}

/** The traits of types whose engine gives one score for each class. */
export const ONE_SCORE_FOR_EACH_CLASS = {
  classScores: (scores: readonly number[]) => scores,
  engineScores: (class_scores: readonly number[]) => [...class_scores],
  probabilities: softmax,
};
