import type { EngineFacts } from '../../native/engine.ts';
import { type Mode, type Question, scoreCount } from '../../src/questions/question.ts';
import { type TuningContent, type TuningEntry, writeTuning } from '../../src/tuning/tuning-file.ts';
import { VECTOR_SIZE } from '../../src/tuning/vector-part.ts';
import { ALL_TYPES } from '../support/requests.ts';

/** So far from zero that a corrected answer cannot be the base's. */
const STRENGTH = 30;

/** A correction that shifts the scores of a question in fast mode by these amounts. */
export function shiftEntry(question: Question, shift: readonly number[]): TuningEntry {
  return {
    question,
    mode: 'fast',
    scale: 1,
    shift,
    words: null,
    vector: null,
    labels: 20,
    accuracy: { before: 0.5, after: 0.9 },
    loss: { before: 0.7, after: 0.3 },
    answer_shares: shift.map(() => 1 / shift.length),
  };
}

/** A correction by the hidden states alone. */
export function vectorEntry(question: Question, classes: number, mode: Mode = 'fast'): TuningEntry {
  const states = scoreCount(question);
  return {
    ...shiftEntry(question, new Array<number>(classes).fill(0)),
    mode,
    vector: {
      centres: Array.from({ length: states }, (_, at) => at),
      weights: Array.from({ length: states * VECTOR_SIZE }, (_, at) => Math.sin(at)),
    },
  };
}

/** "refund" of `ALL_TYPES`. */
export const REFUND: Question = {
  type: 'noul',
  instructions: ALL_TYPES.refund.instructions,
  yes: undefined,
  no: undefined,
};
/** The options by id: billing, sales, technical. */
export const TOPIC: Question = {
  type: 'choice',
  instructions: 'Which topic?',
  options: ['billing', 'sales', 'technical'].map((id) => ({ id, description: id })),
};

/** The tuned choice as in a request, with its options in that order. */
export const topic = (ids: readonly string[]) => ({
  type: 'choice',
  instructions: 'Which topic?',
  criteria: Object.fromEntries(ids.map((id) => [id, id])),
});

/** The text of a tuning of these weights that answers "refund" of `ALL_TYPES` with no, and "topic" with sales. */
export function strongTuning(
  facts: Pick<EngineFacts, 'weights_sha256' | 'profile'>,
  more: Partial<TuningContent['header']> = {},
): string {
  return tuningOf(facts, [shiftEntry(REFUND, [STRENGTH, 0]), shiftEntry(TOPIC, [0, STRENGTH, 0])], more);
}

/** The text of a tuning of these weights. */
export function tuningOf(
  { weights_sha256, profile }: Pick<EngineFacts, 'weights_sha256' | 'profile'>,
  entries: readonly TuningEntry[],
  more: Partial<TuningContent['header']> = {},
): string {
  return writeTuning({
    header: {
      weights_sha256,
      profile,
      model: 'decision-1',
      hash_key: [1, 2],
      fitted_on: { cases_sha256: 'c'.repeat(64), records: 20, seed: 1 },
      ...more,
    },
    entries,
  });
}
