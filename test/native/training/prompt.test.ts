import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import type { ModelTokenizer } from '../../../native/model-tokenizer.ts';
import { markersV1 } from '../../../native/plan/markers-v1.ts';
import type { PromptProfile } from '../../../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';
import { propertySeed } from '../../ledger/support.ts';
import { llamaTokenizer } from '../support/models.ts';
import { VECTORS, type Vector, vectorInput } from '../support/vectors.ts';
import { PYTHON, runPython } from './support.ts';

setDefaultTimeout(120_000);

/** More than any request here has, so that no record is shortened. */
const CONTEXT_TOKENS = 16_384;
const REQUESTS = 300;

const Part = Type.Array(Type.Union([Type.Integer(), Type.String()]));
const Plans = Type.Array(
  Type.Object({
    prefix: Part,
    branches: Type.Array(Type.Object({ ids: Part, reads: Type.Array(Type.Integer()) })),
  }),
);

const json = fc.jsonValue({ maxDepth: 3 });
const words = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom(
    '',
    ' spaced\u00a0',
    'Reset Password',
    'reset-password',
    '<|answer|>',
    'a\n b',
    '中文 12.50',
  ),
);
const said = fc.oneof(words, json);
const question: fc.Arbitrary<Vector['questions'][string]> = fc.oneof(
  fc.record({
    type: fc.constant('noul' as const),
    instructions: said,
    criteria: fc.oneof(
      fc.record({ true: said, false: said }, { requiredKeys: [] }),
      fc.record({ yes: said, no: said }, { requiredKeys: [] }),
    ),
  }),
  fc.record({
    type: fc.constant('choice' as const),
    instructions: said,
    criteria: fc.dictionary(words, said, { minKeys: 2, maxKeys: 5, noNullPrototype: true }),
  }),
  fc.record({
    type: fc.constant('score' as const),
    instructions: said,
    criteria: fc.array(said, { minLength: 2, maxLength: 5 }),
  }),
);
const request: fc.Arbitrary<Vector> = fc.record({
  name: fc.constant('random'),
  mode: fc.constantFrom('fast' as const, 'consistent' as const),
  state: fc.oneof(words, fc.array(json), fc.dictionary(words, json, { noNullPrototype: true })),
  questions: fc.dictionary(fc.constantFrom('a', 'b', 'c'), question, { minKeys: 1, noNullPrototype: true }),
  plans: fc.constant([]),
});

describe.skipIf(PYTHON === null)('the prompt of the training code', () => {
  let tokenizer: ModelTokenizer;
  let profile: PromptProfile;
  beforeAll(async () => {
    ({ tokenizer } = await llamaTokenizer(EMBEDDED_WEIGHTS));
    profile = markersV1(tokenizer);
  });
  afterAll(() => tokenizer.close());

  test('makes the pinned plans of the vectors', async () => {
    const plans = await trainingPlans(tokenizer, VECTORS);
    const pinned = VECTORS.map((vector) =>
      vector.plans.map(({ prefix, branches }) => ({
        prefix,
        branches: branches.map(({ ids, reads }) => ({ ids, reads })),
      })),
    );
    expect(plans).toEqual(pinned);
  });

  test('makes the plans of the service, token by token, of random requests', async () => {
    const requests = fc.sample(request, {
      numRuns: REQUESTS,
      seed: propertySeed('the prompt of the training code'),
    });
    const plans = await trainingPlans(tokenizer, requests);
    expect(plans.length).toBe(REQUESTS);
    for (const [index, sent] of requests.entries()) {
      const served = await profile.plan(vectorInput(sent), CONTEXT_TOKENS);
      const tokens = served.plans.map(({ prefix, branches }) => ({
        prefix,
        branches: branches.map((branch) => ({
          ids: branch.tokens,
          reads: branch.reads.map((read) => read.index),
        })),
      }));
      expect({ sent, plans: plans[index] }).toEqual({ sent, plans: tokens });
    }
  });
});

/** The plans that the training code makes of requests, its texts tokenized by the service's tokenizer. */
async function trainingPlans(
  tokenizer: ModelTokenizer,
  requests: readonly Vector[],
): Promise<readonly unknown[]> {
  const lines = requests.map(({ mode, state, questions }) => JSON.stringify({ mode, state, questions }));
  const { code, stdout, stderr } = await runPython(
    PYTHON ?? '',
    [join(import.meta.dir, 'prompt_texts.py')],
    lines.join('\n'),
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const plans = stdout.trim().split('\n');
  return await Promise.all(plans.map((line) => tokenized(tokenizer, Value.Decode(Plans, JSON.parse(line)))));
}

function tokenized(tokenizer: ModelTokenizer, plans: Static<typeof Plans>) {
  return Promise.all(
    plans.map(async ({ prefix, branches }) => ({
      prefix: (await tokensOf(tokenizer, prefix)).flat(),
      branches: await Promise.all(
        branches.map(async ({ ids, reads }) => {
          const tokens = await tokensOf(tokenizer, ids);
          return {
            ids: tokens.flat(),
            reads: reads.map((read) => tokens.slice(0, read).flat().length),
          };
        }),
      ),
    })),
  );
}

/** The tokens of each item of a part: a control token is itself, a text many. */
async function tokensOf(
  tokenizer: ModelTokenizer,
  part: Static<typeof Part>,
): Promise<readonly (readonly number[])[]> {
  return await Promise.all(
    part.map(async (item) =>
      typeof item === 'number' ? [item] : ((await tokenizer.tokenize([item]))[0] ?? []),
    ),
  );
}
