import type { JsonValue } from '../json/json-value.ts';
import { type WritableJson, writeJson } from '../json/write-json.ts';
import { classesOf, type Question } from '../questions/question.ts';

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
  const places = placesOf(question);
  const names = classesOf(question);
  return {
    key: writeJson(contentOf(question, places)),
    classes: places.map((place) => names[place] ?? ''),
    places,
  };
}

function placesOf(question: Question): readonly number[] {
  const names = classesOf(question);
  const places = names.map((_, place) => place);
  switch (question.type) {
    case 'choice':
      return places.sort((one, other) => ((names[one] ?? '') < (names[other] ?? '') ? -1 : 1));
    case 'noul':
    case 'score':
      return places;
  }
}

/** Returns the content of a question, with its options in the order of the identity. */
function contentOf(question: Question, places: readonly number[]): WritableJson {
  const { type, instructions = null } = question;
  switch (question.type) {
    case 'noul':
      return [type, instructions, question.yes ?? null, question.no ?? null];
    case 'choice': {
      const options = places.map((place): JsonValue => {
        const option = question.options[place];
        return [option?.id ?? '', option?.description ?? null];
      });
      return [type, instructions, options];
    }
    case 'score':
      return [type, instructions, question.levels];
  }
}

/**
 * Returns the engine's scores as one number for each class, in the order of the identity. A noul's no has 0.
 */
export function classScores(
  question: Question,
  { places }: Pick<QuestionIdentity, 'places'>,
  scores: readonly number[],
): number[] {
  switch (question.type) {
    case 'noul':
      return [0, scores[0] ?? Number.NaN];
    case 'choice':
    case 'score':
      return places.map((place) => scores[place] ?? Number.NaN);
  }
}

/** Reverses `classScores`: returns scores in the engine's form. Only differences between classes matter. */
export function engineScores(
  question: Question,
  { places }: Pick<QuestionIdentity, 'places'>,
  by_class: ArrayLike<number>,
): number[] {
  switch (question.type) {
    case 'noul':
      return [(by_class[1] ?? Number.NaN) - (by_class[0] ?? Number.NaN)];
    case 'choice':
    case 'score':
      return inPlaces(places, by_class);
  }
}

/** Returns the number of hidden states of a question: a noul is read once, for its yes. */
export function stateCount(question: Question): number {
  switch (question.type) {
    case 'noul':
      return 1;
    case 'choice':
    case 'score':
      return classesOf(question).length;
  }
}

/** Returns the engine's hidden states of a question one after the other, in the order of the identity's classes. */
export function classStates(
  question: Question,
  { places }: Pick<QuestionIdentity, 'places'>,
  states: readonly (readonly number[])[],
): readonly number[] {
  switch (question.type) {
    case 'noul':
      return states.flat();
    case 'choice':
    case 'score':
      return places.flatMap((place) => states[place] ?? []);
  }
}

function inPlaces(places: readonly number[], by_class: ArrayLike<number>): number[] {
  const scores = places.map(() => Number.NaN);
  places.forEach((place, index) => {
    scores[place] = by_class[index] ?? Number.NaN;
  });
  return scores;
}
