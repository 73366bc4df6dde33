import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { readGgufFileInfo } from 'node-llama-cpp';
import { openPlanner, openScoringPlanner, WeightsError } from '../../native/engine.ts';
import { healthProbeInput } from '../../src/served-models/health-probe.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { IMPLEMENTATIONS } from './addon/support.ts';
import { withTensors, writeTinyModel } from './support/gguf.ts';
import { TINY_CHAT } from './support/models.ts';

setDefaultTimeout(120_000);

/** Where a GGUF file has the number of its tensors. */
const TENSOR_COUNT_AT = 8;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let whole: string;
let vocabulary_only: string;
beforeAll(async () => {
  directory = await temporaryDirectory();
  whole = join(directory.path, 'whole.gguf');
  vocabulary_only = join(directory.path, 'vocabulary.gguf');
  await writeTinyModel(whole, TINY_CHAT);
  const { metadataSize } = await readGgufFileInfo(whole, { sourceType: 'filesystem', logWarnings: false });
  const header = new Uint8Array(await Bun.file(whole).arrayBuffer(), 0, metadataSize).slice();
  new DataView(header.buffer).setBigUint64(TENSOR_COUNT_AT, 0n, true);
  await Bun.write(vocabulary_only, withTensors(header, []));
});
afterAll(() => directory[Symbol.asyncDispose]());

describe.each(IMPLEMENTATIONS.map((name) => [name]))('with the tokenizer of %s', (evaluator) => {
  test('a file with a vocabulary and no tensors gives the same plans as the whole model', async () => {
    const options = { gpu: false, evaluator } as const;
    const planner = await openPlanner({ ...options, model_path: whole });
    const scoring = await openScoringPlanner({ ...options, model_path: vocabulary_only });
    for (const mode of ['fast', 'consistent'] as const) {
      expect(await scoring.plan(healthProbeInput(mode))).toEqual(await planner.plan(healthProbeInput(mode)));
    }
    expect(scoring.profile).toBe('codes-v1');
    await scoring.close();
    await planner.close();
    await expect(scoring.plan(healthProbeInput('fast'))).rejects.toThrow('closed');
  });

  test('a token has a word where it is nothing but one, with a space before it or without', async () => {
    const scoring = await openScoringPlanner({ gpu: false, evaluator, model_path: vocabulary_only });
    const { plans } = await scoring.plan(healthProbeInput('fast'));
    const labels = plans[0]?.branches[0]?.reads[0]?.tokens ?? [];
    expect(labels.map((token) => scoring.wordOf(token))).toEqual(['Yes', 'No']);
    const words = (plans[0]?.prefix ?? []).map((token) => scoring.wordOf(token));
    expect(words.every((word) => word === null || /^[A-Za-z]+$/.test(word))).toBe(true);
    // A control token is no word, though its name has letters.
    expect([0, 1, 2].map((token) => scoring.wordOf(token))).toEqual([null, null, null]);
    await scoring.close();
  });
});

test('another file than was expected is refused', async () => {
  const expected = { weights_sha256: '0'.repeat(64), profile: 'codes-v1' };
  const opened = openScoringPlanner({ gpu: false, model_path: vocabulary_only, expected });
  const refused = await opened.catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(WeightsError);
  // It is no model's own weights, which a reload would take.
  expect(String(refused)).toEndWith('put the file back, or remove the model and add it again.');
});
