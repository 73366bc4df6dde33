/** A piece of work that takes memory. */
export interface Sized {
  readonly bytes: number;
}

/** How much goes on at once, or waits for somebody to take its result. One piece always may. */
export interface WorkBounds {
  readonly at_once: number;
  readonly bytes: number;
}

/**
 * Yields the results of `work`, which never rejects, in the order in which they come. A result keeps the place of its item until
 * somebody takes it, and no item is taken without a place. Throws as `items` does, after the results of all that came
 * before.
 */
export async function* inOrderOfCompletion<Item extends Sized, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
  bounds: WorkBounds,
): AsyncGenerator<Result> {
  const done: { readonly result: Result; readonly bytes: number }[] = [];
  let under_way = 0;
  let bytes = 0;
  let is_at_end = false;
  let changed = Promise.withResolvers<void>();
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const beginAll = async () => {
    for await (const item of items) {
      while (under_way > 0 && (under_way >= bounds.at_once || bytes + item.bytes > bounds.bytes)) {
        await changed.promise;
      }
      under_way += 1;
      bytes += item.bytes;
      void work(item).then((result) => {
        done.push({ result, bytes: item.bytes });
        change();
      });
    }
  };
  const begun = beginAll().finally(() => {
    is_at_end = true;
    change();
  });
  // The reader of the results gets its failure at the end.
  begun.catch(() => undefined);
  while (!is_at_end || under_way > 0) {
    const next = done.shift();
    if (next === undefined) {
      await changed.promise;
      continue;
    }
    yield next.result;
    under_way -= 1;
    bytes -= next.bytes;
    change();
  }
  await begun;
}
