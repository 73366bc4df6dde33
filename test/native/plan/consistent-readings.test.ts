import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { PlanRejected } from '../../../native/errors.ts';
import { withConsistentReadings } from '../../../native/plan/consistent-readings.ts';
import { markersV1 } from '../../../native/plan/markers-v1.ts';
import type { Plan, PlanLogits } from '../../../native/plan/plan.ts';
import type { DecisionInput, PromptProfile, RequestPlans } from '../../../native/plan/profile.ts';
import type { ChoiceQuestion } from '../../../src/questions/choice.ts';
import type { Mode, Question } from '../../../src/questions/question.ts';
import type { ScoreQuestion } from '../../../src/questions/score.ts';
import { VECTORS, vectorInput } from '../support/vectors.ts';
import { tokenizerOf } from './words.ts';

const CONTEXT_TOKENS = 4096;

/** A token a character, above the control tokens. */
const characters = tokenizerOf((text) => Array.from(text, (one) => (one.codePointAt(0) ?? 0) + 100));
const inner = markersV1(characters);
const steady = withConsistentReadings(inner);

/** A stand-in for a model: its logits depend on all that a read attends to, in order, and on nothing else. */
function logitsOf({ prefix, branches }: Plan): PlanLogits {
  return branches.map(({ tokens, reads }) =>
    reads.map((read) => {
      const seen = [...prefix, ...tokens.slice(0, read.index + 1)];
      return read.tokens.map((token) => seen.reduce((sum, one) => (sum * 31 + one + token) % 9973, 7) / 1000);
    }),
  );
}

async function scoresOf(profile: PromptProfile, input: DecisionInput) {
  const { plans } = await planOf(profile, input);
  return profile.scores(input, plans, plans.map(logitsOf));
}

function planOf(profile: PromptProfile, input: DecisionInput): Promise<RequestPlans> {
  return profile.plan(input, CONTEXT_TOKENS);
}

function input(mode: Mode, ...questions: readonly Question[]): DecisionInput {
  return { state: 'The parcel came late.', questions, mode };
}

const NOUL: Question = { type: 'noul', instructions: 'Is it late?', yes: undefined, no: undefined };
const SCORE: ScoreQuestion = { type: 'score', instructions: 'How late?', levels: ['not', 'a bit', 'very'] };

function choice(ids: readonly string[]): ChoiceQuestion {
  return {
    type: 'choice',
    instructions: 'Which?',
    options: ids.map((id) => ({ id, description: `means ${id}` })),
  };
}

const optionIds = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 8 });
const shuffledIds = optionIds.chain((ids) =>
  fc.tuple(fc.constant(ids), fc.shuffledSubarray(ids, { minLength: ids.length, maxLength: ids.length })),
);

describe('consistent', () => {
  test('the order of options changes neither what is read nor any score', async () => {
    await fc.assert(
      fc.asyncProperty(shuffledIds, async ([ids, other]) => {
        const one = input('consistent', choice(ids), NOUL);
        const two = input('consistent', choice(other), NOUL);
        expect(await planOf(steady, two)).toEqual(await planOf(steady, one));
        const [scores = []] = await scoresOf(steady, one);
        const [others = []] = await scoresOf(steady, two);
        expect(other.map((id) => others[other.indexOf(id)])).toEqual(
          other.map((id) => scores[ids.indexOf(id)]),
        );
      }),
      { verbose: 1 },
    );
  });

  test('an option has the mean of its scores with the options sorted and backwards', async () => {
    await fc.assert(
      fc.asyncProperty(optionIds, async (ids) => {
        const sorted = ids.toSorted((left, right) => (left < right ? -1 : 1));
        const [scores = []] = await scoresOf(steady, input('consistent', choice(ids)));
        const [forward = []] = await scoresOf(inner, input('fast', choice(sorted)));
        const [backward = []] = await scoresOf(inner, input('fast', choice(sorted.toReversed())));
        ids.forEach((id, index) => {
          const place = sorted.indexOf(id);
          const mean = ((forward[place] ?? 0) + (backward[sorted.length - 1 - place] ?? 0)) / 2;
          expect(scores[index]).toBeCloseTo(mean, 10);
        });
      }),
      { verbose: 1 },
    );
  });

  test('a noul is read as it is', async () => {
    const noul: Question = { type: 'noul', instructions: 'Is it late?', yes: 'after noon', no: undefined };
    const own = await scoresOf(inner, input('fast', noul));
    expect(await scoresOf(steady, input('consistent', noul))).toEqual(own);
  });

  test('a score has the mean of its levels in both directions', async () => {
    const [up = []] = await scoresOf(inner, input('fast', SCORE));
    const [down = []] = await scoresOf(inner, input('fast', { ...SCORE, levels: SCORE.levels.toReversed() }));
    const [scores = []] = await scoresOf(steady, input('consistent', SCORE));
    expect(scores.length).toBe(3);
    scores.forEach((score, level) => {
      expect(score).toBeCloseTo(((up[level] ?? Number.NaN) + (down[2 - level] ?? Number.NaN)) / 2, 10);
    });
  });

  test('a question that is too long in one of its wordings is the one that is named', async () => {
    const long: Question = { ...NOUL, instructions: 'x'.repeat(CONTEXT_TOKENS) };
    const asked = input('consistent', SCORE, NOUL, long);
    const rejected: unknown = await planOf(steady, asked).catch((error: unknown) => error);
    expect(rejected).toBeInstanceOf(PlanRejected);
    expect(rejected).toMatchObject({ question: 2 });
  });

  test('every question has a plan that reads the record, and is billed as if it were asked alone in fast mode', async () => {
    const questions = [choice(['b', 'a']), NOUL, SCORE];
    const { plans, input_tokens } = await planOf(steady, input('consistent', ...questions));
    expect(plans.map(({ branches }) => branches.length)).toEqual([2, 1, 2]);
    const [alone] = (await planOf(inner, input('fast', NOUL))).plans;
    const record = alone?.prefix ?? [];
    expect(plans.map(({ prefix }) => prefix)).toEqual([record, record, record]);
    const apart = await Promise.all(questions.map((question) => planOf(inner, input('fast', question))));
    expect(input_tokens).toBe(apart.reduce((sum, plan) => sum + plan.input_tokens, 0));
  });

  test('what is read for a question is the same with other questions and without', async () => {
    const questions = [NOUL, choice(['x', 'y', 'z']), SCORE, choice(['q', 'p'])];
    const together = input('consistent', ...questions);
    const apart = questions.map((question) => input('consistent', question));
    const plans = await Promise.all(apart.map((one) => planOf(steady, one)));
    const read = ({ prefix, branches }: Plan): Plan => ({ prefix, branches });
    expect((await planOf(steady, together)).plans.map(read)).toEqual(
      plans.flatMap((plan) => plan.plans).map(read),
    );
    const scores = await Promise.all(apart.map((one) => scoresOf(steady, one)));
    expect(await scoresOf(steady, together)).toEqual(scores.flat());
  });
});

test('fast is what the profile makes of it', async () => {
  for (const vector of VECTORS.filter(({ mode }) => mode === 'fast')) {
    const asked = vectorInput(vector);
    expect(await planOf(steady, asked)).toEqual(await planOf(inner, asked));
    expect(await scoresOf(steady, asked)).toEqual(await scoresOf(inner, asked));
  }
});

test('the name says that scores are not those of the profile, so that no calibration is taken for the other', () => {
  expect(steady.name).toBe('markers-v1+steady-v3');
});
