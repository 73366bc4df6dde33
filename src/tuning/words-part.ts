import { type FittedPart, keptNumber } from './fitted-part.ts';
import type { LabelledExample } from './labelled-example.ts';

/** The contribution of a record's words to the scores. */
export interface WordsPart {
  /** Hashed words and pairs of words, ascending. */
  readonly buckets: readonly number[];
  /** `weights[i * classes + k]` is the contribution of bucket `i` to class `k`. */
  readonly weights: readonly number[];
}

/**
 * The fewest records of a word: a word of one record shows nothing about others, and would reveal that
 * record.
 */
const RECORDS_MIN = 2;
/** The most words times classes that are fitted: the rarest are left out. */
const PARAMETERS_MAX = 2 ** 19;

const NONE = new Int32Array();

/**
 * Adds the contribution of a record's words. Each weighs less the more of them are known, because a long
 * record is no more certain.
 */
export function addWordScores(
  { buckets, weights }: WordsPart,
  words: Int32Array,
  scores: Float64Array,
): void {
  const places = placesIn(buckets, words);
  addWeights(weights, places, wordValue(places), scores, { start: 0, classes: scores.length });
}

/** Adds the weights of a record's known words to its scores, which begin at `start`. */
function addWeights(
  weights: ArrayLike<number>,
  places: Int32Array,
  value: number,
  scores: Float64Array,
  { start, classes }: { readonly start: number; readonly classes: number },
): void {
  for (let word = 0; word < places.length; word += 1) {
    const weight = (places[word] ?? 0) * classes;
    for (let at = 0; at < classes; at += 1) {
      scores[start + at] = (scores[start + at] ?? 0) + value * (weights[weight + at] ?? 0);
    }
  }
}

/** Returns the weight of each known word of a record. */
function wordValue({ length }: Int32Array): number {
  return length === 0 ? 0 : 1 / Math.sqrt(length);
}

/** Returns the indexes of the words in the buckets; both ascend. */
function placesIn(buckets: ArrayLike<number>, words: Int32Array): Int32Array {
  const places: number[] = [];
  let place = 0;
  for (const word of words) {
    while (place < buckets.length && (buckets[place] ?? 0) < word) place += 1;
    if (buckets[place] === word) places.push(place);
  }
  return Int32Array.from(places);
}

/**
 * Returns the buckets that enough of the records have, ascending: the most frequent ones where there are too
 * many.
 */
function knownBuckets(examples: readonly LabelledExample[], classes: number): readonly number[] {
  const counts = new Map<number, number>();
  for (const { words } of examples) for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count >= RECORDS_MIN)
    .sort(([one, count], [other, other_count]) => other_count - count || one - other)
    .slice(0, Math.floor(PARAMETERS_MAX / classes))
    .map(([bucket]) => bucket)
    .sort((one, other) => one - other);
}

/**
 * Returns the part for fitting. Its parameters are ordered as `WordsPart.weights`, and all have the same
 * penalty.
 */
export function fittedWords(
  examples: readonly LabelledExample[],
  classes: number,
  penalty: number,
): FittedPart<WordsPart> {
  const buckets = knownBuckets(examples, classes);
  const places = examples.map(({ words }) => placesIn(buckets, words));
  const values = Float64Array.from(places, wordValue);
  return {
    penalties: new Float64Array(buckets.length * classes).fill(penalty),
    addScores(parameters, scores) {
      for (let example = 0; example < places.length; example += 1) {
        const start = example * classes;
        addWeights(parameters, places[example] ?? NONE, values[example] ?? 0, scores, { start, classes });
      }
    },
    addGradient(errors, gradient) {
      for (let example = 0; example < places.length; example += 1) {
        const own = places[example] ?? NONE;
        const value = values[example] ?? 0;
        const start = example * classes;
        for (let word = 0; word < own.length; word += 1) {
          const parameter = (own[word] ?? 0) * classes;
          for (let at = 0; at < classes; at += 1) {
            gradient[parameter + at] = (gradient[parameter + at] ?? 0) + value * (errors[start + at] ?? 0);
          }
        }
      }
    },
    part: (parameters) => ({ buckets, weights: Array.from(parameters, keptNumber) }),
  };
}
