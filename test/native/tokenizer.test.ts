import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { openPlanner } from '../../native/engine.ts';
import { EvaluationFailed } from '../../native/errors.ts';
import { createAddonTokenizer } from '../../native/evaluators/addon/addon-tokenizer.ts';
import type { ModelTokenizer } from '../../native/model-tokenizer.ts';
import type { DecisionInput } from '../../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS } from '../../native/weights.ts';
import type { Question } from '../../src/questions/question.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { describeAddon, IMPLEMENTATIONS } from './addon/support.ts';
import { ggufBytes, writeTinyModel } from './support/gguf.ts';
import { llamaTokenizer, loadedTokenizer, MARKER_CONTROL } from './support/models.ts';

// The addon is built first where it is not yet.
setDefaultTimeout(180_000);

async function openTokenizer(
  kind: (typeof IMPLEMENTATIONS)[number],
  model_path = EMBEDDED_WEIGHTS,
): Promise<ModelTokenizer> {
  if (kind === 'llama') return (await llamaTokenizer(model_path)).tokenizer;
  return await createAddonTokenizer({ model_path, gpu: false });
}

/** A text of so many characters that is like no other. */
function longText(seed: number, characters: number): string {
  const words = Array.from({ length: characters / 4 }, (_, index) => ((seed + 1) * (index + 7)).toString(36));
  return words.join(' ').slice(0, characters);
}

/** A request of nearly a megabyte, whose questions have no text in common. */
function largeRequest(): DecisionInput {
  const questions = Array.from(
    { length: 64 },
    (_, index): Question => ({
      type: 'noul',
      instructions: longText(index, 15_000),
      yes: undefined,
      no: undefined,
    }),
  );
  return { state: longText(64, 15_000), questions, mode: 'consistent' };
}

let reference: ModelTokenizer;
beforeAll(async () => {
  reference = await loadedTokenizer(EMBEDDED_WEIGHTS);
});
afterAll(() => reference.close());

describeAddon("the addon's own byte-pair encoding", () => {
  let addon: ModelTokenizer;
  beforeAll(async () => {
    addon = await openTokenizer('addon');
  });
  afterAll(() => addon.close());

  test('knows of every character whether it is a letter, a number or a space, as llama.cpp does', async () => {
    const in_all_places = (character: string) =>
      `a${character}b 1${character}${character} ${character} ${character}!${character}'s  ${character}'ll\n\n${character}\n`;
    const is_surrogate = (code_point: number) => code_point >= 0xd800 && code_point <= 0xdfff;
    // The planes from U+40000 on have no letters: one character in sixteen stands for the others.
    const characters = Array.from({ length: 0x110000 }, (_, code_point) => code_point)
      .filter((code_point) => !is_surrogate(code_point) && (code_point < 0x40000 || code_point % 16 === 0))
      .map((code_point) => String.fromCodePoint(code_point));
    const length = 4096;
    const texts = Array.from({ length: Math.ceil(characters.length / length) }, (_, index) =>
      characters
        .slice(index * length, (index + 1) * length)
        .map(in_all_places)
        .join(''),
    );
    const ours = await addon.tokenize(texts);
    const theirs = await reference.tokenize(texts);
    const differing = texts.flatMap((_, index) =>
      Bun.deepEquals(ours[index], theirs[index]) ? [] : [characters[index * length]?.codePointAt(0)],
    );
    expect(differing).toEqual([]);
  });

  test.each([
    ['no tokens of its maker', []],
    ['tokens of its maker, which are found in any text', ['bab', '<tool>']],
  ])("a vocabulary of GPT-2's kind with %s", async (_, maker_defined) => {
    await using directory = await temporaryDirectory();
    const model_path = join(directory.path, 'tiny.gguf');
    const words = ['  ', ' 12', "'s", ' \n', 'aba', 'ab', '中中', ' the', '?!'];
    await writeTinyModel(model_path, { control: MARKER_CONTROL, words, maker_defined });
    const ours = await openTokenizer('addon', model_path);
    const theirs = await loadedTokenizer(model_path);
    const part = fc.constantFrom(
      ...words,
      ...MARKER_CONTROL,
      'a',
      'b',
      '1',
      '2',
      ' ',
      '\n',
      "'",
      '中',
      '\u0004',
      '<tool>',
    );
    const text = fc.array(part, { maxLength: 20 }).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(text, async (one) => {
        expect(await ours.tokenize([one])).toEqual(await theirs.tokenize([one]));
      }),
      { numRuns: 1000 },
    );
    await ours.close();
    await theirs.close();
  });

  test.each([
    ['one letter', 'a'],
    ['syllables', 'la'],
    ['spaces', ' '],
    ['line breaks', '\r\n'],
    ['punctuation', '?!'],
    ['digits', '0123456789'],
    ['letters beyond ASCII', 'é中'],
  ])('a text that repeats %s 20,000 times', async (_, part) => {
    const text = part.repeat(20_000);
    expect(await addon.tokenize([text])).toEqual(await reference.tokenize([text]));
  });
});

