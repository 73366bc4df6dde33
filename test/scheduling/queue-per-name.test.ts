import { expect, test } from 'bun:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { QueuePerName } from '../../src/scheduling/queue-per-name.ts';

/** Pieces of work that end when the test says so, and those that have begun, in order. */
function works(slots: QueuePerName) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  return {
    begun,
    async start(organization_id: string, name: string): Promise<string> {
      const end = Promise.withResolvers<string>();
      ends.set(name, end);
      using _slot = await slots.take(organization_id);
      begun.push(name);
      return await end.promise;
    },
    end: (name: string) => ends.get(name)?.resolve(name),
    fail: (name: string) => ends.get(name)?.reject(new Error(name)),
  };
}

test('so many of an organization go on at once, and the others follow in their order', async () => {
  const { begun, start, end, fail } = works(new QueuePerName(2));
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => start('one', name));
  await nextTurn();
  expect(begun).toEqual(['a', 'b']);
  end('b');
  expect(await b).toBe('b');
  // It comes after those that wait, though one has just ended.
  const e = start('one', 'e');
  await nextTurn();
  expect(begun).toEqual(['a', 'b', 'c']);
  fail('a');
  await expect(a).rejects.toThrow('a');
  await nextTurn();
  expect(begun).toEqual(['a', 'b', 'c', 'd']);
  for (const name of ['c', 'd', 'e']) end(name);
  expect(await Promise.all([c, d, e])).toEqual(['c', 'd', 'e']);
  expect(begun).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('organizations do not wait for each other', async () => {
  const { begun, start, end } = works(new QueuePerName(1));
  const all = [start('one', 'a'), start('one', 'b'), start('two', 'c')];
  await nextTurn();
  expect(begun).toEqual(['a', 'c']);
  for (const name of ['a', 'b', 'c']) end(name);
  await Promise.all(all);
});

test('when all work has ended, so many go on at once again', async () => {
  const { begun, start, end } = works(new QueuePerName(1));
  for (const name of ['a', 'b', 'c']) {
    const running = start('one', name);
    await nextTurn();
    expect(begun.at(-1)).toBe(name);
    end(name);
    await running;
  }
});
