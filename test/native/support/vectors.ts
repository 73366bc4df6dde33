import { deepEqual } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { DecisionInput, PromptProfile } from '../../../native/plan/profile.ts';
import type { PlanEvaluator } from '../../../native/plan-evaluator.ts';
import { jsonValueOf } from '../../../src/json/json-value.ts';
import type { Question } from '../../../src/questions/question.ts';
import { largestDistance } from './distances.ts';

/** The number of positions for which the vectors' plans are made. */
export const CONTEXT_TOKENS = 1024;
/** The number of decision-1's tokens. */
export const VOCABULARY = 49_152;
/** The largest error of a score of these weights by rounding activations to 8 bits: .186 with AVX-512, .236 with AVX2. */
export const ROUNDED_TOLERANCE = 0.24;

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

/** One list of scores for each question of a vector, of plans that reuse no prefix. They are not calibrated. */
export async function scoresOf(
  vector: Vector,
  profile: PromptProfile,
  evaluator: PlanEvaluator,
): Promise<readonly (readonly number[])[]> {
  const input = vectorInput(vector);
  const { plans } = await profile.plan(input, CONTEXT_TOKENS);
  const logits = await Promise.all(
    plans.map((plan) => evaluator.evaluate(plan, { scope: crypto.randomUUID() })),
  );
  return profile.scores(input, plans, logits);
}

/** The scores that the questions of a vector must get. */
export function pinnedScores({ plans }: Vector): readonly (readonly number[])[] {
  return plans.flatMap(({ branches }) => branches.map(({ scores }) => scores));
}

/** The largest distance of a score from the pinned one. Throws where a question has not as many scores. */
export async function distanceFromPinned(
  vector: Vector,
  profile: PromptProfile,
  evaluator: PlanEvaluator,
): Promise<number> {
  const scores = await scoresOf(vector, profile, evaluator);
  const pinned = pinnedScores(vector);
  deepEqual(
    scores.map(({ length }) => length),
    pinned.map(({ length }) => length),
  );
  return largestDistance(scores.flat(), pinned.flat());
}
