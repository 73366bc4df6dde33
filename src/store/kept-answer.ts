import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { MODES } from '../questions/question.ts';

/** The bytes of answers that are kept for one organization; beyond that the oldest are deleted. */
export const KEPT_BYTES_MAX = 64 * 1_048_576;

/** The approximate size of the other columns and the indexes of an answer. */
const ROW_BYTES = 400;

const KeptAnswer = Type.Object({
  id: Type.String(),
  created: Type.Integer(),
  model: Type.String(),
  mode: Type.Union(MODES.map((mode) => Type.Literal(mode))),
  input_tokens: Type.Integer(),
  cost_micros: Type.Integer(),
  latency_ms: Type.Number(),
  /** As in the plan of the request; absent in answers that an earlier version stored. */
  record_tokens_left_out: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  /**
   * The numbers of each question, in the order of the request. Ids, options and legends come with the
   * repeated request.
   */
  numbers: Type.Array(Type.Array(Type.Number())),
});

/** The stored part of an answer; nothing in it was sent by the client. */
export type KeptAnswer = Static<typeof KeptAnswer>;

/** Returns the stored text of an answer, and the total bytes that it takes. */
export function writeKept(kept: KeptAnswer): { readonly answer: string; readonly bytes: number } {
  const answer = JSON.stringify(kept);
  return { answer, bytes: answer.length + ROW_BYTES };
}

/** Parses a stored answer; null where none is stored yet. Throws for any other text. */
export function readKept(text: string | null): KeptAnswer | null {
  return text === null ? null : Value.Parse(KeptAnswer, JSON.parse(text));
}
