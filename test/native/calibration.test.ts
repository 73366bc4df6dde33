import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import type { Calibration } from '../../native/calibration.ts';
import { calibrationPath, checkModel, EMBEDDED_WEIGHTS, openEngine } from '../../native/engine.ts';
import { WeightsError } from '../../native/errors.ts';
import type { DecisionInput } from '../../native/plan/profile.ts';
import type { Question } from '../../src/questions/question.ts';
import { applyTemperature, type TypeTemperatures, temperatureFor } from '../../src/questions/temperatures.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { writeTinyModel } from './support/gguf.ts';
import { TINY_MARKERS } from './support/models.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

const NOUL: Question = { type: 'noul', instructions: 'Is it on?', yes: undefined, no: undefined };

function score(levels: number): Question {
  return {
    type: 'score',
    instructions: 'How much?',
    levels: Array.from({ length: levels }, (_, index) => `${index}`),
  };
}

function choice(options: number): Question {
  return {
    type: 'choice',
    instructions: 'Which?',
    options: Array.from({ length: options }, (_, index) => ({ id: `${index}`, description: null })),
  };
}

const FAST: TypeTemperatures = {
  noul: 2,
  choice: [
    { most_options: 3, temperature: 1.5 },
    { most_options: 10, temperature: 4 },
  ],
  score: [{ most_options: 5, temperature: 0.5 }],
};
const CONSISTENT: TypeTemperatures = {
  noul: 8,
  choice: [{ most_options: 10, temperature: 16 }],
  score: [{ most_options: 5, temperature: 32 }],
};

function calibration(profile: string, weights_sha256 = '0'.repeat(64)): Calibration {
  const fitted_on = { cases_sha256: '1'.repeat(64), records: 1, questions: 1 };
  return {
    profile,
    weights_sha256,
    temperatures: { fast: FAST, consistent: CONSISTENT },
    fitted_on: { fast: fitted_on, consistent: fitted_on },
  };
}

test('the temperature is of the type, and of the first bucket that the options fit into', () => {
  expect(temperatureFor(NOUL, FAST)).toBe(2);
  expect([2, 3, 4, 10, 11, 255].map((options) => temperatureFor(choice(options), FAST))).toEqual([
    1.5, 1.5, 4, 4, 4, 4,
  ]);
  expect([2, 6].map((levels) => temperatureFor(score(levels), FAST))).toEqual([0.5, 0.5]);
});

test('calibration never changes the order of options', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 2, maxLength: 20 }),
      (scores) => {
        const applied = applyTemperature(scores, choice(scores.length), FAST);
        for (const [left, one] of scores.entries()) {
          for (const [right, other] of scores.entries()) {
            if (one > other) expect(applied[left]).toBeGreaterThanOrEqual(applied[right] ?? Number.NaN);
          }
        }
      },
    ),
  );
});

describe('beside the weights', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  let weights_sha256: string;
  let profile: string;
  beforeAll(async () => {
    directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, TINY_MARKERS);
    const engine = await openEngine({ model_path: path, gpu: false, threads: 1 });
    ({ weights_sha256, profile } = engine.facts);
    await engine.close();
  });
  afterAll(() => directory[Symbol.asyncDispose]());

  /** A model with this beside it. */
  async function beside(content: string): Promise<string> {
    const path = join(await mkdtemp(join(directory.path, 'm-')), 'tiny.gguf');
    await writeTinyModel(path, TINY_MARKERS);
    await writeFile(join(dirname(path), 'calibration.json'), content);
    return path;
  }

  test.each([
    ['fast', [2, 4, 0.5]],
    ['consistent', [8, 16, 32]],
  ] as const)('it divides the scores of the model that it was fitted on, %s', async (mode, temperatures) => {
    const input: DecisionInput = { state: 'x', questions: [NOUL, choice(4), score(3)], mode };
    const scoresOf = async (model_path: string) => {
      const engine = await openEngine({ model_path, gpu: false, threads: 1 });
      const scores = await engine.evaluate(await engine.plan(input), { scope: 'test' });
      await engine.close();
      return { calibrated: engine.facts.temperatures !== null, scores };
    };
    const plain = await scoresOf(join(directory.path, 'tiny.gguf'));
    const divided = await scoresOf(await beside(JSON.stringify(calibration(profile, weights_sha256))));
    expect([plain.calibrated, divided.calibrated]).toEqual([false, true]);
    expect(divided.scores).toEqual(
      plain.scores.map((scores, index) => scores.map((one) => one / (temperatures[index] ?? Number.NaN))),
    );
  });

  test('one with the name of the weights counts for them alone, whatever others lie in their folder', async () => {
    const path = await beside(JSON.stringify(calibration('codes-v1')));
    const folder = dirname(path);
    const other = join(folder, 'other-00001-of-00001.gguf');
    await writeTinyModel(other, { ...TINY_MARKERS, layers: 1 });
    const own = calibration(profile, weights_sha256);
    await writeFile(join(folder, 'tiny.calibration.json'), JSON.stringify(own));
    expect((await checkModel({ model_path: path })).is_calibrated).toBe(true);
    await expect(checkModel({ model_path: other })).rejects.toThrow('codes-v1');
    await rm(join(folder, 'calibration.json'));
    expect((await checkModel({ model_path: other })).is_calibrated).toBe(false);
    expect(calibrationPath(other)).toBe(join(folder, 'other.calibration.json'));
    expect(calibrationPath(EMBEDDED_WEIGHTS)).toBe(join(dirname(EMBEDDED_WEIGHTS), 'calibration.json'));
  });

  test.each([
    ['other weights', () => JSON.stringify(calibration(profile)), 'other weights'],
    ['another profile', () => JSON.stringify(calibration('codes-v1', weights_sha256)), 'codes-v1'],
    ['no calibration', () => '{}', 'not valid'],
    ['no JSON', () => 'temperature: 2', 'not valid'],
    [
      'a temperature of nothing',
      () =>
        JSON.stringify({
          ...calibration(profile, weights_sha256),
          temperatures: { fast: FAST, consistent: { ...CONSISTENT, noul: 0 } },
        }),
      'not valid',
    ],
  ])('one for %s is refused', async (_, content, reason) => {
    const opened = openEngine({ model_path: await beside(content()), gpu: false, threads: 1 });
    await expect(opened).rejects.toBeInstanceOf(WeightsError);
    await expect(opened).rejects.toThrow(reason);
  });
});
