import type { HashKey } from '../hashing/half-siphash.ts';
import type { JsonValue } from '../json/json-value.ts';
import { largest } from '../questions/probabilities.ts';
import type { Mode, Question } from '../questions/question.ts';
import { correctedScores } from './correction.ts';
import { classScores, classStates, engineScores, identityOf } from './question-identity.ts';
import { recordWords } from './record-words.ts';
import { readTuning, readTuningInSlices, type TuningContent, type TuningEntry } from './tuning-file.ts';

/** How the scores of one request's questions are corrected. */
export interface RequestCorrection {
  /** Returns true for a question whose correction has a vector, which needs its hidden states. */
  needsStates(index: number): boolean;
  /**
   * Returns the scores of the question at `index`, corrected; undefined for one that was not tuned. `scores` are the
   * engine's without calibration. Throws `RangeError` for other hidden states than the vector's.
   */
  correct(
    index: number,
    scores: readonly number[],
    states?: readonly (readonly number[])[],
  ): readonly number[] | undefined;
}

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

  /** Does the same, and awaits `pause` after every few lines. */
  static async readInSlices(text: string, pause: () => Promise<void>): Promise<Tuning> {
    return new Tuning(await readTuningInSlices(text, pause));
  }

  /** Returns true for a question whose correction has a vector, which needs its hidden states. */
  needsStates(question: Question, mode: Mode): boolean {
    const place = this.#places.get(keyOf(mode, identityOf(question).key));
    return place !== undefined && (this.entries[place]?.vector ?? null) !== null;
  }

  /** Returns the corrections of a request's questions; null where none of them was tuned. */
  correctionOf(
    input: { readonly state: JsonValue; readonly questions: readonly Question[]; readonly mode: Mode },
    onCorrected: OnCorrected = () => {},
  ): RequestCorrection | null {
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
    return {
      needsStates: (index) => (tuned[index]?.entry.vector ?? null) !== null,
      correct(index, scores, states = []) {
        const one = tuned[index];
        if (one === undefined) return undefined;
        const { question, identity, place, entry } = one;
        const by_class = {
          scores: classScores(question, identity, scores),
          states: Float32Array.from(classStates(identity, states)),
          words,
        };
        if (entry.vector !== null && by_class.states.length !== entry.vector.weights.length) {
          throw new RangeError('The tuning has a vector for other hidden states than the model gives.');
        }
        const corrected = correctedScores(entry, by_class);
        onCorrected(place, largest([...corrected]).index);
        return engineScores(question, identity, corrected);
      },
    };
  }
}

function keyOf(mode: Mode, question_key: string): string {
  return `${mode} ${question_key}`;
}
