/** Resolves with a promise's error. Rejects if the promise resolves. */
export async function rejection(work: PromiseLike<unknown>): Promise<unknown> {
  const [result] = await Promise.allSettled([work]);
  if (result.status === 'fulfilled') throw new Error('it was expected to reject');
  return result.reason;
}
