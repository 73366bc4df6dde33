import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { PlanRejected } from '../../../native/errors.ts';
import type { ModelFacts } from '../../../native/model-facts.ts';
import type { ModelTokenizer } from '../../../native/model-tokenizer.ts';
import { codesV1 } from '../../../native/plan/codes-v1.ts';
import { findLabels } from '../../../native/plan/labels.ts';
import { type Plan, type PlanLogits, planPositions } from '../../../native/plan/plan.ts';
import type { DecisionInput } from '../../../native/plan/profile.ts';
import type { PlanEvaluator } from '../../../native/plan-evaluator.ts';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';
import { jsonValueOf } from '../../../src/json/json-value.ts';
import type { Mode, Question } from '../../../src/questions/question.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { type TinyModel, writeTinyModel } from '../support/gguf.ts';
import { CHATML, llamaTokenizer, loadOnCpu, TINY_CHAT } from '../support/models.ts';
import { NO_WORDS, tokenizerOf } from './words.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

const MODES: readonly Mode[] = ['fast', 'consistent'];
/** A chat model whose template's tokens are listed as the maker's own, which llama.cpp matches in any text. */
const LEAKY_CHAT: TinyModel = {
  ...TINY_CHAT,
  control: ['<|endoftext|>'],
  maker_defined: ['<|im_start|>', '<|im_end|>'],
};

const LETTERS = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
/** A chat model with a code for every option that there may be. */
const WIDE_CHAT: TinyModel = {
  control: TINY_CHAT.control,
  words: [...TINY_CHAT.words, ...LETTERS.flatMap((first) => LETTERS.map((second) => ` ${first}${second}`))],
  chat_template: CHATML,
  context_tokens: 4096,
};

interface Loaded {
  readonly evaluator: PlanEvaluator;
  readonly tokenizer: ModelTokenizer;
  readonly facts: ModelFacts;
}

async function load(path: string, options: { readonly context_tokens?: number } = {}): Promise<Loaded> {
  return { ...(await loadOnCpu(path, options)), ...(await llamaTokenizer(path)) };
}

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const models = new Map<string, Loaded>();
beforeAll(async () => {
  directory = await temporaryDirectory();
  models.set('the embedded vocabulary', await load(EMBEDDED_WEIGHTS, { context_tokens: 4096 }));
  for (const [name, model] of [
    ['a generated chat model', TINY_CHAT],
    ['a leaky chat model', LEAKY_CHAT],
    ['a wide chat model', WIDE_CHAT],
  ] as const) {
    const path = join(directory.path, `${name}.gguf`);
    await writeTinyModel(path, model);
    models.set(name, await load(path));
  }
});
afterAll(async () => {
  for (const { evaluator, tokenizer } of models.values()) {
    await evaluator.close();
    await tokenizer.close();
  }
  await directory[Symbol.asyncDispose]();
});

function model(name: string): Loaded {
  const loaded = models.get(name);
  if (loaded === undefined) throw new Error(`There is no ${name}.`);
  return loaded;
}

function profileOf({ tokenizer, facts }: Loaded, chat_template: string | undefined = CHATML) {
  return codesV1({ tokenizer, vocabulary: facts.vocabulary, chat_template });
}

async function logitsOf(evaluator: PlanEvaluator, plans: readonly Plan[]): Promise<readonly PlanLogits[]> {
  return await Promise.all(plans.map((plan) => evaluator.evaluate(plan, { scope: 'test' })));
}

function choice(count: number): Question {
  return {
    type: 'choice',
    instructions: 'Which number?',
    options: Array.from({ length: count }, (_, index) => ({ id: `n${index}`, description: null })),
  };
}

const NOUL: Question = { type: 'noul', instructions: 'Is it on?', yes: 'it is lit', no: undefined };
const SCORE: Question = { type: 'score', instructions: 'How bright?', levels: ['dark', 'dim', 'bright'] };

