import { writeJson } from '../json/write-json.ts';
import { type Question, traitsOf } from '../questions/question.ts';

/** The identity of a question, apart from the order of its options. */
export interface QuestionIdentity {
  /** The same text for the same type, instructions and criteria, in any order of a choice's options. */
  readonly key: string;
  /** The possible answers, in an order of their own: options by id, levels from the lowest, no before yes. */
  readonly classes: readonly string[];
  /** `places[i]` is the question's own index of class `i`, as in `classesOf`. */
  readonly places: readonly number[];
}

/**
 * Returns the identity of a question. Questions that differ only in the order of options have the same key
 * and classes.
 */
export function identityOf(question: Question): QuestionIdentity {
  const { type, instructions = null } = question;
  const { classes, identity } = traitsOf(question);
  const { places, criteria } = identity();
  return {
    key: writeJson([type, instructions, ...criteria]),
    classes: places.map((place) => classes[place] ?? ''),
    places,
  };
}

/**
 * Returns the engine's scores as one number for each class, in the order of the identity. A noul's no has 0.
 */
export function classScores(
  question: Question,
  { places }: Pick<QuestionIdentity, 'places'>,
  scores: readonly number[],
): number[] {
  const class_scores = traitsOf(question).classScores(scores);
  return places.map((place) => class_scores[place] ?? Number.NaN);
}

/** Inverts `classScores`: returns scores in the engine's form. Only differences between classes matter. */
export function engineScores(
  question: Question,
  { places }: Pick<QuestionIdentity, 'places'>,
  by_class: ArrayLike<number>,
): number[] {
  const class_scores = places.map(() => Number.NaN);
  places.forEach((place, index) => {
    class_scores[place] = by_class[index] ?? Number.NaN;
  });
  return traitsOf(question).engineScores(class_scores);
}

/**
 * Returns the engine's hidden states one after the other, in the order of the identity's classes. There is one for each
 * score: a noul is read once, for its yes.
 */
export function classStates(
  { places }: Pick<QuestionIdentity, 'places'>,
  states: readonly (readonly number[])[],
): readonly number[] {
  return places.flatMap((place) => states[place] ?? []);
}
