import { heapStats } from 'bun:jsc';
import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { FairScheduler } from '../../src/scheduling/fair-scheduler.ts';

/** Pieces of work that end when the test says so, in the order in which they began. */
function works(scheduler: FairScheduler) {
  const running: { readonly name: string; readonly end: () => void }[] = [];
  const begun: string[] = [];
  return {
    running,
    begun,
    start: (name: string) =>
      scheduler.run(name, () => {
        begun.push(name);
        return new Promise<void>((end) => running.push({ name, end }));
      }),
    /** Ends the piece that began first, and lets what follows begin. */
    async endOne() {
      running.shift()?.end();
      await new Promise(setImmediate);
    },
  };
}

describe('the fair scheduler', () => {
  test('are taken by so many at once, of a name by one, and all have theirs', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 }),
        async (at_once, names) => {
          const scheduler = new FairScheduler(at_once);
          const { running, begun, start, endOne } = works(scheduler);
          const all = names.map(start);
          while (begun.length < names.length || running.length > 0) {
            const at_work = running.map(({ name }) => name);
            expect(at_work.length).toBeLessThanOrEqual(at_once);
            expect(new Set(at_work).size).toBe(at_work.length);
            const by_name = [...new Set(names)].map((name) => scheduler.underWayOf(name));
            expect(by_name.reduce((sum, count) => sum + count, 0)).toBe(scheduler.under_way);
            expect(scheduler.under_way).toBe(names.length - begun.length + running.length);
            await endOne();
          }
          await Promise.all(all);
          expect(begun.toSorted()).toEqual(names.toSorted());
          expect(scheduler.under_way).toBe(0);
        },
      ),
    );
  });

  test('of somebody who comes are next, however many of how many others wait', async () => {
    const { begun, start, endOne } = works(new FairScheduler(2));
    const names = Array.from({ length: 60 }, (_, index) => `attacker ${index % 20}`);
    const all = names.map(start);
    for (let turn = 0; turn < 30; turn += 1) await endOne();
    const before = begun.length;
    all.push(start('owner'));
    await endOne();
    expect(begun.slice(before)).toEqual(['owner']);
    while (begun.length < 61) await endOne();
    await endOne();
    await endOne();
    await Promise.all(all);
  });

  test('of somebody who has gone take no memory, however many come', async () => {
    const scheduler = new FairScheduler(1);
    const objects = () => {
      Bun.gc(true);
      const { Array: arrays = 0, Map: maps = 0 } = heapStats().objectTypeCounts;
      return { arrays, maps };
    };
    const before = objects();
    for (let count = 0; count < 4_000; count++) await scheduler.run(`name ${count}`, () => Promise.resolve());
    const after = objects();
    // A thousand are remembered, with two maps each.
    expect(after.maps - before.maps).toBeLessThan(2_500);
    expect(after.arrays - before.arrays).toBeLessThan(1_000);
    expect(scheduler.under_way).toBe(0);
  });

  test('go on after a piece of work that failed', async () => {
    const scheduler = new FairScheduler(1);
    const failed = scheduler.run('a', () => Promise.reject(new Error('failed')));
    const next = scheduler.run('b', () => Promise.resolve('done'));
    expect(await failed.catch(String)).toBe('Error: failed');
    expect(await next).toBe('done');
  });
});
