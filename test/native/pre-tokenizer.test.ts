import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { openEngine } from '../../native/engine.ts';
import { PlanRejected, WeightsError } from '../../native/errors.ts';
import { createAddonTokenizer } from '../../native/evaluators/addon/addon-tokenizer.ts';
import type { PlanEvaluator } from '../../native/plan-evaluator.ts';
import { rejectDeepRecursion, rejectSlowRuns, WORD_CHARACTERS_MAX } from '../../native/pre-tokenizer.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { describeAddon, IMPLEMENTATIONS } from './addon/support.ts';
import { writeTinyModel } from './support/gguf.ts';
import { llamaTokenizer, MARKER_CONTROL, TINY_CHAT, TINY_MARKERS } from './support/models.ts';

// The addon is built first where it is not yet.
setDefaultTimeout(300_000);

/** One of each kind that llama.cpp splits text for without recursion. */
const WITHOUT_RECURSION = 'gpt-2 smollm llama3 qwen2 qwen35 kimi-k2 laguna gemma4 sarvam-moe'.split(' ');
/** Of those whose words end where a character of another class follows, one of each kind. */
const BY_CLASS =
  'tekken gpt-4o granite-embed-multi-97m deepseek-llm deepseek-coder deepseek-v3 spark2_5 youtu default falcon chameleon tiny_aya superbpe bailingmoe seed-coder ufakzeka afmoe minicpm5 jais-2'.split(
    ' ',
  );
/** The others. */
const OTHERS = ['bloom', 'viking', 'exaone-moe'];
const PATTERNS = [...BY_CLASS, ...OTHERS];

const MEGABYTE = 2 ** 20;
const RUNS = {
  letters: 'a',
  digits: '7',
  spaces: ' ',
  'combining marks': '\u0301',
  emoji: '😀',
  'line breaks': '\n',
} as const;
/** These are given a megabyte of every run; the others an eighth, which overflows an ordinary stack as well. */
const THOROUGH = ['tekken', 'gpt-4o', 'deepseek-llm', 'bloom'];

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const modelPath = (pre_tokenizer: string) => join(directory.path, `${pre_tokenizer}.gguf`);
beforeAll(async () => {
  directory = await temporaryDirectory();
  for (const pre_tokenizer of [...WITHOUT_RECURSION, ...PATTERNS])
    await writeTinyModel(modelPath(pre_tokenizer), { ...TINY_CHAT, pre_tokenizer });
});
afterAll(() => directory[Symbol.asyncDispose]());

interface Text {
  readonly part: string;
  readonly times: number;
}

/**
 * How many tokens each text has, or null where it is refused, for each pre-tokenizer. Fails when the process that
 * tokenizes them ends, and says behind which pre-tokenizer.
 */
async function countTokens(
  kind: PlanEvaluator['kind'],
  pre_tokenizers: readonly string[],
  textsOf: (pre_tokenizer: string) => readonly Text[],
): Promise<Readonly<Record<string, unknown>>> {
  const jobs = pre_tokenizers.map((name) => ({ name, model_path: modelPath(name), texts: textsOf(name) }));
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'support', 'tokenize-child.ts'), kind], {
    stdin: new Blob([JSON.stringify(jobs)]),
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const counted = output.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  const last = counted.at(-1)?.[0];
  expect({
    code: await child.exited,
    signal: child.signalCode,
    last,
    errors: errors.slice(-2000),
  }).toMatchObject({ code: 0, signal: null });
  return Object.fromEntries(counted);
}

describe.each(IMPLEMENTATIONS)('long runs of one kind of character, through %s', (kind) => {
  const ALL = [...WITHOUT_RECURSION, ...PATTERNS];
  const runsOf = (pre_tokenizer: string) =>
    Object.entries(RUNS).map(([run, part]) => {
      const bytes = THOROUGH.includes(pre_tokenizer) ? MEGABYTE : MEGABYTE / 8;
      return { run, part, bytes, times: bytes / Buffer.byteLength(part) };
    });
  let counts: Readonly<Record<string, unknown>>;
  beforeAll(async () => {
    counts = await countTokens(kind, ALL, runsOf);
  });

  test.each(ALL)('%s', (pre_tokenizer) => {
    const expected = runsOf(pre_tokenizer).map(({ run, bytes }) => {
      // Both refuse texts on which patterns would take minutes or hours.
      if (pre_tokenizer === 'superbpe' && run === 'digits') return null;
      if (['deepseek-llm', 'jais-2'].includes(pre_tokenizer) && run === 'spaces') return null;
      if (kind === 'llama' && PATTERNS.includes(pre_tokenizer)) return null;
      // These write a character that has no token as bytes of their own, which the generated vocabulary lacks.
      return ['gemma4', 'sarvam-moe'].includes(pre_tokenizer) ? expect.any(Number) : bytes;
    });
    expect(counts[pre_tokenizer]).toEqual(expected);
  });
});

