import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import type { ModelFacts } from '../../../native/model-facts.ts';
import type { ModelTokenizer } from '../../../native/model-tokenizer.ts';
import { markersV1 } from '../../../native/plan/markers-v1.ts';
import { planPositions, planTokens } from '../../../native/plan/plan.ts';
import type { PromptProfile } from '../../../native/plan/profile.ts';
import { EMBEDDED_WEIGHTS } from '../../../native/weights.ts';
import { jsonValueOf } from '../../../src/json/json-value.ts';
import type { Mode, Question } from '../../../src/questions/question.ts';
import { llamaTokenizer } from '../support/models.ts';
import { rejection } from './rejection.ts';

// Loading takes longer than Bun's five seconds where cores are shared.
setDefaultTimeout(120_000);

let tokenizer: ModelTokenizer;
let facts: ModelFacts;
let profile: PromptProfile;
beforeAll(async () => {
  ({ tokenizer, facts } = await llamaTokenizer(EMBEDDED_WEIGHTS));
  profile = markersV1(tokenizer);
});
afterAll(() => tokenizer.close());

const NOUL: Question = { type: 'noul', instructions: 'Is it late?', yes: undefined, no: undefined };
const MODES: readonly Mode[] = ['fast', 'consistent'];

describe.each(MODES)('%s', (mode) => {
  test('text never becomes a control token, whatever spellings it has', async () => {
    const special = [...facts.vocabulary.special];
    const spelling = fc.constantFrom(...special.map((id) => facts.vocabulary.texts[id] ?? ''));
    const forged = fc
      .array(fc.oneof(spelling, fc.string({ unit: 'binary', maxLength: 6 })), { maxLength: 8 })
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(forged, forged, forged, forged, async (state, instructions, id, description) => {
        const questions: readonly Question[] = [
          { type: 'noul', instructions, yes: description, no: id },
          {
            type: 'choice',
            instructions,
            options: [
              { id, description },
              { id: 'other', description: null },
            ],
          },
        ];
        const { plans } = await profile.plan({ state, questions, mode }, 100_000);
        const controls = plans
          .flatMap((plan) => [plan.prefix, ...plan.branches.map((branch) => branch.tokens)])
          .flat()
          .filter((token) => facts.vocabulary.special.has(token));
        const criteria = [description, id].filter((part) => part.trim() !== '').length;
        // The two questions' own tokens: a noul's criteria and its answer, and two answered options.
        const branches = 1 + criteria + 1 + (1 + 2 + 2);
        const heads = 1 + criteria + (1 + 2);
        expect(controls.length).toBe(mode === 'fast' ? 1 + branches : 2 + heads + branches);
      }),
      { numRuns: 300 },
    );
  });

  test('a record longer than fits keeps the first half of the room and the last half', async () => {
    const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(' ');
    const [whole = []] = await tokenizer.tokenize([words]);
    const long: Question = { ...NOUL, instructions: 'Is it late, or will it be before the month ends?' };
    const { plans } = await profile.plan({ state: words, questions: [NOUL, long], mode }, 256);
    // In fast mode a record is cut to whole steps, of 4 tokens here.
    const step = mode === 'fast' ? 4 : 1;
    for (const plan of plans) {
      const record = plan.prefix.slice(plan.prefix.indexOf(3) + 1);
      const head = Math.floor(record.length / 2);
      expect(record.slice(0, head)).toEqual(whole.slice(0, head));
      expect(record.slice(head)).toEqual(whole.slice(whole.length - (record.length - head)));
      expect(planPositions(plan)).toBeLessThanOrEqual(256);
      expect(planPositions(plan)).toBeGreaterThan(256 - step);
    }
  });

  test('what is left out of the record is counted for the question with the least room', async () => {
    const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(' ');
    const [whole = []] = await tokenizer.tokenize([words]);
    const long: Question = { ...NOUL, instructions: 'Is it late, or will it be before the month ends?' };
    const { plans, record_tokens_left_out } = await profile.plan(
      { state: words, questions: [long, NOUL], mode },
      256,
    );
    const kept = plans.map(({ prefix }) => prefix.slice(prefix.indexOf(3) + 1).length);
    expect(new Set(kept).size).toBe(2);
    expect(record_tokens_left_out).toBe(whole.length - Math.min(...kept));
    const fits = await profile.plan({ state: words, questions: [long, NOUL], mode }, 16_384);
    expect(fits.record_tokens_left_out).toBe(0);
  });

  test('what is left out of a record that is not tokenized whole is estimated by its ends', async () => {
    const words = Array.from({ length: 20_000 }, (_, index) => `word${index % 100}`).join(' ');
    const [whole = []] = await tokenizer.tokenize([words]);
    const { plans, record_tokens_left_out } = await profile.plan(
      { state: words, questions: [NOUL], mode },
      256,
    );
    const prefix = plans[0]?.prefix ?? [];
    const left_out = whole.length - prefix.slice(prefix.indexOf(3) + 1).length;
    expect(Math.abs((record_tokens_left_out ?? 0) - left_out)).toBeLessThan(left_out / 50);
  });

  test('a question that does not fit alone is rejected by its index', async () => {
    const long: Question = { ...NOUL, instructions: 'late '.repeat(300) };
    const error = await rejection(profile.plan({ state: '', questions: [NOUL, long], mode }, 256));
    expect(error.question).toBe(1);
    expect(error.message).toContain('256');
  });

  test('a question that just fits leaves no room, and its record is gone', async () => {
    const { plans } = await profile.plan({ state: '', questions: [NOUL], mode }, 256);
    const exact = Math.max(...plans.map(planPositions));
    const tight = await profile.plan({ state: 'a long record', questions: [NOUL], mode }, exact);
    expect(tight.plans).toEqual(plans);
    await rejection(profile.plan({ state: '', questions: [NOUL], mode }, exact - 1));
  });

  test('what is billed is every token that is read', async () => {
    const input = { state: jsonValueOf({ a: [1, 2] }), questions: [NOUL, NOUL, NOUL], mode };
    const plan = await profile.plan(input, 256);
    expect(plan.input_tokens).toBe(plan.plans.map(planTokens).reduce((sum, tokens) => sum + tokens, 0));
    expect(plan.plans.length).toBe(mode === 'fast' ? 1 : 3);
    expect(await profile.plan(input, 256)).toEqual(plan);
  });
});
