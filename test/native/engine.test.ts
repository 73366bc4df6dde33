import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import {
  type DecisionEngine,
  openEngine,
  type ScheduledPlan,
  type SchedulePlan,
} from '../../native/engine.ts';
import { planTokens } from '../../native/plan/plan.ts';
import type { DecisionInput } from '../../native/plan/profile.ts';
import { jsonValueOf } from '../../src/json/json-value.ts';
import type { ChoiceQuestion } from '../../src/questions/choice.ts';
import { type Mode, type Question, scoreCount } from '../../src/questions/question.ts';
import { ofAnyType } from '../support/questions.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { writeTinyModel } from './support/gguf.ts';
import { TINY_CHAT, TINY_MARKERS, TINY_T5 } from './support/models.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

const MODES: readonly Mode[] = ['fast', 'consistent'];
const MODELS = ['markers-v1', 'codes-v1'] as const;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const engines = new Map<string, DecisionEngine>();
/** The same models with so little context that records do not fit. */
const cramped = new Map<string, DecisionEngine>();
const CRAMPED_TOKENS = 512;
beforeAll(async () => {
  directory = await temporaryDirectory();
  for (const [name, model] of [
    ['markers-v1', TINY_MARKERS],
    ['codes-v1', TINY_CHAT],
  ] as const) {
    const model_path = join(directory.path, `${name}.gguf`);
    await writeTinyModel(model_path, { ...model, context_tokens: 8192 });
    engines.set(name, await openEngine({ model_path, gpu: false, threads: 1 }));
    const context_tokens = CRAMPED_TOKENS;
    cramped.set(name, await openEngine({ model_path, gpu: false, threads: 1, context_tokens }));
  }
});
afterAll(async () => {
  for (const engine of [...engines.values(), ...cramped.values()]) await engine.close();
  await directory[Symbol.asyncDispose]();
});

function engineOf(profile: string, among = engines): DecisionEngine {
  const engine = among.get(profile);
  if (engine === undefined) throw new Error(`There is no ${profile}.`);
  return engine;
}

let scopes = 0;
/** Scores of a request whose record nobody has asked about before. */
async function scoresOf(engine: DecisionEngine, input: DecisionInput) {
  scopes += 1;
  return await engine.evaluate(await engine.plan(input), { scope: `scope ${scopes}` });
}

const json = fc.jsonValue({ maxDepth: 2 }).map((value) => jsonValueOf(JSON.parse(JSON.stringify(value))));
const question = ofAnyType({
  noul: fc.record({
    type: fc.constant('noul'),
    instructions: fc.oneof(fc.string(), json),
    yes: fc.option(fc.string(), { nil: undefined }),
    no: fc.option(fc.string(), { nil: undefined }),
  }),
  choice: fc.record({
    type: fc.constant('choice'),
    instructions: fc.string(),
    options: fc.array(fc.record({ id: fc.string(), description: json }), { minLength: 2, maxLength: 6 }),
  }),
  score: fc.record({
    type: fc.constant('score'),
    instructions: fc.string(),
    levels: fc.array(fc.string(), { minLength: 2, maxLength: 6 }),
  }),
});

test.each(MODELS)('%s is chosen by the vocabulary', (profile) => {
  expect(engineOf(profile).facts.profile).toStartWith(profile);
  expect(engineOf(profile).facts).toMatchObject({ context_tokens: 8192, device: 'cpu' });
});

test.each([
  ['Dream', 'llama', { ...TINY_CHAT, architecture: 'dream' }],
  ['EuroBERT', 'llama', { ...TINY_CHAT, architecture: 'eurobert' }],
  ['EuroBERT', 'auto', { ...TINY_CHAT, architecture: 'eurobert' }],
  ['T5', 'auto', TINY_T5],
] as const)(
  "a model of %s's kind, whose answers would not be about the record, is refused by %s",
  async (_, evaluator, model) => {
    const model_path = join(directory.path, 'no-decoder.gguf');
    await writeTinyModel(model_path, model);
    const opening = openEngine({ model_path, evaluator, gpu: false, threads: 1 });
    await expect(opening).rejects.toThrow(
      `The model ${model_path} cannot be served (it is no decoder-only model`,
    );
  },
);

