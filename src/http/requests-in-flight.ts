/** The requests that the handler has not finished, including those of clients that are gone. */
export class RequestsInFlight {
  #count = 0;
  #onNone = () => {};

  get count(): number {
    return this.#count;
  }

  /** Adds a request until `work`, which never rejects, ends. */
  add(work: Promise<void>): void {
    this.#count += 1;
    void work.then(() => {
      this.#count -= 1;
      if (this.#count === 0) this.#onNone();
    });
  }

  /** Resolves when there is none, or after `max_ms`; with true if there is none. */
  async ended(max_ms: number): Promise<boolean> {
    if (this.#count === 0) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onNone = resolve;
    const late = setTimeout(resolve, max_ms);
    await promise;
    clearTimeout(late);
    return this.#count === 0;
  }
}
