import type { HashKey } from '../hashing/half-siphash.ts';
import type { JsonValue } from '../json/json-value.ts';
import { largest } from '../questions/probabilities.ts';
import type { Mode, Question } from '../questions/question.ts';
import { correctedScores } from './correction.ts';
import { classScores, engineScores, identityOf } from './question-identity.ts';
import { recordWords } from './record-words.ts';
import { readTuning, type TuningContent, type TuningEntry } from './tuning-file.ts';

/**
 * The scores of the question at `index` in a request, corrected; undefined for one that was not tuned. `scores` are the
 * engine's without calibration.
 */
export type CorrectScores = (index: number, scores: readonly number[]) => readonly number[] | undefined;

/** Called with the answer that a correction brought: the question's place in the tuning, and the class's. */
export type OnCorrected = (question: number, answer_class: number) => void;

/** Corrections by question, ready for requests. */
export class Tuning {
  /** The corrections in the order of the file. */
  readonly entries: readonly TuningEntry[];
  readonly #places = new Map<string, number>();
  readonly #hash_key: HashKey;

  /** The weights that the corrections were fitted on: scores of others are not corrected. */
  readonly weights_sha256: string;
  readonly profile: string;

  constructor({ header, entries }: TuningContent) {
    this.#hash_key = header.hash_key;
    this.weights_sha256 = header.weights_sha256;
    this.profile = header.profile;
    this.entries = entries;
    entries.forEach(({ mode, question }, place) => {
      this.#places.set(keyOf(mode, identityOf(question).key), place);
    });
  }

  /** The tuning in the text of a file. Throws `TuningUnusable`. */
  static read(text: string): Tuning {
    return new Tuning(readTuning(text));
  }

  /** How the scores of a request's questions are corrected; null where none of them was tuned. */
  correctionOf(
    input: { readonly state: JsonValue; readonly questions: readonly Question[]; readonly mode: Mode },
    onCorrected: OnCorrected = () => {},
  ): CorrectScores | null {
    const tuned = input.questions.map((question) => {
      const identity = identityOf(question);
      const place = this.#places.get(keyOf(input.mode, identity.key));
      const entry = place === undefined ? undefined : this.entries[place];
      return place === undefined || entry === undefined ? undefined : { question, identity, place, entry };
    });
    const found = tuned.filter((one) => one !== undefined);
    if (found.length === 0) return null;
    const needs_words = found.some(({ entry }) => entry.words !== null);
    const words = needs_words ? recordWords(input.state, this.#hash_key) : new Int32Array();
    return (index, scores) => {
      const one = tuned[index];
      if (one === undefined) return undefined;
      const { question, identity, place, entry } = one;
      const by_class = classScores(question, identity, scores);
      const corrected = correctedScores(entry, { scores: by_class, words });
      onCorrected(place, largest([...corrected]).index);
      return engineScores(question, identity, corrected);
    };
  }
}

function keyOf(mode: Mode, question_key: string): string {
  return `${mode} ${question_key}`;
}
