import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { GgmlType, readGgufFileInfo } from 'node-llama-cpp';
import { openEngine } from '../../native/engine.ts';
import { WeightsError } from '../../native/errors.ts';
import { GgufDamaged, readGgufHeader } from '../../native/gguf-file.ts';
import { readHeader, readModelFacts } from '../../native/model-facts.ts';
import { EMBEDDED_WEIGHTS, weightsParts } from '../../native/weights.ts';
import { propertySeed } from '../ledger/support.ts';
import { rejection } from '../support/rejection.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { IMPLEMENTATIONS } from './addon/support.ts';
import { tinyModelBytes } from './support/gguf.ts';
import { TINY_CHAT } from './support/models.ts';

setDefaultTimeout(120_000);

/** Where GGUF counts tensors and entries, and where the first key's length is. */
const TENSOR_COUNT_AT = 8;
const ENTRY_COUNT_AT = 16;
const FIRST_KEY_AT = 24;
/** Counts and lengths of which no file has as many. */
const TOO_MANY: readonly bigint[] = [2n ** 31n, 2n ** 40n, 2n ** 62n, 2n ** 63n, 2n ** 64n - 1n];

const WHOLE = tinyModelBytes(TINY_CHAT);
const SEED = propertySeed('a header that is changed');
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, 'changed.gguf');
});
afterAll(() => directory[Symbol.asyncDispose]());

/** Writes the model with a number of 32 or 64 bits changed. */
async function writeChanged(at: number, number: bigint, bits: 32 | 64 = 64): Promise<void> {
  const changed = Buffer.from(WHOLE);
  if (bits === 64) changed.writeBigUInt64LE(number, at);
  else changed.writeUInt32LE(Number(number), at);
  await writeFile(path, changed);
}

/** Where the bytes behind a text are. */
const behind = (text: string): number => {
  const at = WHOLE.indexOf(text);
  expect(at).toBeGreaterThan(0);
  return at + text.length;
};

describe('a file as it should be', () => {
  test.each(weightsParts(EMBEDDED_WEIGHTS))('is read as node-llama-cpp reads it: %s', async (part) => {
    const { metadata, tensors } = await readGgufHeader(part, () => true);
    const oracle = await readGgufFileInfo(part, {
      sourceType: 'filesystem',
      spliceSplitFiles: false,
      logWarnings: false,
    });
    expect(tensors).toEqual(
      (oracle.tensorInfo ?? []).map(({ name, dimensions, ggmlType }) => ({
        name,
        dimensions: dimensions.map(Number),
        type: ggmlType,
      })),
    );
    expect(tensors.length).toBeGreaterThan(40);
    expect(tensors.some(({ type }) => type === GgmlType.Q8_0)).toBe(true);
    const nested = (key: string): unknown =>
      key.split('.').reduce<unknown>((value, name) => Object(value)[name], oracle.metadata);
    for (const [key, value] of metadata) expect([key, nested(key)]).toEqual([key, value]);
  });

  test('gives no array that is not asked for', async () => {
    await writeFile(path, WHOLE);
    const { metadata } = await readHeader(path, (key) => key === 'tokenizer.ggml.token_type');
    expect(metadata.get('tokenizer.ggml.tokens')).toBeNull();
    expect(metadata.get('tokenizer.ggml.token_type')).toBeArray();
  });
});

describe('a count or a length that the file has no room for is refused before llama.cpp sees the file', () => {
  const places: readonly (readonly [string, number])[] = [
    ['tensors', TENSOR_COUNT_AT],
    ['entries', ENTRY_COUNT_AT],
    ['bytes of a key', FIRST_KEY_AT],
    ['bytes of a text', behind('general.name') + 4],
    ['items of an array of texts', behind('tokenizer.ggml.tokens') + 8],
    ['bytes of a text of an array', behind('tokenizer.ggml.tokens') + 16],
    ['bytes of a text of an array that is not read', behind('tokenizer.ggml.merges') + 16],
    ['items of an array of numbers', behind('tokenizer.ggml.token_type') + 8],
    ["bytes of a tensor's name", WHOLE.indexOf('output_norm.weight') - 8],
    ["a tensor's columns", behind('output_norm.weight') + 4],
    ["a tensor's offset", behind('output_norm.weight') + 4 + 8 + 4],
  ];

  test.each(places)('%s', async (_, at) => {
    for (const number of TOO_MANY) {
      await writeChanged(at, number);
      const refused = await rejection(openEngine({ model_path: path, gpu: false }));
      expect(refused).toBeInstanceOf(WeightsError);
      expect(String(refused)).toMatch(
        /changed\.gguf is not a usable GGUF model \([^\n]+\): download it again\.$/,
      );
    }
  });

  test("a tensor's dimensions", async () => {
    for (const number of [5n, 2n ** 31n, 2n ** 32n - 1n]) {
      await writeChanged(behind('output_norm.weight'), number, 32);
      expect(String(await rejection(openEngine({ model_path: path, gpu: false })))).toContain('dimensions');
    }
  });
});

