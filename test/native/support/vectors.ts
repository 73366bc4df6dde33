import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { DecisionInput } from '../../../native/plan/profile.ts';
import { jsonValueOf } from '../../../src/json/json-value.ts';
import type { Question } from '../../../src/questions/question.ts';

const Json = Type.Unknown();
const Asked = Type.Union([
  Type.Object({
    type: Type.Literal('noul'),
    instructions: Type.Optional(Json),
    criteria: Type.Optional(Type.Record(Type.String(), Json)),
  }),
  Type.Object({
    type: Type.Literal('choice'),
    instructions: Json,
    criteria: Type.Record(Type.String(), Json),
  }),
  Type.Object({ type: Type.Literal('score'), instructions: Json, criteria: Type.Array(Json) }),
]);
const Branch = Type.Object({
  question: Type.String(),
  ids: Type.Array(Type.Integer()),
  reads: Type.Array(Type.Integer()),
  scores: Type.Array(Type.Number()),
});
const Row = Type.Object({
  name: Type.String(),
  mode: Type.Union([Type.Literal('fast'), Type.Literal('consistent')]),
  state: Json,
  questions: Type.Record(Type.String(), Asked),
  plans: Type.Array(Type.Object({ prefix: Type.Array(Type.Integer()), branches: Type.Array(Branch) })),
});

/** A request, the plans that it must become, and the scores that decision-1 gives. */
export type Vector = Static<typeof Row>;

function question(asked: Static<typeof Asked>): Question {
  switch (asked.type) {
    case 'noul':
      return {
        type: 'noul',
        instructions: jsonValueOf(asked.instructions ?? null),
        yes: jsonValueOf(asked.criteria?.true ?? asked.criteria?.yes ?? null),
        no: jsonValueOf(asked.criteria?.false ?? asked.criteria?.no ?? null),
      };
    case 'choice':
      return {
        type: 'choice',
        instructions: jsonValueOf(asked.instructions),
        options: Object.entries(asked.criteria).map(([id, description]) => ({
          id,
          description: jsonValueOf(description),
        })),
      };
    case 'score':
      return {
        type: 'score',
        instructions: jsonValueOf(asked.instructions),
        levels: asked.criteria.map(jsonValueOf),
      };
  }
}

/** A vector's request as the engine takes it. */
export function vectorInput(vector: Vector): DecisionInput {
  return {
    state: jsonValueOf(vector.state),
    questions: Object.values(vector.questions).map(question),
    mode: vector.mode,
  };
}

export const VECTORS_FILE = fileURLToPath(new URL('../plan/vectors.jsonl', import.meta.url));

/** Every row of the pinned test vectors. */
export const VECTORS: readonly Vector[] = readFileSync(VECTORS_FILE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => Value.Decode(Row, JSON.parse(line)));
