import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { seededRandom } from '../../src/eval/random.ts';
import { correctedScores, exampleLoss, fitCorrection } from '../../src/tuning/correction.ts';
import { labelledQuestions } from '../../src/tuning/fit-corrections.ts';
import { syntheticAnswers, TOPICS } from './support.ts';

test('a fit that begins where one of another penalty ended brings the same correction', () => {
  const answers = syntheticAnswers({ count: 120, random: seededRandom(3), word_weight: 3, state_weight: 6 });
  const examples = labelledQuestions(answers, [1, 2])[0]?.examples ?? [];
  const strong = fitCorrection(examples, TOPICS.length, { words_penalty: 1.5, vector_penalty: 0.3 });
  const weak = { words_penalty: 0.15, vector_penalty: 0.03 };
  const scoresOf = (start?: Float64Array) => {
    const { correction } = fitCorrection(examples, TOPICS.length, weak, start);
    return examples.flatMap((example) => Array.from(correctedScores(correction, example)));
  };
  const from_zero = scoresOf();
  scoresOf(strong.parameters).forEach((score, at) => {
    expect(Math.abs(score - (from_zero[at] ?? Number.NaN))).toBeLessThan(0.1);
  });
  expect(Math.max(...from_zero)).toBeGreaterThan(1);
});

test('a fit ends where further fits from there on gain next to nothing', () => {
  const answers = syntheticAnswers({
    count: 120,
    random: seededRandom(2),
    word_weight: 3,
    state_weight: 0,
    shift: [2, 0, -1],
  });
  const examples = labelledQuestions(answers, [1, 2])[0]?.examples ?? [];
  const shapeOf = (vector_penalty: number) => ({ words_penalty: null, vector_penalty });
  const fit = (vector_penalty: number, start?: Float64Array) =>
    fitCorrection(examples, TOPICS.length, shapeOf(vector_penalty), start);
  /** The penalized loss in nats a label. The shift has the first parameters, and its own penalties. */
  const lossOf = ({ correction, parameters }: ReturnType<typeof fit>, vector_penalty: number) => {
    const penalties = [4, ...TOPICS.map(() => 1)];
    const losses = examples.map((each) => exampleLoss(correctedScores(correction, each), each.target));
    const pulls = Array.from(parameters, (value, at) => ((penalties[at] ?? vector_penalty) * value ** 2) / 2);
    return [...losses, ...pulls].reduce((sum, part) => sum + part, 0) / examples.length;
  };
  const ended = fit(0.1, fit(0.3).parameters);
  let further = ended;
  for (let count = 0; count < 6; count += 1) further = fit(0.1, further.parameters);
  expect(lossOf(ended, 0.1) - lossOf(further, 0.1)).toBeWithin(-1e-9, 5e-5);
});

test('a model that is mostly wrong gets the likeliest shift of the least scale', () => {
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(0.6, 0.75, 0.9), (seed, share_of_yes) => {
      const random = seededRandom(seed);
      const examples = Array.from({ length: 200 }, (_, number) => {
        const is_yes = random() < share_of_yes;
        // The score speaks against the answer, and for no.
        const log_odds = (is_yes ? -3 : 2) + random();
        const target = is_yes ? [0, 1] : [1, 0];
        return {
          record: `${number}`,
          scores: [0, log_odds],
          target,
          answers: target,
          words: new Int32Array(),
          states: null,
        };
      });
      const objective = (scale: number, shift: readonly number[]) =>
        examples.reduce((sum, { scores, target }) => {
          const corrected = scores.map((score, at) => scale * score + (shift[at] ?? 0));
          return sum + exampleLoss(corrected, target);
        }, 0) +
        shift.reduce((sum, value) => sum + value ** 2 / 2, 0) +
        2 * (scale - 1) ** 2;
      const { correction } = fitCorrection(examples, 2, { words_penalty: null, vector_penalty: null });
      expect(correction.scale).toBe(0.05);
      const least = Math.min(
        ...Array.from({ length: 2001 }, (_, step) => {
          const half = (step - 1000) / 500;
          return objective(0.05, [-half, half]);
        }),
      );
      expect(objective(correction.scale, correction.shift)).toBeWithin(least - 0.01, least + 0.05);
    }),
    { numRuns: 20 },
  );
});
