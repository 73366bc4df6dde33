import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { AttemptBudgets } from '../../src/limits/attempt-budgets.ts';
import { propertySeed } from '../ledger/support.ts';

const KEY = [1, 2] as const;

test('a name has its attempts at once, then one for each time that passes, and others have their own', () => {
  const budgets = new AttemptBudgets({ guess: { at_once: 3, refill_ms: 100 } }, KEY);
  expect([0, 0, 0, 0].map((now_ms) => budgets.spend('guess', 'ada', now_ms))).toEqual([0, 0, 0, 100]);
  expect(budgets.spend('guess', 'eve', 0)).toBe(0);
  expect(budgets.spend('guess', 'ada', 60)).toBe(40);
  expect([100, 100].map((now_ms) => budgets.spend('guess', 'ada', now_ms))).toEqual([0, 100]);
});

test('an attempt that is given back can be taken again; kinds do not share', () => {
  const budget = { at_once: 1, refill_ms: 100 };
  const budgets = new AttemptBudgets({ guess: budget, mail: budget }, KEY);
  expect([budgets.spend('guess', 'ada', 0), budgets.spend('mail', 'ada', 0)]).toEqual([0, 0]);
  budgets.giveBack('guess', 'ada');
  expect([budgets.spend('guess', 'ada', 0), budgets.spend('mail', 'ada', 0)]).toEqual([0, 100]);
});

test('in no stretch of time are there more attempts than at once and one for each refill', () => {
  fc.assert(
    fc.property(
      fc.record({ at_once: fc.integer({ min: 1, max: 9 }), refill_ms: fc.integer({ min: 1, max: 50 }) }),
      fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 80 }),
      (budget, steps_ms) => {
        const budgets = new AttemptBudgets({ guess: budget }, KEY);
        const taken_ms: number[] = [];
        let now_ms = 0;
        for (const step_ms of steps_ms) {
          now_ms += step_ms;
          if (budgets.spend('guess', 'ada', now_ms) === 0) taken_ms.push(now_ms);
        }
        for (const [first, start_ms] of taken_ms.entries()) {
          for (const [last, end_ms] of taken_ms.entries()) {
            if (last < first) continue;
            expect(last - first + 1).toBeLessThanOrEqual(
              budget.at_once + Math.floor((end_ms - start_ms) / budget.refill_ms),
            );
          }
        }
      },
    ),
    { seed: propertySeed('attempt budgets') },
  );
});
