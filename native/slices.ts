/** Long enough to cost little, and short beside what a client waits for. */
const SLICE_MS = 4;

/** Long work on the event loop in slices, so that other requests have their turns between them. */
export class Slices {
  #end_ms = performance.now() + SLICE_MS;

  /** Lets the event loop turn once this slice has lasted long enough; to be awaited between pieces of the work. */
  async pause(): Promise<void> {
    if (performance.now() < this.#end_ms) return;
    await new Promise(setImmediate);
    this.#end_ms = performance.now() + SLICE_MS;
  }

  /** What `work` gives for each item, in their order, with a pause before each. */
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