/** Questions that leave rooms of very different sizes for the record. */
const sizedQuestion = ofAnyType({
  noul: fc.nat({ max: 25 }).map((words) => ({
    type: 'noul' as const,
    instructions: 'is the '.repeat(words),
    yes: undefined,
    no: undefined,
  })),
  choice: fc.integer({ min: 2, max: 12 }).map((options) => ({
    type: 'choice' as const,
    instructions: 'the',
    options: Array.from({ length: options }, (_, index) => ({ id: `is ${index}`, description: null })),
  })),
  score: fc.integer({ min: 2, max: 6 }).map((levels) => ({
    type: 'score' as const,
    instructions: 'the',
    levels: Array.from({ length: levels }, (_, level) => ' is'.repeat(level)),
  })),
});

test.each(MODELS)(
  '%s: other questions never change what is read of a record that is too long',
  async (profile) => {
    const engine = engineOf(profile, cramped);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(' the', ' is', 'q', 'zz', '. '), { minLength: 400, maxLength: 900 }),
        fc.array(sizedQuestion, { minLength: 2, maxLength: 5 }),
        fc.constantFrom(...MODES),
        async (words, questions, mode) => {
          const state = words.join('');
          const together = await scoresOf(engine, { state, questions, mode });
          for (const [index, one] of questions.entries()) {
            const [alone] = await scoresOf(engine, { state, questions: [one], mode });
            expect(alone).toEqual([...(together[index] ?? [])]);
          }
        },
      ),
      { numRuns: 25 },
    );
  },
);

describe.each([
  ['markers-v1', 15],
  ['codes-v1', 5],
] as const)('%s', (profile, numRuns) => {
  test('other questions never change an answer, by a single bit', async () => {
    const engine = engineOf(profile);
    await fc.assert(
      fc.asyncProperty(
        json,
        fc.array(question, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...MODES),
        async (state, questions, mode) => {
          const together = await scoresOf(engine, { state, questions, mode });
          expect(together.map((scores) => scores.length)).toEqual(questions.map(scoreCount));
          expect(together.flat().every(Number.isFinite)).toBe(true);
          const in_other_order = await scoresOf(engine, { state, questions: questions.toReversed(), mode });
          expect(in_other_order.toReversed()).toEqual([...together]);
          for (const [index, one] of questions.entries()) {
            const [alone] = await scoresOf(engine, { state, questions: [one], mode });
            expect(alone).toEqual([...(together[index] ?? [])]);
          }
        },
      ),
      { numRuns },
    );
  });
});

test.each([
  ['markers-v1', 'fast'],
  ['markers-v1', 'consistent'],
  ['codes-v1', 'fast'],
] as const)('64 questions in one request, %s, %s', async (profile, mode) => {
  const questions: readonly Question[] = Array.from({ length: 64 }, (_, index) => ({
    type: 'noul',
    instructions: `Is it ${index % 8}?`,
    yes: undefined,
    no: undefined,
  }));
  const scores = await scoresOf(engineOf(profile), { state: 'It is 3.', questions, mode });
  expect(scores.length).toBe(64);
  // The same question has the same answer wherever it stands.
  for (const [index, [score]] of scores.entries()) expect(score).toBe(scores[index % 8]?.[0] ?? Number.NaN);
  expect(new Set(scores.flat()).size).toBe(8);
});

test.each(MODES)('255 options and 255 levels have a score each, %s', async (mode) => {
  const descriptions = Array.from({ length: 255 }, (_, index) => `n${index}`);
  const questions: readonly Question[] = [
    {
      type: 'choice',
      instructions: 'Which?',
      options: descriptions.map((id) => ({ id, description: null })),
    },
    { type: 'score', instructions: 'How much?', levels: descriptions },
  ];
  const scores = await scoresOf(engineOf('markers-v1'), { state: 'n7', questions, mode });
  expect(scores.map((question_scores) => question_scores.length)).toEqual([255, 255]);
  expect(scores.every((question_scores) => new Set(question_scores).size > 200)).toBe(true);
});