test("what is not refused fits on the main thread's stack", async () => {
  const runs = Array.from("aA71 \n\t!/'éçı中ก。、\u0301\u0378\u1680\u200b\u3000\u00a0½²");
  const repeated = (part: string) => ({ part, times: Math.floor(WORD_CHARACTERS_MAX / part.length) });
  const texts = [
    ...runs.map(repeated),
    // Two words that one pattern matches together, and words that alternate.
    ...['aB', 'a b ', "a'", '!\n', 'é1', 'éa', '\u0378a', '<sentinel:1'].map(repeated),
    { part: `${'!'.repeat(WORD_CHARACTERS_MAX)}${'\n'.repeat(WORD_CHARACTERS_MAX)}`, times: 1 },
    { part: `${' '.repeat(WORD_CHARACTERS_MAX)}${'a'.repeat(WORD_CHARACTERS_MAX)}`, times: 1 },
    { part: `<sentinel:${'1'.repeat(WORD_CHARACTERS_MAX)}`, times: 1 },
    { part: 'The record says 12 things, as records do. ', times: 3000 },
  ];
  const counts = await countTokens('llama', PATTERNS, () => texts);
  for (const pre_tokenizer of PATTERNS) {
    const of_one = counts[pre_tokenizer];
    expect(Array.isArray(of_one) ? of_one.at(-1) : of_one).toBeGreaterThan(10_000);
  }
});

describeAddon("the addon's tokens are those of llama.cpp", () => {
  test.each([...WITHOUT_RECURSION, ...PATTERNS])('%s', async (pre_tokenizer) => {
    const model_path = modelPath(pre_tokenizer);
    const { tokenizer: llama } = await llamaTokenizer(model_path);
    const addon = await createAddonTokenizer({ model_path, gpu: false });
    const part = fc.oneof(
      fc.lorem(),
      fc.constantFrom(
        "it's",
        'Yes',
        '2024-11-05',
        '1234567',
        '\n\n',
        '  ',
        '中文，字。',
        'caf\u0301e',
        '😀',
        'A AB',
        '½',
      ),
      fc.string({ unit: 'grapheme', maxLength: 8 }),
    );
    // Short texts are tokenized on the caller's thread, longer ones on one of their own.
    const text = fc.array(part, { maxLength: 200, size: 'max' }).map((parts) => parts.join(' '));
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 4 }), async (texts) => {
        expect(await addon.tokenize(texts)).toEqual(await llama.tokenize(texts));
      }),
      { numRuns: 20 },
    );
    await addon.close();
    await llama.close();
  });
});

