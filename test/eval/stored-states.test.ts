import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { STATE_SIZE } from '../../native/engine.ts';
import { readStates, storedStates } from '../../src/eval/stored-states.ts';

test('hidden states are read as they were stored, within a thousandth', () => {
  const state = fc.array(fc.double({ min: -40, max: 40, noNaN: true }), {
    minLength: STATE_SIZE,
    maxLength: STATE_SIZE,
  });
  fc.assert(
    fc.property(fc.array(state, { minLength: 1, maxLength: 3 }), (states) => {
      const read = readStates(storedStates(states), states.length) ?? [];
      expect(read.map(({ length }) => length)).toEqual(states.map(({ length }) => length));
      const numbers = states.flat();
      read.flat().forEach((number, at) => {
        const stored = numbers[at] ?? Number.NaN;
        expect(Math.abs(number - stored)).toBeLessThanOrEqual(1e-3 * Math.max(1, Math.abs(stored)));
      });
    }),
    { numRuns: 20 },
  );
});
