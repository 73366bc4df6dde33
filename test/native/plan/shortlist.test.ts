import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { shortlistsOf, withSecondReading } from '../../../native/plan/shortlist.ts';
import { softmax } from '../../../src/questions/probabilities.ts';
import type { Question } from '../../../src/questions/question.ts';

function choiceOf(options: number): Question {
  return {
    type: 'choice',
    instructions: 'Which?',
    options: Array.from({ length: options }, (_, at) => ({ id: `o${at}`, description: null })),
  };
}

const input = (question: Question, mode: 'fast' | 'consistent' = 'fast') => ({
  state: 'record',
  questions: [question],
  mode,
});
const rising = (options: number) => Array.from({ length: options }, (_, at) => at);

describe('a shortlist', () => {
  test.each([
    [2, 0],
    [32, 0],
    [33, 8],
    [63, 15],
    [64, 16],
    [255, 16],
  ])('of %d options has %d of them, the likeliest, in the order of the client', (options, size) => {
    const [found] = shortlistsOf(input(choiceOf(options)), [rising(options)]);
    const places = rising(options).slice(options - size);
    expect(found?.places ?? []).toEqual(places.length === options ? [] : places);
    expect(found?.question.options.map(({ id }) => id) ?? []).toEqual(
      size === 0 ? [] : places.map((place) => `o${place}`),
    );
  });

  test('takes the first ones of equal scores', () => {
    const [found] = shortlistsOf(input(choiceOf(40)), [Array.from({ length: 40 }, () => 1)]);
    expect(found?.places).toEqual(rising(10));
  });

  test('is not made in consistent mode, nor of levels', () => {
    const score: Question = { type: 'score', instructions: 'How?', levels: rising(40).map(String) };
    expect(shortlistsOf(input(choiceOf(40), 'consistent'), [rising(40)])).toEqual([]);
    expect(shortlistsOf(input(score), [rising(40)])).toEqual([]);
  });
});

test('a second reading keeps what the others had, and its likeliest option is the answer', () => {
  const score = fc.double({ min: -20, max: 20, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(score, { minLength: 33, maxLength: 120 }),
      fc.array(score, { minLength: 16, maxLength: 16 }),
      (first, given) => {
        const [found] = shortlistsOf(input(choiceOf(first.length)), [first]);
        if (found === undefined) throw new Error('there are many options');
        const { places } = found;
        const second = given.slice(0, places.length);
        const before = softmax(first);
        const after = softmax(withSecondReading(first, places, second));
        before.forEach((share, place) => {
          if (!places.includes(place)) expect(after[place]).toBeCloseTo(share, 9);
        });
        const among = softmax(second);
        const sum = places.reduce((total, place) => total + (before[place] ?? 0), 0);
        places.forEach((place, at) => {
          expect(after[place]).toBeCloseTo(sum * (among[at] ?? 0), 9);
        });
        const best = places[among.indexOf(Math.max(...among))] ?? -1;
        expect(after[best]).toBeGreaterThanOrEqual(Math.max(...after) - 1e-9);
      },
    ),
  );
});
