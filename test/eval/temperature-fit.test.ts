import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { evenTypes, fitCalibration, fitTable } from '../../src/eval/calibration-fit.ts';
import type { ScoredQuestion } from '../../src/eval/collect.ts';
import { type Random, seededRandom } from '../../src/eval/random.ts';
import {
  assignFolds,
  fitTemperature,
  fitTemperatures,
  outOfFoldTemperatures,
} from '../../src/eval/temperature-fit.ts';
import { softmax } from '../../src/questions/probabilities.ts';
import { scoredChoice } from './support.ts';

/** A question whose answer is drawn as its scores say at `temperature`. */
function drawn(random: Random, options: number, temperature: number, record: string): ScoredQuestion {
  const scores = Array.from({ length: options }, () => 6 * (random() - 0.5));
  let left = random();
  const probabilities = softmax(scores.map((score) => score / temperature));
  const answer = probabilities.findIndex((probability) => {
    left -= probability;
    return left < 0;
  });
  return scoredChoice(scores, Math.max(0, answer), { record, source: `set ${record.length % 7}` });
}

describe('a temperature', () => {
  test('is found again from answers that were drawn with it', () => {
    fc.assert(
      fc.property(fc.integer(), fc.constantFrom(0.5, 1, 3), (seed, temperature) => {
        const random = seededRandom(seed);
        const questions = Array.from({ length: 1500 }, () => drawn(random, 4, temperature, 'r'));
        expect(fitTemperature(questions) / temperature).toBeWithin(0.8, 1.25);
      }),
      { numRuns: 6, verbose: 1 },
    );
  });

  test('of shares comes from the shares, whatever the answer is', () => {
    const scores = [2, 0];
    const shares = softmax([1, 0]);
    expect(fitTemperature([scoredChoice(scores, 0, { target: shares })])).toBeCloseTo(2, 4);
  });

  test('of a noul is that of a choice between no and yes, also where the likelihood is too small for a number', () => {
    // At the lowest temperature, a score of 100 speaks against the answer with a probability of 1e-869.
    const scores = [-100, -20, ...Array.from({ length: 1000 }, (_, index) => (index % 2) - 0.5), 20, 100];
    const asNoul = (score: number): ScoredQuestion => ({
      ...scoredChoice([score], 0, { target: score === 20 || score === 0.5 ? [0.2, 0.8] : [1, 0] }),
      question: { type: 'noul', instructions: 'Is it?', yes: undefined, no: undefined },
    });
    for (const sign of [1, -1]) {
      const nouls = scores.map((score) => ({ ...asNoul(score), scores: [sign * score] }));
      const choices = nouls.map(({ scores: [score = 0], target }) => scoredChoice([0, score], 0, { target }));
      expect(fitTemperature(nouls)).toBeCloseTo(fitTemperature(choices), 6);
    }
  });

  test('stays in its bounds where the likelihood has no end, and is 1 where there is nothing to fit', () => {
    expect(fitTemperature([scoredChoice([1, 0], 0)])).toBeCloseTo(0.05, 4);
    expect(fitTemperature([scoredChoice([1, 0], 1)])).toBeCloseTo(20, 2);
    expect(fitTemperature([])).toBe(1);
  });
});

test('small buckets join the next one, and the last reaches to any number of options', () => {
  const random = seededRandom(1);
  const of = (options: number, count: number) =>
    Array.from({ length: count }, () => drawn(random, options, 1, 'r'));
  const limits = (questions: readonly ScoredQuestion[]) =>
    fitTemperatures(questions).choice.map(({ most_options }) => most_options);
  expect(limits([...of(2, 150), ...of(3, 150), ...of(4, 150), ...of(6, 150), ...of(9, 150)])).toEqual([
    2, 3, 4, 6, 255,
  ]);
  expect(limits([...of(2, 20), ...of(3, 150), ...of(9, 20)])).toEqual([255]);
  expect(limits([...of(2, 150), ...of(3, 20), ...of(4, 90), ...of(9, 120)])).toEqual([2, 4, 255]);
  expect(limits([])).toEqual([255]);
});