describeAddon('weights without a vocabulary', () => {
  test('are refused before the first text', async () => {
    await using directory = await temporaryDirectory();
    const model_path = join(directory.path, 'mute.gguf');
    await writeFile(
      model_path,
      ggufBytes(
        {
          'general.architecture': { type: 'string', value: 'llama' },
          'llama.context_length': { type: 'u32', value: 64 },
          'llama.embedding_length': { type: 'u32', value: 32 },
          'llama.block_count': { type: 'u32', value: 1 },
          'llama.feed_forward_length': { type: 'u32', value: 32 },
          'llama.attention.head_count': { type: 'u32', value: 2 },
          'llama.attention.layer_norm_rms_epsilon': { type: 'f32', value: 1e-5 },
          'llama.vocab_size': { type: 'u32', value: 10 },
          'tokenizer.ggml.model': { type: 'string', value: 'no_vocab' },
        },
        [],
      ),
    );
    await expect(createAddonTokenizer({ model_path, gpu: false })).rejects.toThrow('no vocabulary');
  });
});

describe.each(IMPLEMENTATIONS)('%s', (kind) => {
  test('a batch has the tokens of its texts one by one', async () => {
    const tokenizer = await openTokenizer(kind);
    const part = fc.oneof(
      fc.constantFrom(...MARKER_CONTROL, '<', '|yes|>', '\ud83d', '\ude00', '\0', ' ', '\r\n', 'e\u0301'),
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.string({ unit: 'grapheme', maxLength: 8 }),
      fc.lorem(),
      fc.constantFrom("I'm", "it's", "don't", "we're", "I've", "she'll", "he'd", "'", '\n\n  ', '10.5', '½'),
    );
    const text = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 12 }), async (texts) => {
        const expected = [...(await reference.tokenize(texts))];
        const [batch, others] = await Promise.all([
          tokenizer.tokenize(texts),
          tokenizer.tokenize(texts.toReversed()),
        ]);
        expect(batch).toEqual(expected);
        expect(others).toEqual(expected.toReversed());
        const apart = await Promise.all(texts.map((one) => tokenizer.tokenize([one])));
        expect(apart.flat()).toEqual(expected);
      }),
      { numRuns: 300 },
    );
    expect(await tokenizer.tokenize([])).toEqual([]);
    expect(await tokenizer.tokenize([''])).toEqual([[]]);
    await tokenizer.close();
  });

  test('a long batch has the tokens of its texts, and ordinary ones do not wait for it', async () => {
    const tokenizer = await openTokenizer(kind);
    // So many that they take longer than a thread with an ordinary one may have to wait for its turn.
    const texts = Array.from({ length: 128 }, (_, index) => longText(index, 15_000));
    const done: string[] = [];
    const large = tokenizer.tokenize(texts).finally(() => done.push('large'));
    const small = Array.from({ length: 4 }, () =>
      tokenizer.tokenize(['Is it late?']).finally(() => done.push('small')),
    );
    await Promise.all(small);
    expect(await large).toEqual(await reference.tokenize(texts));
    expect(done).toEqual(['small', 'small', 'small', 'small', 'large']);
    await tokenizer.close();
  });

  test('closing while texts are tokenized rejects what is not done, and frees the model', async () => {
    // So many that none of them is done, however late this thread gets its turn.
    const texts = Array.from({ length: 256 }, (_, index) => longText(index, 15_000));
    const closing = await openTokenizer(kind);
    const settled = Promise.allSettled([1, 2, 3].map(() => closing.tokenize(texts)));
    // Some of the work has begun.
    await closing.tokenize(['Is it late?']);
    await Promise.all([closing.close(), closing.close()]);
    for (const outcome of await settled) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(EvaluationFailed) });
    }
    await expect(closing.tokenize(texts)).rejects.toThrow(new EvaluationFailed('The model has been closed.'));
  });

  test('the event loop turns while a request of a megabyte is planned, and closing ends the planning', async () => {
    const input = largeRequest();
    const planner = await openPlanner({ evaluator: kind, gpu: false });
    let is_planned = false;
    const planning = planner.plan(input).finally(() => {
      is_planned = true;
    });
    let turns = 0;
    while (!is_planned) {
      await new Promise(setImmediate);
      turns += 1;
    }
    // One turn passes also when all of the work is done at once.
    expect(turns).toBeGreaterThan(10);
    expect((await planning).plans).toHaveLength(64);

    const [ended] = await Promise.allSettled([planner.plan(input), planner.close()]);
    expect(ended).toMatchObject({ status: 'rejected', reason: expect.any(EvaluationFailed) });
    await expect(planner.plan(input)).rejects.toBeInstanceOf(EvaluationFailed);
  });
});
