/** Tells listeners, after a commit, that a lookup of a key may say something else. Both databases have one. */
export class KeyChanges {
  readonly #listeners: (() => void)[] = [];

  listen(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** For changes outside of a transaction, once they are written. */
  readonly announce = (): void => {
    for (const listener of this.#listeners) listener();
  };

  /** Runs a transaction, which notes changes, and announces them once it is committed. */
  async afterCommit<T>(transaction: (note: () => void) => Promise<T>): Promise<T> {
    let is_changed = false;
    const result = await transaction(() => {
      is_changed = true;
    });
    if (is_changed) this.announce();
    return result;
  }
}

/** For records that only read. */
export function noKeyChange(): void {}
