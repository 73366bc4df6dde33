import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { BodyShare } from '../../src/limits/body-budget.ts';
import { UnknownBodies } from '../../src/limits/unknown-bodies.ts';
import { propertySeed } from '../ledger/support.ts';

/** Bodies by name, and the names of those that had to end, in order. */
function bodiesOf(limits: ConstructorParameters<typeof UnknownBodies>[0]) {
  const bodies = new UnknownBodies(limits);
  const ended: string[] = [];
  const open = (address: string, name: string): BodyShare =>
    bodies.open(address, () => void ended.push(name));
  return { bodies, ended, open };
}

describe('bodies of unknown clients', () => {
  test('above the share of an address its own oldest ends, and nobody else has to', () => {
    const { ended, open } = bodiesOf({ total_bytes: 100, address_bytes: 30, body_bytes_min: 10 });
    open('b', 'other');
    for (const name of ['first', 'second', 'third']) open('a', name);
    expect(ended).toEqual([]);
    const fourth = open('a', 'fourth');
    expect(ended).toEqual(['first']);
    expect(fourth.take(15)).toBe(true);
    expect(ended).toEqual(['first', 'second']);
  });

  test('above what all have in common the oldest of all ends, and the newcomer has room', () => {
    const { bodies, ended, open } = bodiesOf({ total_bytes: 1_000, address_bytes: 20, body_bytes_min: 10 });
    for (let address = 0; address < 200; address += 1) open(`silent-${address}`, `silent-${address}`);
    expect(ended).toHaveLength(100);
    const honest = open('honest', 'honest');
    expect(honest.take(20)).toBe(true);
    honest.close();
    expect(ended).not.toContain('honest');
    expect(bodies.taken_bytes).toBe(1_000 - 20);
  });

  test('one that is larger than the share of its address ends itself', () => {
    const { bodies, ended, open } = bodiesOf({ total_bytes: 100, address_bytes: 30, body_bytes_min: 10 });
    expect(open('a', 'large').take(31)).toBe(false);
    expect(ended).toEqual(['large']);
    expect(bodies.taken_bytes).toBe(0);
  });

  test('no history takes more than there is, ends a body twice, or leaves bytes behind', () => {
    const step = fc.record({
      address: fc.integer({ min: 0, max: 4 }),
      body: fc.nat(30),
      act: fc.constantFrom('open', 'take', 'close'),
      bytes: fc.nat(25),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { bodies, ended, open } = bodiesOf({ total_bytes: 100, address_bytes: 40, body_bytes_min: 5 });
        const shares: BodyShare[] = [];
        for (const { act, address, body, bytes } of steps) {
          if (act === 'open') shares.push(open(String(address), String(shares.length)));
          const share = shares[body];
          if (act === 'take') share?.take(bytes);
          if (act === 'close') share?.close();
          expect(bodies.taken_bytes).toBeLessThanOrEqual(100);
        }
        for (const share of shares) share.close();
        expect(new Set(ended).size).toBe(ended.length);
        expect(bodies.taken_bytes).toBe(0);
      }),
      { seed: propertySeed('unknown bodies') },
    );
  });
});
