import { describe, expect, test } from 'bun:test';
import { CallSlots } from '../../src/upstreams/call-slots.ts';

const NEVER = new AbortController().signal;

/** Takes a slot, and notes it when it is given. */
function taker(slots: CallSlots) {
  const given: string[] = [];
  const taken: Disposable[] = [];
  const take = async (address: string, signal = NEVER) => {
    const slot = await slots.take(address, signal);
    given.push(address);
    taken.push(slot);
  };
  const count = (address: string) => given.filter((each) => each === address).length;
  return { take, taken, count };
}

/** Lets everything happen that needs no time. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('slots for calls', () => {
  test('are as many for each member as are free for others, so that there is one for every next member', async () => {
    const { take, count } = taker(new CallSlots(12));
    for (const address of ['a', 'b', 'c']) for (let call = 0; call < 20; call++) void take(address);
    await settled();
    expect([count('a'), count('b'), count('c')]).toEqual([6, 3, 2]);
  });

  test('go to the next call in order when one is given back, of any member that has room', async () => {
    const { take, taken, count } = taker(new CallSlots(4));
    for (let call = 0; call < 5; call++) void take('a');
    await settled();
    expect(count('a')).toBe(2);
    for (let call = 0; call < 3; call++) void take('b');
    await settled();
    expect(count('b')).toBe(1);
    for (let ended = 0; ended < 8; ended++) {
      taken[ended]?.[Symbol.dispose]();
      await settled();
    }
    expect([count('a'), count('b')]).toEqual([5, 3]);
  });

  test('are waited for until the call is given up; one that leaves in the moment of its turn gives its slot back', async () => {
    const slots = new CallSlots(2);
    const first = await slots.take('a', NEVER);
    const [early, late] = [new AbortController(), new AbortController()];
    const reasonOf = ({ signal }: AbortController) =>
      slots.take('a', signal).catch((error: unknown) => error);
    const left = reasonOf(early);
    early.abort('early');
    expect(await left).toBe('early');
    const leaving = reasonOf(late);
    first[Symbol.dispose]();
    late.abort('late');
    expect(await leaving).toBe('late');
    const { take, count } = taker(slots);
    void take('a');
    await settled();
    expect(count('a')).toBe(1);
  });
});