describe('folds', () => {
  const questions = Array.from({ length: 300 }, (_, index) =>
    scoredChoice([1, 0], index % 10 < 7 ? 0 : 1, { source: `s${index % 23}`, record: `r${index % 101}` }),
  );

  test.each(['set', 'record'] as const)('keep what is of one %s together, and are even', (by) => {
    const fold_of = assignFolds(questions, by, 5, (groups) => groups.toReversed());
    const groups = Map.groupBy(questions.keys(), (index) =>
      by === 'set' ? questions[index]?.source : questions[index]?.record,
    );
    for (const indexes of groups.values())
      expect(new Set(indexes.map((index) => fold_of[index])).size).toBe(1);
    const sizes = [0, 1, 2, 3, 4].map((fold) => fold_of.filter((one) => one === fold).length);
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(16);
  });

  test('a question has no part in the temperature that it is judged by', () => {
    const fold_of = questions.map((_, index) => index % 5);
    const others = outOfFoldTemperatures(questions, fold_of);
    // Other answers in its own fold must not move it.
    const changed = questions.map((question, index) =>
      fold_of[index] === 0
        ? scoredChoice([5, 0], 1, { source: question.source, record: question.record })
        : question,
    );
    outOfFoldTemperatures(changed, fold_of).forEach((temperature, index) => {
      if (fold_of[index] === 0) expect(temperature).toBe(others[index] ?? Number.NaN);
      else expect(temperature).not.toBe(others[index] ?? Number.NaN);
    });
  });
});

test('calibration makes overconfident scores true on questions that it has not seen', () => {
  const random = seededRandom(7);
  const questions = Array.from({ length: 3000 }, (_, index) =>
    drawn(random, 3, 3, 'r'.repeat(1 + (index % 50))),
  );
  const fit = fitCalibration(questions, {
    present: undefined,
    cases_sha256: '0'.repeat(64),
    folds: 5,
    fold_by: 'set',
    random: seededRandom(1),
  });
  const [choice] = fit.out_of_fold;
  expect(choice?.before.expected_calibration_error).toBeGreaterThan(0.2);
  expect(choice?.after?.expected_calibration_error).toBeLessThan(0.05);
  expect(choice?.after?.negative_log_likelihood).toBeLessThan(choice?.before.negative_log_likelihood ?? 0);
  expect(fit.fitted_on).toMatchObject({ questions: 3000, records: 50 });
});

test('what a fit is worth is unknown where all questions of a type are in one set', () => {
  const random = seededRandom(5);
  const questions = Array.from({ length: 100 }, (_, index) => ({
    ...drawn(random, 3, 3, `record ${index}`),
    source: 'one',
  }));
  const options = { present: undefined, cases_sha256: '0'.repeat(64), folds: 5, random };
  const by_set = fitCalibration(questions, { ...options, fold_by: 'set' });
  expect(by_set.out_of_fold).toMatchObject([{ type: 'choice', questions: 100, after: null }]);
  expect(fitTable(by_set)[1]?.filter((cell) => cell === '-')).toHaveLength(3);
  const by_record = fitCalibration(questions, { ...options, fold_by: 'record' });
  expect(by_record.out_of_fold[0]?.after).not.toBeNull();
});

test('a type whose scores tell nothing of the answers is named, and no other', () => {
  const random = seededRandom(11);
  const options = {
    present: undefined,
    cases_sha256: '0'.repeat(64),
    folds: 5,
    fold_by: 'record',
    random,
  } as const;
  const questions = Array.from({ length: 300 }, (_, index) => drawn(random, 3, 3, `record ${index}`));
  const wrong = questions.map((question) => ({
    ...question,
    scores: question.scores.map((score, option) => score - 9 * (question.target[option] ?? 0)),
  }));
  expect(evenTypes(fitCalibration(wrong, options))).toEqual(['choice']);
  expect(evenTypes(fitCalibration(questions, options))).toEqual([]);
});

describe('a type with too few questions', () => {
  const present = {
    noul: 1.5,
    choice: [{ most_options: 255, temperature: 1.6 }],
    score: [{ most_options: 255, temperature: 1.7 }],
  };
  const fit = (count: number, now: typeof present | undefined) => {
    const random = seededRandom(3);
    const questions = Array.from({ length: count }, (_, index) => drawn(random, 3, 3, `record ${index}`));
    const options = { cases_sha256: '0'.repeat(64), folds: 5, fold_by: 'record', random } as const;
    return fitCalibration(questions, { ...options, present: now });
  };

  test('keeps its present temperatures, and is named', () => {
    const { temperatures, kept } = fit(100, present);
    expect(kept).toEqual(['noul', 'score']);
    expect(temperatures).toMatchObject({ noul: present.noul, score: present.score });
    expect(temperatures.choice).not.toEqual(present.choice);
    expect(fit(99, present)).toMatchObject({
      temperatures: present,
      kept: ['noul', 'choice', 'score'],
      out_of_fold: [],
    });
  });

  test('stays uncalibrated where it has no present temperatures', () => {
    const uncalibrated = [{ most_options: 255, temperature: 1 }];
    expect(fit(99, undefined).temperatures).toEqual({ noul: 1, choice: uncalibrated, score: uncalibrated });
  });
});
