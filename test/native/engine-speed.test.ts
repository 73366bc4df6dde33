import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { expectedDuration_ms, speedOf, speedProbe } from '../../native/engine-speed.ts';
import { planPairs, planTokens } from '../../native/plan/plan.ts';

const [short, long] = [speedProbe(128), speedProbe(896)];

test('the probes are of so many tokens, each of which attends to itself and to all before it', () => {
  expect([planTokens(long), planPairs(long)]).toEqual([896, (896 * 897) / 2]);
  const plan = { prefix: [1, 2, 3], branches: [long, long].flatMap(({ branches }) => branches) };
  expect(planPairs(plan)).toBe(6 + 2 * (895 * 3 + (895 * 896) / 2));
});

test('a speed that explains both probes is found, and gives the time of any plan', () => {
  const speed = { ms_per_token: 0.5, ms_per_pair: 0.0002 };
  const measured = (plan: typeof short) => ({ plan, duration_ms: expectedDuration_ms(speed, [plan]) });
  const found = speedOf(measured(short), measured(long));
  expect(found.ms_per_token).toBeCloseTo(speed.ms_per_token, 9);
  expect(found.ms_per_pair).toBeCloseTo(speed.ms_per_pair, 9);
  const record = speedProbe(16_000);
  expect(expectedDuration_ms(found, [record, record])).toBeCloseTo(2 * (8_000 + 25_601.6), 3);
});

test('whatever slows one of the probes, a longer plan should take longer for each token', () => {
  const duration_ms = fc.double({ min: 0.01, max: 1e6, noNaN: true });
  fc.assert(
    fc.property(duration_ms, duration_ms, (short_ms, long_ms) => {
      const speed = speedOf({ plan: short, duration_ms: short_ms }, { plan: long, duration_ms: long_ms });
      expect(speed.ms_per_pair).toBeGreaterThan(0);
      expect(speed.ms_per_token).toBeGreaterThanOrEqual(-1e-9 * long_ms);
      expect(expectedDuration_ms(speed, [long]) / long_ms).toBeCloseTo(1, 6);
    }),
  );
});
