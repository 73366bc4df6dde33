import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readFile, truncate, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { openEngine } from '../../native/engine.ts';
import { WeightsError } from '../../native/errors.ts';
import { EMBEDDED_WEIGHTS, verifyWeights, weightsParts } from '../../native/weights.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { tinyModelBytes, writeTinyModel } from './support/gguf.ts';
import { TINY_MARKERS } from './support/models.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory[Symbol.asyncDispose]());

/** A new directory for one test. */
async function folder(name: string): Promise<string> {
  const path = join(directory.path, name);
  await mkdir(path);
  return path;
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error('It was not refused.'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(WeightsError);
  const message = error instanceof Error ? error.message : '';
  // One sentence that says what to do: it has a colon before the remedy, one full stop at its end, and no line break.
  expect(message).toMatch(/^[^\n]+: [^\n]+\.$/);
  return message;
}

function sha256(...pieces: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

describe('parts', () => {
  test('of a split file are all found by the first', () => {
    expect(weightsParts('/models/m-00001-of-00003.gguf')).toEqual([
      '/models/m-00001-of-00003.gguf',
      '/models/m-00002-of-00003.gguf',
      '/models/m-00003-of-00003.gguf',
    ]);
    expect(weightsParts('/models/one.gguf')).toEqual(['/models/one.gguf']);
  });

  test('are files: a folder is refused with what to give instead', async () => {
    const path = await folder('weights-in-it');
    expect(await refusal(verifyWeights(path))).toBe(
      `The weights file ${path} cannot be read (EISDIR): it is a folder, so give a file in it, of several parts the first.`,
    );
  });

  test('other than the first are refused by naming the first', () => {
    expect(() => weightsParts('/models/m-00002-of-00003.gguf')).toThrow('m-00001-of-00003.gguf');
  });
});

test('the embedded weights are those that their checksums name', async () => {
  const weights = await verifyWeights(EMBEDDED_WEIGHTS);
  expect(weights.parts.length).toBe(2);
  const contents = await Promise.all(weights.parts.map((part) => readFile(part)));
  expect(weights.sha256).toBe(sha256(...contents));
  const sums = await readFile(join(dirname(EMBEDDED_WEIGHTS), 'SHA256SUMS'), 'utf8');
  for (const [index, content] of contents.entries()) {
    expect(sums).toContain(`${sha256(content)}  ${basename(weights.parts[index] ?? '')}`);
  }
});

describe('with checksums beside them', () => {
  /** A copy of the embedded weights with one thing done to its second part. */
  async function spoiled(name: string, spoil: (second: string) => Promise<void>): Promise<string> {
    const copy = await folder(name);
    const parts = weightsParts(EMBEDDED_WEIGHTS);
    for (const path of [...parts, join(dirname(EMBEDDED_WEIGHTS), 'SHA256SUMS')]) {
      await copyFile(path, join(copy, basename(path)));
      await chmod(join(copy, basename(path)), 0o644);
    }
    await spoil(join(copy, basename(parts[1] ?? '')));
    return join(copy, basename(EMBEDDED_WEIGHTS));
  }

  test('a missing part is named', async () => {
    const message = await refusal(verifyWeights(await spoiled('missing', unlink)));
    expect(message).toContain('00002-of-00002.gguf is missing');
  });

  test('a cut part is named', async () => {
    const message = await refusal(
      verifyWeights(await spoiled('cut', (second) => truncate(second, 1_000_000))),
    );
    expect(message).toContain('00002-of-00002.gguf is cut or corrupt');
  });

  test('one changed bit is found', async () => {
    const path = await spoiled('changed', async (second) => {
      const content = await readFile(second);
      content[5_000_000] = (content[5_000_000] ?? 0) ^ 1;
      await writeFile(second, content);
    });
    expect(await refusal(verifyWeights(path))).toContain('00002-of-00002.gguf is cut or corrupt');
  });
});

describe('an operator’s own file', () => {
  test('needs no checksums, and is hashed', async () => {
    const path = join(await folder('own'), 'tiny.gguf');
    await writeTinyModel(path, TINY_MARKERS);
    expect(await verifyWeights(path)).toEqual({
      first: path,
      parts: [path],
      sha256: sha256(tinyModelBytes(TINY_MARKERS)),
      file_identity: expect.any(String),
    });
  });

  test('has its checksum checked where there is one, and others are no matter', async () => {
    const own = await folder('own-sums');
    const path = join(own, 'tiny.gguf');
    await writeTinyModel(path, TINY_MARKERS);
    const right = sha256(tinyModelBytes(TINY_MARKERS));
    await writeFile(join(own, 'SHA256SUMS'), `${'0'.repeat(64)}  other.gguf\n${right} *tiny.gguf\n`);
    expect((await verifyWeights(path)).sha256).toBe(right);
    await writeFile(join(own, 'SHA256SUMS'), `${'0'.repeat(64)}  tiny.gguf\n`);
    expect(await refusal(verifyWeights(path))).toContain('copy or download it again');
  });

  test('that is missing, a directory, empty or no GGUF is refused by name', async () => {
    const own = await folder('bad');
    expect(await refusal(openEngine({ model_path: join(own, 'none.gguf') }))).toContain(
      'none.gguf is missing',
    );
    expect(await refusal(openEngine({ model_path: own }))).toContain(own);
    const empty = join(own, 'empty.gguf');
    await writeFile(empty, '');
    expect(await refusal(openEngine({ model_path: empty }))).toContain('empty.gguf is not a GGUF file');
    const zip = join(own, 'model.gguf');
    await writeFile(zip, `PK${'x'.repeat(100)}`);
    expect(await refusal(openEngine({ model_path: zip }))).toContain('model.gguf is not a GGUF file');
  });

  test.each([30, 1_000, 8_000, 20_000, 60_000, 200_000])(
    'cut after %d bytes is refused and does not end the process',
    async (bytes) => {
      const path = join(directory.path, `cut-${bytes}.gguf`);
      const whole = tinyModelBytes(TINY_MARKERS);
      expect(whole.length).toBeGreaterThan(bytes);
      await writeFile(path, whole.subarray(0, bytes));
      expect(await refusal(openEngine({ model_path: path, gpu: false }))).toContain(`cut-${bytes}.gguf`);
    },
  );

  test('with a spoiled header is refused and does not end the process', async () => {
    const whole = tinyModelBytes(TINY_MARKERS);
    for (const at of [4, 8, 16, 24, 40, 60]) {
      const path = join(directory.path, `spoiled-${at}.gguf`);
      const content = Buffer.from(whole);
      content.fill(0xff, at, at + 8);
      await writeFile(path, content);
      expect(await refusal(openEngine({ model_path: path, gpu: false }))).toContain(`spoiled-${at}.gguf`);
    }
  });

  test('is opened after all that', async () => {
    const path = join(directory.path, 'good.gguf');
    await writeTinyModel(path, TINY_MARKERS);
    const engine = await openEngine({ model_path: path, gpu: false });
    expect(engine.facts.profile).toStartWith('markers-v1');
    expect(engine.facts).toMatchObject({ context_tokens: 2048, device: 'cpu', temperatures: null });
    await engine.close();
  });
});