test('the likeliest of many options are read again by themselves, whatever else is asked', async () => {
  const engine = engineOf('markers-v1');
  const manyOf = (options: number): ChoiceQuestion => ({
    type: 'choice',
    instructions: 'Which?',
    options: Array.from({ length: options }, (_, at) => ({
      id: `the ${at} is ${at % 7}`,
      description: null,
    })),
  });
  const [many, more] = [manyOf(40), manyOf(90)];
  const noul: Question = { type: 'noul', instructions: 'Is it?', yes: undefined, no: undefined };
  const state = 'It is 3.';
  const together = await scoresOf(engine, { state, questions: [noul, many, more], mode: 'fast' });
  for (const [at, question] of [noul, many, more].entries()) {
    const [alone] = await scoresOf(engine, { state, questions: [question], mode: 'fast' });
    expect(alone).toEqual([...(together[at] ?? [])]);
  }
  const plan = await engine.plan({ state, questions: [many], mode: 'fast' });
  const scheduled: number[] = [];
  const schedulePlan: SchedulePlan = (one, work) => {
    scheduled.push(one.tokens);
    return work();
  };
  await engine.evaluate(plan, { scope: 'scheduled', schedulePlan });
  expect(scheduled.length).toBe(2);
  expect(scheduled[0]).toBe(plan.input_tokens);
  expect(scheduled[1]).toBeLessThan(plan.input_tokens / 2);
});

test('every plan is scheduled, with what it costs, and one that fails gives the others up', async () => {
  const engine = engineOf('markers-v1');
  const noul: Question = { type: 'noul', instructions: 'Is it?', yes: undefined, no: undefined };
  const input: DecisionInput = { state: 'x', questions: [noul, noul, noul], mode: 'consistent' };
  const plan = await engine.plan(input);
  const scheduled: ScheduledPlan[] = [];
  const schedulePlan: SchedulePlan = (one, work) => {
    scheduled.push(one);
    return work();
  };
  const scores = await engine.evaluate(plan, { scope: 'scheduled', schedulePlan });
  expect(scores).toEqual(await engine.evaluate(plan, { scope: 'unscheduled' }));
  expect(scheduled.map(({ tokens }) => tokens)).toEqual(plan.plans.map(planTokens));
  for (const { decoder } of scheduled) expect(decoder).toBe('small');
  const given_up: AbortSignal[] = [];
  const refusing: SchedulePlan = (_, __, signal) => {
    given_up.push(signal);
    if (given_up.length === plan.plans.length) return Promise.reject(new Error('refused'));
    return new Promise((___, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  await expect(engine.evaluate(plan, { scope: 'scheduled', schedulePlan: refusing })).rejects.toThrow(
    'refused',
  );
  expect(given_up.every(({ aborted }) => aborted)).toBe(true);
});

test('a client that goes away frees the places of its request', async () => {
  const engine = engineOf('markers-v1');
  const noul: Question = { type: 'noul', instructions: 'Is it?', yes: undefined, no: undefined };
  const input: DecisionInput = {
    state: 'x',
    questions: Array.from({ length: 64 }, () => noul),
    mode: 'consistent',
  };
  const gone = new AbortController();
  const plan = await engine.plan(input);
  const left = engine.evaluate(plan, { scope: 'left', signal: gone.signal });
  gone.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  expect((await scoresOf(engine, { ...input, mode: 'fast' })).length).toBe(64);
});

test('the embedded weights are as independent, at real sizes', async () => {
  const engine = await openEngine({ gpu: false, threads: 1, context_tokens: 2048 });
  expect(engine.facts.profile).toStartWith('markers-v1');
  const state = `${'The parcel was promised for Monday. '.repeat(12)}It came on Friday, and the box was wet.`;
  const questions: readonly Question[] = [
    {
      type: 'noul',
      instructions: 'Was the parcel late?',
      yes: 'it came after the promised day',
      no: undefined,
    },
    {
      type: 'choice',
      instructions: 'What is it about?',
      options: [
        { id: 'delivery', description: 'parcels and couriers' },
        { id: 'billing', description: 'payments and refunds' },
      ],
    },
    { type: 'score', instructions: 'How damaged is the box?', levels: ['not at all', 'a little', 'badly'] },
  ];
  const together = await scoresOf(engine, { state, questions, mode: 'fast' });
  for (const [index, one] of questions.entries()) {
    const [alone] = await scoresOf(engine, { state, questions: [one], mode: 'fast' });
    expect(alone).toEqual([...(together[index] ?? [])]);
  }
  await engine.close();
});
