import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { DecoderSize } from '../../native/engine.ts';
import { FairQueue } from '../../src/scheduling/fair-queue.ts';

const always = () => true;
const tokens = fc.integer({ min: 1, max: 4_000 });

/** Takes the next piece, of which there must be one. */
function take<Piece>(queue: FairQueue<Piece>, hasRoom: (decoder: DecoderSize) => boolean = always) {
  const taken = queue.take(hasRoom);
  if (taken === undefined) throw new Error('nothing is waiting');
  return taken;
}

describe('organizations that wait at the same time', () => {
  test('are never more than the largest piece apart, whoever else comes and however long one was alone', () => {
    fc.assert(
      fc.property(
        fc.array(tokens, { minLength: 1, maxLength: 30 }),
        fc.array(tokens, { minLength: 1, maxLength: 30 }),
        fc.array(fc.option(tokens), { maxLength: 60 }),
        fc.array(tokens, { maxLength: 10 }),
        (of_a, of_b, of_others, of_a_before) => {
          const queue = new FairQueue<null>();
          const largest = Math.max(...of_a, ...of_b, ...of_others.map((cost) => cost ?? 0), ...of_a_before);
          for (const cost of [...of_a_before, ...of_a]) queue.add('a', 'small', cost, null);
          // The piece of A that is under way when B comes is A's in their common time.
          const served = { a: 0, b: 0 };
          for (const _ of of_a_before) served.a = take(queue).tokens;
          for (const cost of of_b) queue.add('b', 'small', cost, null);
          const left = { a: of_a.length, b: of_b.length };
          for (let turn = 0; left.a > 0 && left.b > 0; turn++) {
            const other = of_others[turn];
            if (typeof other === 'number') queue.add(`other ${turn % 5}`, 'small', other, null);
            const taken = take(queue);
            if (taken.flow === 'a' || taken.flow === 'b') {
              served[taken.flow] += taken.tokens;
              left[taken.flow] -= 1;
            }
            expect(Math.abs(served.a - served.b)).toBeLessThanOrEqual(largest);
          }
        },
      ),
    );
  });

  test('an organization that has just come is next, however many others have however much waiting', () => {
    fc.assert(
      fc.property(
        // Few different costs, so that many organizations have had the same.
        fc.array(fc.array(fc.constantFrom(100, 200, 3_000), { minLength: 2, maxLength: 20 }), {
          minLength: 1,
          maxLength: 10,
        }),
        fc.nat(100),
        tokens,
        (backlogs, turns, newcomer) => {
          const queue = new FairQueue<null>();
          backlogs.forEach((costs, index) => {
            for (const cost of costs) queue.add(`busy ${index}`, 'small', cost, null);
          });
          const pieces = backlogs.flat().length;
          // Everybody has been served once: nobody else is new.
          for (let turn = 0; turn < Math.min(pieces - 1, backlogs.length + turns); turn++) take(queue);
          queue.add('newcomer', 'small', newcomer, null);
          expect(take(queue).flow).toBe('newcomer');
        },
      ),
    );
  });

  test('nobody saves turns up by being away, and nobody pays for pieces that were taken back', () => {
    const queue = new FairQueue<string>();
    for (let index = 0; index < 20; index++) queue.add('a', 'small', 100, 'a');
    for (let index = 0; index < 10; index++) take(queue);
    const taken_back = Array.from({ length: 50 }, () => queue.add('b', 'small', 4_000, 'b'));
    for (const waiting of taken_back) queue.remove(waiting);
    for (let index = 0; index < 10; index++) queue.add('b', 'small', 100, 'b');
    const order = Array.from({ length: 10 }, () => take(queue).piece);
    expect(order.join('')).toBe('bababababa');
  });
});

