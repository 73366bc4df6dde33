import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { type ModelFacts, readModelFacts } from '../../../native/gguf.ts';
import type { ModelTokenizer } from '../../../native/model-tokenizer.ts';
import { CODES_V1 } from '../../../native/plan/codes-v1.ts';
import { MARKERS_V1, MARKERS_V1_TOKENS } from '../../../native/plan/markers-v1.ts';
import type { RegisteredProfile } from '../../../native/plan/profile.ts';
import { profileFor } from '../../../native/plan/profiles.ts';
import { coversReads, type ReadBounds } from '../../../native/plan/read-bounds.ts';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';
import type { Question } from '../../../src/questions/question.ts';
import { writeTinyModel } from '../support/gguf.ts';
import { llamaTokenizer, TINY_CHAT, temporaryDirectory } from '../support/models.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

const QUESTIONS: readonly Question[] = [
  { type: 'noul', instructions: 'Is it on?', yes: 'it is lit', no: undefined },
  {
    type: 'choice',
    instructions: 'Which?',
    options: Array.from({ length: 26 }, (_, index) => ({ id: `n${index}`, description: null })),
  },
  { type: 'score', instructions: 'How bright?', levels: ['dark', 'dim', 'bright'] },
];

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

describe('what a profile needs of an evaluator is all that its plans read', () => {
  let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
  const models = new Map<RegisteredProfile, { tokenizer: ModelTokenizer; facts: ModelFacts }>();
  beforeAll(async () => {
    directory = await temporaryDirectory();
    const chat_path = join(directory.path, 'chat.gguf');
    await writeTinyModel(chat_path, TINY_CHAT);
    models.set(MARKERS_V1, await llamaTokenizer(EMBEDDED_WEIGHTS));
    models.set(CODES_V1, await llamaTokenizer(chat_path));
  });
  afterAll(async () => {
    for (const { tokenizer } of models.values()) await tokenizer.close();
    await directory[Symbol.asyncDispose]();
  });

  test.each([
    ['markers-v1', MARKERS_V1],
    ['codes-v1', CODES_V1],
  ] as const)('%s', async (_, registered) => {
    const model = models.get(registered);
    if (model === undefined) throw new Error('There is no model.');
    const { tokenizer, facts } = model;
    const profile = await registered.make({ ...facts, tokenizer });
    for (const mode of ['fast', 'consistent'] as const) {
      const { plans } = await profile.plan({ state: 'The light is on.', questions: QUESTIONS, mode }, 2048);
      const branches = plans.flatMap((plan) => plan.branches);
      for (const { tokens, reads } of branches) {
        for (const read of reads) {
          const is_last = read.index === tokens.length - 1;
          const asked: ReadBounds = {
            tokens_max: read.tokens.length,
            position: is_last ? 'last_token' : 'anywhere',
          };
          expect(coversReads(registered.reads, asked)).toBe(true);
        }
      }
      expect(branches.some(({ reads }) => reads.length > 1)).toBe(registered.reads.position === 'anywhere');
    }
  });
});
