import { describe, expect, test } from 'bun:test';
import { readModelFacts } from '../../../native/model-facts.ts';
import { CODES_V1 } from '../../../native/plan/codes-v1.ts';
import { MARKERS_V1, MARKERS_V1_TOKENS } from '../../../native/plan/markers-v1.ts';
import { profileFor } from '../../../native/plan/profiles.ts';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';

describe('the profile of a model', () => {
  test('is markers-v1 where every control token has its id, and codes-v1 anywhere else', async () => {
    const { vocabulary } = await readModelFacts(EMBEDDED_WEIGHTS);
    expect(profileFor(vocabulary)).toBe(MARKERS_V1);
    for (const id of Object.values(MARKERS_V1_TOKENS)) {
      const special = new Set(vocabulary.special);
      special.delete(id);
      expect(profileFor({ ...vocabulary, special })).toBe(CODES_V1);
      expect(profileFor({ ...vocabulary, texts: vocabulary.texts.with(id, 'another') })).toBe(CODES_V1);
    }
  });
});