describe('texts that are refused', () => {
  const check = (pre: string, model = 'gpt2') => rejectDeepRecursion({ model, pre });
  const long = 'a'.repeat(WORD_CHARACTERS_MAX + 1);

  test('a word above the limit is, and none of the limit', () => {
    for (const pre of [...PATTERNS, 'a pre-tokenizer of later days']) {
      expect(() => check(pre)(long)).toThrow(PlanRejected);
      expect(() => check(pre)(`short words ${long}`)).toThrow(PlanRejected);
      expect(() => check(pre)(long.slice(1))).not.toThrow();
      expect(() => check(pre)(`\n${long.slice(1)}\n`)).not.toThrow();
    }
    expect(() => rejectDeepRecursion({ model: 'gpt2', pre: undefined })(long)).toThrow(PlanRejected);
    for (const pre of WITHOUT_RECURSION) expect(() => check(pre)(long)).not.toThrow();
    expect(() => check('tekken', 'llama')(long)).not.toThrow();
  });

  test('characters beyond ASCII may belong to any word', () => {
    const half = WORD_CHARACTERS_MAX / 2;
    const wide = (count: number) => '\u0378'.repeat(count);
    for (const pre of PATTERNS) {
      expect(() => check(pre)(`a${wide(half)}${'a'.repeat(half)}`)).toThrow(PlanRejected);
      expect(() => check(pre)(`1${wide(half)}${'a'.repeat(half + 1)}`)).toThrow(PlanRejected);
      expect(() => check(pre)('\u0378a'.repeat(half + 1))).toThrow(PlanRejected);
      // But none of them is a space.
      expect(() => check(pre)(`${wide(half)}\n`.repeat(9))).not.toThrow();
    }
  });

  test('ordinary texts are not, however long', () => {
    const texts = [
      'The parcel is late and nobody calls. '.repeat(5000),
      '包裹迟到了，没有人打电话。请问它在哪里？'.repeat(5000),
      '荷物が遅れています。誰も電話をくれません、どうして？'.repeat(5000),
      'พัสดุมาช้า ไม่มีใครโทรมา. '.repeat(5000),
      'Посылка опаздывает, и никто не звонит. '.repeat(5000),
      'الطرد متأخر ولا أحد يتصل. '.repeat(5000),
      Array.from({ length: 20_000 }, (_, index) => `row ${index}: ${(index * 7919).toString(36)}`).join('\n'),
    ];
    const compact = JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id, sum: id * 17.5 })));
    const base64 = Buffer.from(Uint8Array.from({ length: 60_000 }, (_, index) => (index * index) >> 3));
    for (const pre of PATTERNS) {
      for (const text of texts) expect(() => check(pre)(text)).not.toThrow();
    }
    for (const pre of BY_CLASS) {
      expect(() => check(pre)(compact)).not.toThrow();
      expect(() => check(pre)(base64.toString('base64'))).not.toThrow();
    }
  });

  test('spaces and digits are where a pattern would take their square of time', () => {
    const spaces = rejectSlowRuns({ model: 'gpt2', pre: 'deepseek-llm' });
    const digits = rejectSlowRuns({ model: 'gpt2', pre: 'superbpe' });
    expect(() => spaces(`a${' '.repeat(257)}1`)).toThrow(PlanRejected);
    expect(() => spaces(`a${'\u3000 '.repeat(129)}1`)).toThrow(PlanRejected);
    expect(() => spaces(`${' '.repeat(256)}\n`.repeat(9))).not.toThrow();
    expect(() => spaces('1'.repeat(1000))).not.toThrow();
    expect(() => digits('1'.repeat(257))).toThrow(PlanRejected);
    expect(() => digits('1,'.repeat(257))).not.toThrow();
    expect(() => rejectSlowRuns({ model: 'gpt2', pre: 'tekken' })('1'.repeat(1000))).not.toThrow();
  });

  test.each(IMPLEMENTATIONS)(
    'a request is refused with a sentence, and the next is planned: %s',
    async (kind) => {
      const model_path = modelPath('deepseek-llm');
      const engine = await openEngine({ model_path, evaluator: kind, gpu: false, threads: 1 });
      const ask = (state: string) =>
        engine.plan({
          state,
          questions: [{ type: 'noul', instructions: 'Is it late?', yes: undefined, no: undefined }],
          mode: 'fast',
        });
      await expect(ask(`It is late.${' '.repeat(1000)}1`)).rejects.toThrow(
        new PlanRejected('A text has a run of more than 256 spaces, which this model cannot read.', null),
      );
      expect((await ask('It is late.')).plans).toHaveLength(1);
      await engine.close();
    },
  );
});

test('a model whose tokenizer ends the process on two spaces is not opened', async () => {
  const model_path = modelPath('whitespace');
  await writeTinyModel(model_path, { ...TINY_CHAT, pre_tokenizer: 'whitespace' });
  const opened: unknown = await openEngine({ model_path, gpu: false }).catch((error: unknown) => error);
  expect(opened).toBeInstanceOf(WeightsError);
  expect(String(opened)).toContain(model_path);
});

test('a model in which two tokens have the same text is not opened, because llama.cpp would end the process', async () => {
  const model_path = modelPath('equal');
  await writeTinyModel(model_path, {
    ...TINY_MARKERS,
    control: [...MARKER_CONTROL, '<|twice|>', '<|twice|>'],
  });
  const opened: unknown = await openEngine({ model_path, gpu: false }).catch((error: unknown) => error);
  expect(opened).toBeInstanceOf(WeightsError);
  expect(String(opened)).toContain('two tokens of the same text');
});
