/** What the promise rejects with. Rejects itself where it does not. */
export async function rejection(work: Promise<unknown>): Promise<unknown> {
  const [result] = await Promise.allSettled([work]);
  if (result.status === 'fulfilled') throw new Error('it was expected to reject');
  return result.reason;
}
