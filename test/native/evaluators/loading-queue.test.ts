import { expect, test } from 'bun:test';
import { loadInTurn } from '../../../native/evaluators/loading-queue.ts';

test('a load that hangs holds up the next one for a while only, and its own result comes whenever it does', async () => {
  const late = Promise.withResolvers<string>();
  const hanging = loadInTurn(() => late.promise, 1);
  expect(await loadInTurn(async () => 'next')).toBe('next');
  late.resolve('late');
  expect(await hanging).toBe('late');
});

test('a load that fails rejects, and the next one follows', async () => {
  const failed = loadInTurn(() => Promise.reject(new Error('no weights')));
  const next = loadInTurn(async () => 'next');
  await expect(failed).rejects.toThrow('no weights');
  expect(await next).toBe('next');
});
