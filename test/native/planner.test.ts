import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { copyFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { type DecisionPlanner, openPlanner } from '../../native/engine.ts';
import { EngineFailed, WeightsError } from '../../native/errors.ts';
import { readModelFacts } from '../../native/model-facts.ts';
import type { ModelTokenizer } from '../../native/model-tokenizer.ts';
import { codesV1 } from '../../native/plan/codes-v1.ts';
import { withConsistentReadings } from '../../native/plan/consistent-readings.ts';
import { markersV1 } from '../../native/plan/markers-v1.ts';
import type { DecisionInput, PromptProfile } from '../../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS } from '../../native/weights.ts';
import { jsonValueOf } from '../../src/json/json-value.ts';
import { ofAnyType } from '../support/questions.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { IMPLEMENTATIONS } from './addon/support.ts';
import { tinyModelBytes, writeTinyModel } from './support/gguf.ts';
import { loadedTokenizer, TINY_CHAT, TINY_MARKERS } from './support/models.ts';
import { VECTORS, vectorInput } from './support/vectors.ts';

// The addon is built first where it is not yet.
setDefaultTimeout(180_000);

const CONTEXT_TOKENS = 512;
/** A chat model whose words are pieces, so that texts can be split in many ways. */
const CHAT = {
  ...TINY_CHAT,
  words: [...TINY_CHAT.words, ' the', ' is', 'ab', 'aba', ' 12', '中中'],
  context_tokens: CONTEXT_TOKENS,
};

const text = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 8 }),
        fc.lorem(),
        fc.constantFrom('<|yes|>', '<|im_end|>', ' the', '  ', '\n\n', "it's", '2024-11-05', '中文', '😀'),
      ),
      { maxLength: 6 },
    ),
    // Some records are longer than fits.
    fc.constantFrom(1, 1, 1, 60),
  )
  .map(([parts, times]) => parts.join('').repeat(times));
const value = fc.oneof(text, fc.jsonValue({ maxDepth: 2 })).map(jsonValueOf);
const short = fc.string({ unit: 'grapheme', maxLength: 20 });
const options = fc.uniqueArray(fc.record({ id: short, description: fc.option(short) }), {
  minLength: 2,
  maxLength: 5,
  selector: ({ id }) => id,
});
const question = ofAnyType({
  noul: fc.record({ type: fc.constant('noul'), instructions: short, yes: short, no: short }),
  choice: fc.record({ type: fc.constant('choice'), instructions: short, options }),
  score: fc.record({
    type: fc.constant('score'),
    instructions: short,
    levels: fc.array(short, { minLength: 2, maxLength: 5 }),
  }),
});
const request: fc.Arbitrary<DecisionInput> = fc.record({
  state: value,
  questions: fc.array(question, { minLength: 1, maxLength: 4 }),
  mode: fc.constantFrom('fast' as const, 'consistent' as const),
});

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let chat_path: string;
beforeAll(async () => {
  directory = await temporaryDirectory();
  chat_path = join(directory.path, 'chat.gguf');
  await writeTinyModel(chat_path, CHAT);
});
afterAll(() => directory[Symbol.asyncDispose]());

/** The profile as it is with all of the weights in memory. */
async function loadedProfile(path: string): Promise<{ profile: PromptProfile; tokenizer: ModelTokenizer }> {
  const tokenizer = await loadedTokenizer(path);
  if (path === EMBEDDED_WEIGHTS) return { tokenizer, profile: withConsistentReadings(markersV1(tokenizer)) };
  const { vocabulary, chat_template } = await readModelFacts(path);
  return { tokenizer, profile: await codesV1({ tokenizer, vocabulary, chat_template }) };
}

const MODELS = [
  ['decision-1', () => EMBEDDED_WEIGHTS],
  ['a chat model', () => chat_path],
] as const;

