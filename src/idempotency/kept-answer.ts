import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { MODES } from '../questions/question.ts';

/** Bytes of answers that are kept for one organization; above that the oldest go. */
export const KEPT_BYTES_MAX = 64 * 1_048_576;

/** About what the other columns and the indexes of an answer take. */
const ROW_BYTES = 400;

const KeptAnswer = Type.Object({
  id: Type.String(),
  created: Type.Integer(),
  model: Type.String(),
  mode: Type.Union(MODES.map((mode) => Type.Literal(mode))),
  input_tokens: Type.Integer(),
  cost_micros: Type.Integer(),
  latency_ms: Type.Number(),
  /** Of each question, in the order of the request: ids, options and legends are in the request that is repeated. */
  numbers: Type.Array(Type.Array(Type.Number())),
});

/** What is kept of an answer: nothing in it was sent by the client. */
export type KeptAnswer = Static<typeof KeptAnswer>;

/** The text that is stored of an answer, and the bytes that it takes in all. */
export function writeKept(kept: KeptAnswer): { readonly answer: string; readonly bytes: number } {
  const answer = JSON.stringify(kept);
  return { answer, bytes: answer.length + ROW_BYTES };
}

/** The answer in a stored text. Throws for a text that is none. */
export function readKept(text: string): KeptAnswer {
  return Value.Parse(KeptAnswer, JSON.parse(text));
}
