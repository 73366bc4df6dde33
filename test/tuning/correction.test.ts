import { expect, test } from 'bun:test';
import { seededRandom } from '../../src/eval/random.ts';
import { correctedScores, fitCorrection } from '../../src/tuning/correction.ts';
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