test.each([
  ['the embedded vocabulary', 'fast', CHATML],
  ['the embedded vocabulary', 'consistent', undefined],
  ['a generated chat model', 'fast', undefined],
  ['a generated chat model', 'consistent', CHATML],
] as const)(
  '%s answers every type with as many finite scores as it needs, %s',
  async (name, mode, template) => {
    const loaded = model(name);
    const profile = await profileOf(loaded, template);
    const input: DecisionInput = { state: 'The light is on.', questions: [NOUL, choice(4), SCORE], mode };
    const { plans, input_tokens } = await profile.plan(input, 2048);
    const scores = profile.scores(input, plans, await logitsOf(loaded.evaluator, plans));
    expect(scores.map((question) => question.length)).toEqual([1, 4, 3]);
    expect(scores.flat().every(Number.isFinite)).toBe(true);
    // However often a consistent question is read, it is billed as if it were asked alone in fast mode.
    const apart = await Promise.all(
      input.questions.map((question) =>
        profile.plan({ ...input, questions: [question], mode: 'fast' }, 2048),
      ),
    );
    const billed = apart.reduce((sum, plan) => sum + plan.input_tokens, 0);
    const [record = []] = apart.map((plan) => plan.plans[0]?.prefix ?? []);
    expect(input_tokens).toBe(mode === 'consistent' ? billed : billed - 2 * record.length);
  },
);

test.each(MODES)('a question has the same scores whatever other questions there are, %s', async (mode) => {
  const loaded = model('a generated chat model');
  const profile = await profileOf(loaded);
  const ask = async (questions: readonly Question[]) => {
    const input: DecisionInput = { state: jsonValueOf({ light: 'on' }), questions, mode };
    const { plans } = await profile.plan(input, 2048);
    return profile.scores(input, plans, await logitsOf(loaded.evaluator, plans));
  };
  const [alone] = await ask([SCORE]);
  const [, among] = await ask([NOUL, SCORE, choice(5)]);
  expect(among).toEqual(alone ?? []);
});

test('the embedded vocabulary has a single-token code for each of 255 options', async () => {
  const { tokenizer, facts } = model('the embedded vocabulary');
  const { cue, codes } = await findLabels(tokenizer);
  expect(codes.length).toBe(255);
  expect(new Set(codes.map((label) => label.token)).size).toBe(255);
  expect(
    codes
      .slice(0, 28)
      .map((label) => label.text)
      .join(' '),
  ).toBe('A B C D E F G H I J K L M N O P Q R S T U V W X Y Z AA AB');
  expect(codes.every((label) => !facts.vocabulary.special.has(label.token))).toBe(true);
  const answers = await tokenizer.tokenize(codes.map((label) => `Answer: ${label.text}`));
  expect(answers).toEqual(codes.map((label) => [...cue, label.token]));
});

test('255 options are read in one look', async () => {
  const { evaluator } = model('a wide chat model');
  const profile = await profileOf(model('a wide chat model'));
  const input: DecisionInput = { state: 'Seven.', questions: [choice(255)], mode: 'fast' };
  const { plans } = await profile.plan(input, 4096);
  expect(plans[0]?.branches[0]?.reads.length).toBe(1);
  const [scores] = profile.scores(input, plans, await logitsOf(evaluator, plans));
  expect(scores?.length).toBe(255);
  expect(new Set(scores).size).toBe(255);
});

test('more options than a vocabulary has codes are rejected, and as many are not', async () => {
  const profile = await profileOf(model('a generated chat model'));
  const plan = (count: number) =>
    profile.plan({ state: '', questions: [NOUL, choice(count)], mode: 'fast' }, 2048);
  expect((await plan(28)).plans.length).toBe(1);
  const rejected: unknown = await plan(29).catch((error: unknown) => error);
  expect(rejected).toBeInstanceOf(PlanRejected);
  expect(rejected).toMatchObject({ question: 1, message: expect.stringContaining('28') });
});

test('a vocabulary without letters cannot be used at all', async () => {
  const tokenizer = tokenizerOf((text) => Array.from(text, () => 1));
  await expect(codesV1({ tokenizer, vocabulary: NO_WORDS, chat_template: undefined })).rejects.toThrow(
    /single|one token/,
  );
});

