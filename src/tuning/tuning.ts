import type { HashKey } from '../hashing/half-siphash.ts';
import type { JsonValue } from '../json/json-value.ts';
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

/** Corrections by question, ready for requests. */
export class Tuning {
  readonly #entries = new Map<string, TuningEntry>();
  readonly #hash_key: HashKey;

  /** The weights that the corrections were fitted on: scores of others are not corrected. */
  readonly weights_sha256: string;
  readonly profile: string;

  constructor({ header, entries }: TuningContent) {
    this.#hash_key = header.hash_key;
    this.weights_sha256 = header.weights_sha256;
    this.profile = header.profile;
    for (const entry of entries) this.#entries.set(keyOf(entry.mode, identityOf(entry.question).key), entry);
  }

  /** The tuning in the text of a file. Throws `TuningUnusable`. */
  static read(text: string): Tuning {
    return new Tuning(readTuning(text));
  }

  /** How the scores of a request's questions are corrected; null where none of them was tuned. */
  correctionOf(input: {
    readonly state: JsonValue;
    readonly questions: readonly Question[];
    readonly mode: Mode;
  }): CorrectScores | null {
    const tuned = input.questions.map((question) => {
      const identity = identityOf(question);
      const entry = this.#entries.get(keyOf(input.mode, identity.key));
      return entry === undefined ? undefined : { question, identity, entry };
    });
    const found = tuned.filter((one) => one !== undefined);
    if (found.length === 0) return null;
    const needs_words = found.some(({ entry }) => entry.words !== null);
    const words = needs_words ? recordWords(input.state, this.#hash_key) : new Int32Array();
    return (index, scores) => {
      const one = tuned[index];
      if (one === undefined) return undefined;
      const { question, identity, entry } = one;
      const by_class = classScores(question, identity, scores);
      return engineScores(question, identity, correctedScores(entry, { scores: by_class, words }));
    };
  }
}

function keyOf(mode: Mode, question_key: string): string {
  return `${mode} ${question_key}`;
}
