/** The length of a slice: long enough to cost little, and short beside a client's wait. */
const SLICE_MS = 4;

/** Slices long work on the event loop, so that other requests can run in between. */
export class Slices {
  #end_ms = performance.now() + SLICE_MS;

  /** Lets the event loop turn if this slice was long enough. The work awaits it between its pieces. */
  async pause(): Promise<void> {
    if (performance.now() < this.#end_ms) return;
    await new Promise(setImmediate);
    this.#end_ms = performance.now() + SLICE_MS;
  }

  /** Resolves with the results of `work` for each item in order, with a pause before each. */
  async map<Item, Result>(
    items: readonly Item[],
    work: (item: Item, index: number) => Result,
  ): Promise<readonly Result[]> {
    const results: Result[] = [];
    for (const [index, item] of items.entries()) {
      await this.pause();
      results.push(work(item, index));
    }
    return results;
  }
}
