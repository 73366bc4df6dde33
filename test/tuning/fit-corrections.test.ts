import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Random, seededRandom, shuffled } from '../../src/eval/random.ts';
import type { ChosenCorrection } from '../../src/tuning/choose-correction.ts';
import { correctedScores } from '../../src/tuning/correction.ts';
import { type LabelledAnswer, labelledQuestions, tuneQuestions } from '../../src/tuning/fit-corrections.ts';
import { choiceOf, syntheticAnswers, TOPICS } from './support.ts';

const KEY = [1, 2] as const;

async function tuned(answers: readonly LabelledAnswer[], random: Random): Promise<ChosenCorrection> {
  const [only] = await tuneQuestions(labelledQuestions(answers, KEY), {
    order: (indexes) => shuffled(indexes, random),
    onFit: () => {},
  });
  if (only === undefined || typeof only.fitted === 'string') throw new Error('Nothing was fitted.');
  return only.fitted;
}

describe('a question is tuned', () => {
  test('by a shift that is found again, where only a shift is wrong', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const random = seededRandom(seed);
        const shift = [1.5, 0, -1.5];
        const { correction, before, after } = await tuned(
          syntheticAnswers({ count: 400, random, shift }),
          random,
        );
        expect(after.loss).toBeLessThan(before.loss);
        const found = correction?.shift ?? [];
        const centre = found.reduce((sum, value) => sum + value, 0) / 3;
        for (const [at, value] of found.entries())
          expect(value - centre).toBeWithin((shift[at] ?? 0) - 0.7, (shift[at] ?? 0) + 0.7);
        expect(correction?.scale).toBeWithin(0.6, 1.5);
      }),
      { numRuns: 5 },
    );
  });

  test('by words where the records’ words tell the answer, and the correction holds on new records', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const random = seededRandom(seed);
        const { correction, before, after } = await tuned(
          syntheticAnswers({ count: 200, random, word_weight: 4 }),
          random,
        );
        expect(correction?.words).not.toBeNull();
        expect(after.accuracy).toBeGreaterThan(before.accuracy + 0.1);
        const [fresh] = labelledQuestions(syntheticAnswers({ count: 300, random, word_weight: 4 }), KEY);
        const hits = (fresh?.examples ?? []).filter((example) => {
          const scores = correction === null ? [] : Array.from(correctedScores(correction, example));
          return example.answers[scores.indexOf(Math.max(...scores))] === 1;
        });
        // The accuracy matches its out-of-fold estimate, within the spread of 300 drawn records.
        expect(hits.length / 300).toBeWithin(after.accuracy - 0.12, after.accuracy + 0.12);
      }),
      { numRuns: 5 },
    );
  });

  test('by a vector where the hidden states tell the answer, in the same way for the same seed', async () => {
    const once = async () => {
      const random = seededRandom(5);
      return await tuned(syntheticAnswers({ count: 110, random, state_weight: 12 }), random);
    };
    const first = await once();
    const { correction, before, after } = first;
    expect(correction?.vector).not.toBeNull();
    expect(after.accuracy).toBeGreaterThan(before.accuracy + 0.1);
    expect(await once()).toEqual(first);
    const fresh = syntheticAnswers({ count: 300, random: seededRandom(6), state_weight: 12 });
    const hits = (labelledQuestions(fresh, KEY)[0]?.examples ?? []).filter((example) => {
      const scores = correction === null ? [] : Array.from(correctedScores(correction, example));
      return example.answers[scores.indexOf(Math.max(...scores))] === 1;
    });
    expect(hits.length / 300).toBeWithin(after.accuracy - 0.12, after.accuracy + 0.12);
  });

  test('by no vector where hidden states say nothing, in most draws, or where those of a record are unknown', async () => {
    const draw = (seed: number, state_weight: number) => {
      const random = seededRandom(seed);
      return { random, answers: syntheticAnswers({ count: 110, random, shift: [2, 0, -2], state_weight }) };
    };
    let vectors = 0;
    for (const seed of [1, 2, 3, 4]) {
      const { random, answers } = draw(seed, 0);
      if ((await tuned(answers, random)).correction?.vector != null) vectors += 1;
    }
    expect(vectors).toBeLessThanOrEqual(1);
    const { random, answers } = draw(5, 12);
    const one_unknown = answers.map((answer, at) => (at === 7 ? { ...answer, states: null } : answer));
    expect((await tuned(one_unknown, random)).correction).toMatchObject({ vector: null });
  });

  test('by nothing where the model is right already, in nearly all draws', async () => {
    let kept = 0;
    for (let seed = 0; seed < 20; seed += 1) {
      const random = seededRandom(seed);
      const { correction } = await tuned(syntheticAnswers({ count: 60, random }), random);
      if (correction !== null) kept += 1;
    }
    expect(kept).toBeLessThanOrEqual(4);
  });

  test('in the same way for the same seed', async () => {
    const once = () => {
      const random = seededRandom(7);
      return tuned(syntheticAnswers({ count: 80, random, word_weight: 3 }), random);
    };
    expect(await once()).toEqual(await once());
  });
});

describe('labels', () => {
  test('of a question with its options in another order are labels of one question', () => {
    const [answer] = syntheticAnswers({ count: 1, random: seededRandom(1) });
    if (answer === undefined) throw new Error('There is no answer.');
    const turned: LabelledAnswer = {
      ...answer,
      record: 'other',
      question: choiceOf(TOPICS.toReversed()),
      scores: answer.scores.toReversed(),
      answer: TOPICS.length - 1 - answer.answer,
      target: answer.target.toReversed(),
    };
    const sets = labelledQuestions([answer, turned], KEY);
    expect(sets).toHaveLength(1);
    const [one, other] = sets[0]?.examples ?? [];
    expect({ ...other, record: '' }).toEqual({ ...one, record: '' });
  });

  test('that contradict each other are counted, and the record has shares of both', () => {
    const [answer] = syntheticAnswers({ count: 1, random: seededRandom(1) });
    if (answer === undefined) throw new Error('There is no answer.');
    const other = { ...answer, answer: (answer.answer + 1) % 3, target: [0, 0, 0] };
    const [set] = labelledQuestions([answer, other], KEY);
    expect(set?.conflicts).toBe(1);
    expect(set?.examples).toHaveLength(1);
    expect(set?.examples[0]?.answers.toSorted()).toEqual([0, 0.5, 0.5]);
  });

  test('that are fewer than 8, or of one class only, are not fitted', async () => {
    const reasonOf = async (answers: readonly LabelledAnswer[]) => {
      const [only] = await tuneQuestions(labelledQuestions(answers, KEY), {
        order: (indexes) => indexes,
        onFit: () => {
          throw new Error('Something is fitted.');
        },
      });
      return only?.fitted;
    };
    const answers = syntheticAnswers({ count: 30, random: seededRandom(3) });
    expect(await reasonOf(answers.slice(0, 7))).toBe('too_few_labels');
    expect(await reasonOf(answers.map((answer) => ({ ...answer, answer: 1 })))).toBe('one_class');
  });
});
