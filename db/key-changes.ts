/** Tells listeners, after a commit, that lookups of keys may return other results. */
export class KeyChanges {
  readonly #listeners: (() => void)[] = [];

  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Tells the listeners at once, for changes that were written outside of a transaction. */
  readonly announce = (): void => {
    for (const listener of this.#listeners) listener();
  };

  /** Runs a transaction, and announces its noted changes after the commit. */
  async afterCommit<T>(transaction: (note: () => void) => Promise<T>): Promise<T> {
    let is_changed = false;
    const result = await transaction(() => {
      is_changed = true;
    });
    if (is_changed) this.announce();
    return result;
  }
}

/** Does nothing: the records of a snapshot change no key. */
export function noKeyChange(): void {}