describe.each(IMPLEMENTATIONS)('a planner by %s', (evaluator) => {
  test.each(MODELS)('%s is planned for without its weights as with them, token by token', async (_, path) => {
    const model_path = path();
    const planner = await openPlanner({ model_path, evaluator, gpu: false, context_tokens: CONTEXT_TOKENS });
    const { profile, tokenizer } = await loadedProfile(model_path);
    const alike = async (input: DecisionInput) => {
      const settled = await Promise.allSettled([
        planner.plan(input),
        profile.plan(input, CONTEXT_TOKENS).then((plans) => ({ input, ...plans })),
      ]);
      expect(settled[0]).toEqual(settled[1]);
    };
    for (const vector of VECTORS) await alike(vectorInput(vector));
    await fc.assert(fc.asyncProperty(request, alike), { numRuns: 300 });
    await planner.close();
    await tokenizer.close();
  });

  test('it outlives its engines, which give the same plans', async () => {
    const planner = await openPlanner({
      model_path: chat_path,
      evaluator,
      gpu: false,
      threads: 1,
      context_tokens: CONTEXT_TOKENS,
    });
    const [vector] = VECTORS;
    if (vector === undefined) throw new Error('there is no vector');
    const input = vectorInput(vector);
    const plan = await planner.plan(input);
    const scores: unknown[] = [];
    for (let engines = 0; engines < 2; engines += 1) {
      const engine = await planner.openEngine();
      expect(await engine.plan(input)).toEqual(plan);
      scores.push(await engine.evaluate(plan, { scope: 'test' }));
      await engine.close();
      expect(await planner.plan(input)).toEqual(plan);
    }
    expect(scores[1]).toEqual(scores[0]);
    await planner.close();
    await expect(planner.plan(input)).rejects.toBeInstanceOf(EngineFailed);
    await expect(planner.openEngine()).rejects.toBeInstanceOf(EngineFailed);
  });
});

describe('a model that was checked before', () => {
  test('is opened with the weights and the profile that it had then, and refused with any other', async () => {
    const path = join(directory.path, `${crypto.randomUUID()}.gguf`);
    await writeTinyModel(path, TINY_MARKERS);
    const open = (weights_sha256: string | null, profile: string | null) =>
      openPlanner({ model_path: path, expected: { weights_sha256, profile }, gpu: false, threads: 1 });
    const planner = await open(null, null);
    const engine = await planner.openEngine();
    const { weights_sha256, profile } = engine.facts;
    await engine.close();
    await planner.close();
    await (await open(weights_sha256, profile)).close();
    for (const [sha256, name, said] of [
      ['0'.repeat(64), profile, 'are others than when the model was added'],
      [weights_sha256, 'codes-v1', `would be asked by ${profile}`],
    ] as const) {
      const refused: unknown = await open(sha256, name).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(WeightsError);
      expect(String(refused)).toContain(said);
    }
  });
});

describe('weights that were touched since the planner was opened', () => {
  async function opened(): Promise<{ path: string; planner: DecisionPlanner }> {
    const path = join(directory.path, `${crypto.randomUUID()}.gguf`);
    await writeTinyModel(path, TINY_MARKERS);
    return { path, planner: await openPlanner({ model_path: path, gpu: false, threads: 1 }) };
  }

  test('are loaded when they are the same', async () => {
    const { path, planner } = await opened();
    await copyFile(path, `${path}.copy`);
    await rename(`${path}.copy`, path);
    await (await planner.openEngine()).close();
    await planner.close();
  });

  test('are refused when they are others: their vocabulary is not the one in memory', async () => {
    const { path, planner } = await opened();
    await writeFile(path, tinyModelBytes({ ...TINY_MARKERS, words: [' is', ' the'] }));
    const refused: unknown = await planner.openEngine().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(WeightsError);
    expect(String(refused)).toContain(path);
    await writeFile(path, tinyModelBytes(TINY_MARKERS));
    await (await planner.openEngine()).close();
    await planner.close();
  });
});
