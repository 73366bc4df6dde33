import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { AddonUnavailable, DeviceUnavailable, EvaluationFailed } from '../../../native/errors.ts';
import type { EvaluatorChoice } from '../../../native/evaluators/evaluator-names.ts';
import { byWantedEvaluator, type RegisteredEvaluator } from '../../../native/evaluators/evaluators.ts';
import { verifyWeights } from '../../../native/weights.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { describeAddon } from '../addon/support.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { TINY_MARKERS } from '../support/models.ts';

// The addon is built first where it is not yet.
setDefaultTimeout(180_000);

function evaluator(): RegisteredEvaluator {
  const never = () => Promise.reject(new Error('not asked for'));
  return { openTokenizer: never, openEvaluator: never };
}

/** Which evaluators are tried where each of them fails in its own way; the names of those that were. */
async function tried(
  wanted: EvaluatorChoice,
  given: { addon_error?: Error; llama_error?: Error } = {},
): Promise<readonly string[]> {
  const addon = evaluator();
  const llama = evaluator();
  const names: string[] = [];
  const open = (one: RegisteredEvaluator) => {
    names.push(one === addon ? 'addon' : 'llama');
    const error = one === addon ? given.addon_error : given.llama_error;
    return error === undefined ? Promise.resolve(names) : Promise.reject(error);
  };
  return await byWantedEvaluator(wanted, open, { addon, llama });
}

describe('the evaluator that is opened', () => {
  test('is the first of the table, or the one that is named', async () => {
    expect(await tried('auto')).toEqual(['addon']);
    expect(await tried('addon')).toEqual(['addon']);
    expect(await tried('llama')).toEqual(['llama']);
  });

  test('is the next one where the first cannot be built or refuses the weights', async () => {
    for (const addon_error of [new AddonUnavailable('no compiler'), new EvaluationFailed('bad weights')]) {
      expect(await tried('auto', { addon_error })).toEqual(['addon', 'llama']);
      await expect(tried('addon', { addon_error })).rejects.toBe(addon_error);
    }
    const llama_error = new Error('bad weights');
    const both = tried('auto', { addon_error: new EvaluationFailed('no'), llama_error });
    await expect(both).rejects.toBe(llama_error);
  });

  test('is no other one where the device is missing that was asked for', async () => {
    const addon_error = new DeviceUnavailable('no GPU');
    await expect(tried('auto', { addon_error })).rejects.toBe(addon_error);
  });
});

describeAddon('the addon and node-llama-cpp', () => {
  test('never load at once, because ggml has no lock: each waits for those before it, quick ones too', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'tiny.gguf');
    await writeTinyModel(path, TINY_MARKERS);
    const sizes = { threads: 1, context_tokens: 512, flash_attention: false, deterministic: false } as const;
    const options = { weights: await verifyWeights(path), gpu: false, ...sizes } as const;
    const names = ['llama', 'addon', 'llama', 'addon'] as const;
    const loaded: string[] = [];
    const load = async (what: 'openTokenizer' | 'openEvaluator') => {
      const opened = names.map(async (name) => {
        const one = await byWantedEvaluator<{ close(): Promise<void> }>(name, (evaluator) =>
          evaluator[what](options),
        );
        loaded.push(`${name} ${what}`);
        await one.close();
      });
      await Promise.all(opened);
    };
    await Promise.all([load('openTokenizer'), load('openEvaluator')]);
    expect(loaded).toEqual([
      ...names.map((name) => `${name} openTokenizer`),
      ...names.map((name) => `${name} openEvaluator`),
    ]);
  });
});
