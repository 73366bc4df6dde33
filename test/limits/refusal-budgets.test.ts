import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { HashKey } from '../../src/hashing/half-siphash.ts';
import {
  ADDRESS_REFUSALS_PER_MINUTE,
  keyRefusalsPerMinute,
  RefusalBudgets,
} from '../../src/limits/refusal-budgets.ts';
import { propertySeed } from '../ledger/support.ts';

const KEY: HashKey = [7, 0];
const REFUSED = { refusals: 1, body_bytes: 0 } as const;
const TIER_1_REQUESTS_PER_MINUTE = 300;

describe('of an address', () => {
  test('a minute of refusals at once, then one for each that fills up again', () => {
    const budgets = new RefusalBudgets(KEY);
    for (let count = 0; count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) {
      expect(budgets.addressWait_s('192.0.2.1', 0)).toBe(0);
      budgets.spendOfAddress('192.0.2.1', 0);
    }
    expect(budgets.addressWait_s('192.0.2.1', 0)).toBe(1);
    const until_one_more_ms = 60_000 / ADDRESS_REFUSALS_PER_MINUTE;
    expect(budgets.addressWait_s('192.0.2.1', until_one_more_ms - 1)).toBe(1);
    expect(budgets.addressWait_s('192.0.2.1', until_one_more_ms)).toBe(0);
    budgets.spendOfAddress('192.0.2.1', until_one_more_ms);
    expect(budgets.addressWait_s('192.0.2.1', until_one_more_ms)).toBe(1);
    expect(budgets.addressWait_s('192.0.2.1', 60_000 + until_one_more_ms)).toBe(0);
  });

  test('an attacker with very many addresses gets none of its own back sooner, nor takes more than a few others along', () => {
    const budgets = new RefusalBudgets(KEY);
    const spend = (address: string) => {
      for (let count = 0; count < ADDRESS_REFUSALS_PER_MINUTE; count += 1) budgets.spendOfAddress(address, 0);
    };
    spend('192.0.2.1');
    for (let index = 0; index < 100_000; index += 1) budgets.spendOfAddress(`10.${index}`, 0);
    expect(budgets.addressWait_s('192.0.2.1', 0)).toBeGreaterThan(0);

    const others = Array.from({ length: 1_000 }, (_, index) => `198.51.100.${index}`);
    for (let index = 0; index < 100; index += 1) spend(`203.0.113.${index}`);
    // A place of 65,536 is shared with one of a hundred attackers about once in 655 times.
    expect(others.filter((address) => budgets.addressWait_s(address, 0) > 0).length).toBeLessThan(10);
  });

  test('which addresses share a place is another secret in every process', () => {
    const victims = (key: HashKey) => {
      const budgets = new RefusalBudgets(key);
      for (let index = 0; index < 200_000; index += 1) {
        for (let count = 0; count < 3; count += 1) budgets.spendOfAddress(`10.${index % 500}`, 0);
      }
      return Array.from({ length: 5_000 }, (_, index) => `192.0.2.${index}`)
        .filter((address) => budgets.addressWait_s(address, 0) > 0)
        .join();
    };
    expect(victims([1, 0])).not.toBe(victims([2, 0]));
  });
});

describe('of a key', () => {
  test('is at least 3,000 a minute and twice what its organization may ask', () => {
    expect(keyRefusalsPerMinute(0)).toBe(3_000);
    expect(keyRefusalsPerMinute(300)).toBe(3_000);
    expect(keyRefusalsPerMinute(5_000)).toBe(10_000);
  });

  test('a client that is refused as often as it may ask never waits', () => {
    for (const requests_per_minute of [300, 700, 1_500, 2_500, 5_000, 20_000]) {
      const budgets = new RefusalBudgets(KEY);
      for (let minute = 0; minute < 10; minute += 1) {
        for (let count = 0; count < requests_per_minute; count += 1) {
          expect(budgets.keyWait_s('key', minute * 60_000)).toBe(0);
          budgets.spendOfKey('key', requests_per_minute, REFUSED, minute * 60_000);
        }
      }
    }
  });

  test('large bodies that were read for nothing use it up sooner', () => {
    const budgets = new RefusalBudgets(KEY);
    let count = 0;
    for (; budgets.keyWait_s('key', 0) === 0; count += 1) {
      budgets.spendOfKey('key', TIER_1_REQUESTS_PER_MINUTE, { refusals: 1, body_bytes: 1_048_576 }, 0);
    }
    expect(count).toBe(Math.ceil(3_000 / 65));
  });

  test('keys do not share it', () => {
    const budgets = new RefusalBudgets(KEY);
    for (let count = 0; count < 3_000; count += 1) budgets.spendOfKey('a', 300, REFUSED, 0);
    expect([budgets.keyWait_s('a', 0), budgets.keyWait_s('b', 0)]).toEqual([1, 0]);
  });

  test('forgetting the idle ones gives nobody anything back', () => {
    const budgets = new RefusalBudgets(KEY);
    for (let count = 0; count < 3_000; count += 1) budgets.spendOfKey('a', 300, REFUSED, 0);
    budgets.forgetIdle(0);
    expect(budgets.keyWait_s('a', 0)).toBe(1);
    budgets.forgetIdle(60_000);
    expect(budgets.keyWait_s('a', 60_000)).toBe(0);
  });
});

test('in no minute are more refusals let through than twice a budget, and the wait that is named is enough', () => {
  const pause_ms = fc.integer({ min: 0, max: 5_000 });
  fc.assert(
    fc.property(fc.array(pause_ms, { minLength: 1, maxLength: 60 }), (pauses) => {
      const budgets = new RefusalBudgets(KEY);
      const let_through: number[] = [];
      let now_ms = 0;
      for (const pause of pauses) {
        now_ms += pause;
        for (let count = 0; count < 500 && budgets.addressWait_s('a', now_ms) === 0; count += 1) {
          budgets.spendOfAddress('a', now_ms);
          let_through.push(now_ms);
        }
        const wait_s = budgets.addressWait_s('a', now_ms);
        if (wait_s > 0) expect(budgets.addressWait_s('a', now_ms + wait_s * 1_000)).toBe(0);
      }
      for (const from_ms of new Set(let_through)) {
        const in_minute = let_through.filter((at_ms) => at_ms >= from_ms && at_ms < from_ms + 60_000);
        expect(in_minute.length).toBeLessThanOrEqual(2 * ADDRESS_REFUSALS_PER_MINUTE);
      }
    }),
    { seed: propertySeed('refusal budgets'), numRuns: 50 },
  );
});
