/** The first row that a query finds; undefined when it finds none. */
export async function firstRow<T>(rows: PromiseLike<readonly T[]>): Promise<T | undefined> {
  const [row] = await rows;
  return row;
}