describe.each(['the embedded vocabulary', 'a generated chat model', 'a leaky chat model'])('%s', (name) => {
  test('text never becomes a token of the template, whatever spellings it has', async () => {
    const loaded = model(name);
    const profile = await profileOf(loaded);
    const { special, texts } = loaded.facts.vocabulary;
    const spelling = fc.constantFrom(...[...special].map((id) => texts[id] ?? ''));
    const forged = fc
      .array(fc.oneof(spelling, fc.string({ unit: 'binary', maxLength: 6 })), { maxLength: 6 })
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        forged,
        forged,
        forged,
        fc.constantFrom(...MODES),
        async (state, instructions, description, mode) => {
          const questions: readonly Question[] = [
            { type: 'noul', instructions, yes: description, no: null },
            { type: 'score', instructions, levels: [description, 'other'] },
          ];
          const { plans } = await profile.plan({ state, questions, mode }, 100_000);
          for (const plan of plans) {
            const count = (tokens: readonly number[]) => tokens.filter((id) => special.has(id)).length;
            expect(count(plan.prefix)).toBe(1);
            for (const branch of plan.branches) expect(count(branch.tokens)).toBe(2);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe.each(MODES)('%s', (mode) => {
  test('a record longer than fits loses its middle, and the template stays whole', async () => {
    const { tokenizer } = model('the embedded vocabulary');
    const profile = await profileOf(model('the embedded vocabulary'));
    const words = Array.from({ length: 2000 }, (_, index) => `word${index}`).join(' ');
    const short = await profile.plan({ state: '', questions: [NOUL], mode }, 400);
    const { plans, record_tokens_left_out } = await profile.plan(
      { state: words, questions: [NOUL], mode },
      400,
    );
    const [whole = []] = await tokenizer.tokenize([words]);
    const opening = short.plans[0]?.prefix.length ?? 0;
    const [plan] = plans;
    if (plan === undefined) throw new Error('There is no plan.');
    // In fast mode the record is cut to whole steps.
    const step = mode === 'fast' ? Math.floor(400 / 64) : 1;
    expect(planPositions(plan)).toBeLessThanOrEqual(400);
    expect(planPositions(plan)).toBeGreaterThan(400 - step);
    expect(plan.prefix.slice(0, opening)).toEqual([...(short.plans[0]?.prefix ?? [])]);
    const record = plan.prefix.slice(opening);
    // Only the ends of so long a record are tokenized.
    const left_out = whole.length - record.length;
    expect(Math.abs((record_tokens_left_out ?? 0) - left_out)).toBeLessThan(left_out / 20);
    expect(short.record_tokens_left_out).toBe(0);
    const head = Math.floor(record.length / 2);
    expect(record.slice(0, head)).toEqual(whole.slice(0, head));
    expect(record.slice(head)).toEqual(whole.slice(whole.length - (record.length - head)));
    const cramped = profile.plan({ state: '', questions: [NOUL], mode }, 20);
    await expect(cramped).rejects.toBeInstanceOf(PlanRejected);
  });
});

test('in consistent mode the pull of the labels and of the order is divided out', async () => {
  const profile = await profileOf(model('the embedded vocabulary'));
  const questions = [NOUL, choice(3)];
  const input: DecisionInput = { state: 'The light is on.', questions, mode: 'consistent' };
  const { plans } = await profile.plan(input, 2048);
  expect(plans.map((plan) => plan.branches.length)).toEqual([2, 2, 2, 2]);
  // A model that only likes labels, and cannot read, knows nothing: its answer is even.
  const pull = (token: number) => (token % 17) / 3;
  const blind = plans.map((plan) =>
    plan.branches.map((branch) => branch.reads.map((read) => read.tokens.map(pull))),
  );
  for (const question of profile.scores(input, plans, blind)) {
    const [first = Number.NaN] = question.length === 1 ? [0] : question;
    for (const score of question) expect(score).toBeCloseTo(first, 10);
  }
  // One that likes labels and also finds the second option, wherever it is listed, says so.
  const finding = plans.map((plan, at) =>
    plan.branches.map((branch, order) =>
      branch.reads.map((read) =>
        read.tokens.map((token, option) => pull(token) + (at % 2 === 0 && option === 1 && order < 2 ? 2 : 0)),
      ),
    ),
  );
  const [noul, chosen] = profile.scores(input, plans, finding);
  expect(noul?.[0]).toBeCloseTo(-2, 10);
  expect((chosen?.[1] ?? 0) - (chosen?.[0] ?? 0)).toBeCloseTo(2, 10);
  expect((chosen?.[1] ?? 0) - (chosen?.[2] ?? 0)).toBeCloseTo(2, 10);
});
