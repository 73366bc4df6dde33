/** Resolves with the query's first row; undefined for none. */
export async function firstRow<T>(rows: PromiseLike<readonly T[]>): Promise<T | undefined> {
  const [row] = await rows;
  return row;
}