test('an entry without a key is refused, over which llama.cpp would end the process', async () => {
  // The magic, version 3, no tensor, and one entry: a key of no bytes, and a number of 32 bits.
  const file = Buffer.alloc(4 + 4 + 8 + 8 + 8 + 4 + 4);
  file.write('GGUF');
  file.writeUInt32LE(3, 4);
  file.writeBigUInt64LE(1n, ENTRY_COUNT_AT);
  file.writeUInt32LE(4, FIRST_KEY_AT + 8);
  await writeFile(path, file);
  expect(String(await rejection(openEngine({ model_path: path, gpu: false })))).toContain('a key is empty');
});

test('whatever is changed in a header, it is read to its end or refused, within the size of the file', async () => {
  const header_bytes = WHOLE.length - 200_000;
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: TENSOR_COUNT_AT, max: Math.max(header_bytes, 20_000) }),
      fc.oneof(fc.constantFrom(...TOO_MANY), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
      async (at, number) => {
        await writeChanged(at, number);
        const read = await readGgufHeader(path, () => true).catch((error: unknown) => error);
        if (read instanceof GgufDamaged) return;
        if (read instanceof Error || typeof read !== 'object' || read === null) throw read;
        // A key that is changed is read, and so is a number. What is kept is never more than the file holds.
        expect(
          JSON.stringify(read, (_, value) => (typeof value === 'bigint' ? 0 : value)).length,
        ).toBeLessThan(8 * WHOLE.length);
      },
    ),
    { seed: SEED, numRuns: 500 },
  );
});

test.each([10, 11, 6])('a context length of the type %d is refused in a sentence', async (type) => {
  const key = 'llama.context_length';
  const at = behind(key);
  // Its type and the value; one of 64 bits needs four bytes more.
  const value = Buffer.alloc(type === 6 ? 4 : 8);
  if (type === 6) value.writeFloatLE(Number.NaN);
  else value.writeBigUInt64LE(2048n);
  const type_bytes = Buffer.alloc(4);
  type_bytes.writeUInt32LE(type);
  await writeFile(path, Buffer.concat([WHOLE.subarray(0, at), type_bytes, value, WHOLE.subarray(at + 8)]));
  const refused = await rejection(openEngine({ model_path: path, gpu: false }));
  expect(refused).toBeInstanceOf(WeightsError);
  expect(String(refused)).toContain('does not say for how many tokens it was made');
});

/** A text of the model's file made this long, with what clears a terminal, and its length with it. */
function lengthened(text: string): Buffer {
  const at = WHOLE.indexOf(text) - 8;
  const long = Buffer.from(`${text}${'\u001b[2J\n'.repeat(100_000)}`);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(long.length));
  return Buffer.concat([WHOLE.subarray(0, at), length, long, WHOLE.subarray(at + 8 + text.length)]);
}

describe.each(IMPLEMENTATIONS)('messages of the %s evaluator', (evaluator) => {
  test.each([
    [
      "a tensor's name",
      () => {
        const whole = lengthened('output_norm.weight');
        // How many dimensions it has.
        whole.writeUInt32LE(9, whole.lastIndexOf('[2J\n') + 4);
        return whole;
      },
    ],
    ['a kind of tokenizer', () => lengthened('gpt2')],
    [
      'a key that is there twice',
      () => {
        const whole = lengthened('general.name');
        const at = whole.indexOf('general.name') - 8;
        const entry = whole.subarray(at, whole.indexOf('llama.context_length') - 8);
        const counted = Buffer.concat([whole.subarray(0, at), entry, whole.subarray(at)]);
        counted.writeBigUInt64LE(counted.readBigUInt64LE(ENTRY_COUNT_AT) + 1n, ENTRY_COUNT_AT);
        return counted;
      },
    ],
    [
      'a key of an unknown type',
      () => {
        const whole = lengthened('llama.context_length');
        whole.writeUInt32LE(99, whole.indexOf('\n\u0004\u0000\u0000\u0000') + 1);
        return whole;
      },
    ],
  ])('quote no more than the beginning of %s, on one line', async (_, bytes) => {
    await writeFile(path, bytes());
    const refused = await rejection(openEngine({ model_path: path, gpu: false, evaluator }));
    expect(String(refused)).toMatch(/^[^\p{C}]{20,1000}$/u);
  });
});

test('a damaged later part is refused too', async () => {
  const [first = '', second = ''] = weightsParts(join(directory.path, 'm-00001-of-00002.gguf'));
  await writeFile(first, WHOLE);
  await writeChanged(ENTRY_COUNT_AT, 2n ** 62n);
  await writeFile(second, await Bun.file(path).bytes());
  expect(String(await rejection(openEngine({ model_path: first, gpu: false })))).toContain(
    'm-00002-of-00002.gguf is not a usable GGUF model',
  );
  expect((await readModelFacts(first)).pre_tokenizer.model).toBe('gpt2');
});