test('every piece is taken once or taken back, the pieces of one organization and decoder in their order', () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('add' as const),
      organization: fc.constantFrom('a', 'b', 'c'),
      decoder: fc.constantFrom<DecoderSize>('small', 'large'),
      cost: tokens,
    }),
    fc.record({ kind: fc.constant('take' as const), small: fc.boolean(), large: fc.boolean() }),
    fc.record({ kind: fc.constant('remove' as const), index: fc.nat(20) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const queue = new FairQueue<number>();
      const waiting = new Map<number, ReturnType<typeof queue.add>>();
      let next = 0;
      const takeOne = (room: { readonly small: boolean; readonly large: boolean }) => {
        const taken = queue.take((decoder) => room[decoder]);
        if (taken === undefined) return false;
        expect(room[taken.decoder]).toBe(true);
        expect(waiting.get(taken.piece)).toBe(taken);
        const same = [...waiting.values()].filter(
          (one) => one.flow === taken.flow && one.decoder === taken.decoder,
        );
        expect(taken.piece).toBe(Math.min(...same.map((one) => one.piece)));
        waiting.delete(taken.piece);
        return true;
      };
      for (const one of steps) {
        if (one.kind === 'add') {
          waiting.set(next, queue.add(one.organization, one.decoder, one.cost, next));
          next += 1;
        } else if (one.kind === 'take') takeOne(one);
        else {
          const gone = [...waiting.values()][one.index];
          if (gone === undefined) continue;
          queue.remove(gone);
          waiting.delete(gone.piece);
        }
        const of_a = [...waiting.values()].filter((piece) => piece.flow === 'a');
        expect(queue.waitingTokens('a')).toBe(of_a.reduce((sum, piece) => sum + piece.tokens, 0));
      }
      while (waiting.size > 0) expect(takeOne({ small: true, large: true })).toBe(true);
      expect(queue.take(always)).toBeUndefined();
    }),
  );
});

describe('two decoders', () => {
  const only = (open: DecoderSize) => (decoder: DecoderSize) => decoder === open;

  test('small pieces pass large ones that have no room, their own and those of others', () => {
    const queue = new FairQueue<string>();
    queue.add('a', 'large', 16_000, 'large of a');
    queue.add('a', 'small', 100, 'small of a');
    queue.add('b', 'large', 16_000, 'large of b');
    queue.add('b', 'small', 100, 'small of b');
    expect(take(queue, only('small')).piece).toBe('small of a');
    expect(take(queue, only('small')).piece).toBe('small of b');
    expect(queue.take(only('small'))).toBeUndefined();
    expect(take(queue).piece).toBe('large of a');
  });

  test('with room for both, pieces of one organization are taken in their order', () => {
    const queue = new FairQueue<string>();
    queue.add('a', 'large', 16_000, 'large');
    queue.add('a', 'small', 100, 'small');
    expect([take(queue).piece, take(queue).piece]).toEqual(['large', 'small']);
  });

  test('a large piece that had no room for long gives a newcomer no turns of the others', () => {
    const queue = new FairQueue<string>();
    queue.add('a', 'large', 16_000, 'a');
    for (let index = 0; index < 70; index++) queue.add('b', 'small', 400, 'b');
    for (let index = 0; index < 61; index++) expect(take(queue, only('small')).piece).toBe('b');
    expect(take(queue, only('large')).piece).toBe('a');
    for (let index = 0; index < 3; index++) queue.add('c', 'small', 400, 'c');
    expect([take(queue).piece, take(queue).piece].sort()).toEqual(['b', 'c']);
  });

  test('a large piece does not pass the small ones of an organization that is due', () => {
    const queue = new FairQueue<string>();
    queue.add('a', 'large', 16_000, 'first of a');
    queue.add('a', 'large', 16_000, 'second of a');
    expect(take(queue).piece).toBe('first of a');
    for (let index = 0; index < 200; index++) queue.add('b', 'small', 100, 'b');
    for (let index = 0; index < 160; index++) {
      // The small decoder is full, and the large one has room.
      expect(queue.take(only('large'))).toBeUndefined();
      expect(take(queue).piece).toBe('b');
    }
    expect(take(queue, only('large')).piece).toBe('second of a');
  });
});
