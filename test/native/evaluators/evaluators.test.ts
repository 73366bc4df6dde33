import { describe, expect, test } from 'bun:test';
import { AddonUnavailable, DeviceUnavailable, EvaluationFailed, SetupError } from '../../../native/errors.ts';
import type { EvaluatorChoice } from '../../../native/evaluators/evaluator-names.ts';
import { byWantedEvaluator, type RegisteredEvaluator } from '../../../native/evaluators/evaluators.ts';
import type { ReadBounds } from '../../../native/plan/read-bounds.ts';

const ANYWHERE: ReadBounds = { tokens_max: 255, position: 'anywhere' };
const AT_THE_END: ReadBounds = { tokens_max: 255, position: 'last_token' };
const TWO_AT_THE_END: ReadBounds = { tokens_max: 2, position: 'last_token' };

function evaluator(reads: ReadBounds): RegisteredEvaluator {
  const never = () => Promise.reject(new Error('not asked for'));
  return { reads, openTokenizer: never, openEvaluator: never };
}

/** Which evaluators are tried where each of them fails in its own way; the names of those that were. */
async function tried(
  wanted: EvaluatorChoice,
  needed: ReadBounds | undefined,
  given: { addon?: ReadBounds; llama?: ReadBounds; addon_error?: Error; llama_error?: Error } = {},
): Promise<readonly string[]> {
  const addon = evaluator(given.addon ?? ANYWHERE);
  const llama = evaluator(given.llama ?? ANYWHERE);
  const names: string[] = [];
  const open = (one: RegisteredEvaluator) => {
    names.push(one === addon ? 'addon' : 'llama');
    const error = one === addon ? given.addon_error : given.llama_error;
    return error === undefined ? Promise.resolve(names) : Promise.reject(error);
  };
  return await byWantedEvaluator(wanted, needed, open, { addon, llama });
}

describe('the evaluator that is opened', () => {
  test('is the first of the table, or the one that is named', async () => {
    expect(await tried('auto', undefined)).toEqual(['addon']);
    expect(await tried('addon', undefined)).toEqual(['addon']);
    expect(await tried('llama', undefined)).toEqual(['llama']);
  });

  test('is the next one where the first cannot be built or refuses the weights', async () => {
    for (const addon_error of [new AddonUnavailable('no compiler'), new EvaluationFailed('bad weights')]) {
      expect(await tried('auto', undefined, { addon_error })).toEqual(['addon', 'llama']);
      await expect(tried('addon', undefined, { addon_error })).rejects.toBe(addon_error);
    }
    const llama_error = new Error('bad weights');
    const both = tried('auto', undefined, { addon_error: new EvaluationFailed('no'), llama_error });
    await expect(both).rejects.toBe(llama_error);
  });

  test('is no other one where the device is missing that was asked for', async () => {
    const addon_error = new DeviceUnavailable('no GPU');
    await expect(tried('auto', undefined, { addon_error })).rejects.toBe(addon_error);
  });

  test('can read all that the profile needs', async () => {
    expect(await tried('auto', ANYWHERE, { addon: AT_THE_END })).toEqual(['llama']);
    expect(await tried('auto', AT_THE_END, { addon: TWO_AT_THE_END })).toEqual(['llama']);
    expect(await tried('auto', TWO_AT_THE_END, { addon: TWO_AT_THE_END })).toEqual(['addon']);
    await expect(tried('addon', ANYWHERE, { addon: AT_THE_END })).rejects.toBeInstanceOf(SetupError);
    const neither = tried('auto', ANYWHERE, { addon: AT_THE_END, llama: TWO_AT_THE_END });
    await expect(neither).rejects.toThrow('addon or llama');
  });
});
