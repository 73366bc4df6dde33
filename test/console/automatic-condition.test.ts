import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { automaticCondition } from '../../src/console/pages/evaluate/automatic-condition.ts';
import { noulAnswer, uncommittedProbability } from '../../src/questions/noul.ts';

const numbersIn = (text: string) => (text.match(/\d(\.\d+)?/g) ?? []).map(Number);

test('a threshold just below one is not told as one', () => {
  expect(automaticCondition('choice', 0.99996)).toEndWith('is at least 0.99996');
  expect(automaticCondition('noul', 0.99996)).toEndWith('is at least 0.999984, or at most 0.000016');
  expect(automaticCondition('score', 1)).toEndWith('is at least 1');
});

test('the told threshold lets pass just the answers that are as sure', () => {
  const parts = fc.integer({ min: 500_000, max: 1_000_000 });
  fc.assert(
    fc.property(parts, parts, (at, given) => {
      const told = numbersIn(automaticCondition('choice', at / 1e6));
      expect(given / 1e6 >= (told[0] ?? Number.NaN)).toBe(given >= at);
    }),
  );
  const probability = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(probability, probability, (at, given) => {
      // The page knows of an answer only this number.
      const [chosen, other] = [at, given].map((yes) => noulAnswer(yes, null).noul);
      if (chosen === undefined || other === undefined) throw new Error('there are two');
      const sureness = (noul: number) =>
        Math.max(uncommittedProbability(noul), 1 - uncommittedProbability(noul));
      const [yes = Number.NaN, no = Number.NaN] = numbersIn(automaticCondition('noul', sureness(chosen)));
      // On the other side of one half, millionths are of another width.
      if (chosen < 0.5 === other < 0.5) {
        expect(other >= yes || other <= no).toBe(sureness(other) >= sureness(chosen));
      }
    }),
  );
});
