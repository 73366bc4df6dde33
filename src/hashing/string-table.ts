import { drawHashKey, type HashKey, halfSipHash } from './half-siphash.ts';

/** Every process draws its own key. */
const PROCESS_KEY: HashKey = drawHashKey();

/** A power of two. */
const FIRST_SLOTS = 64;

/**
 * Gives every distinct text a number, from 0 on. No choice of texts makes it slow, because clients do not
 * know the key of the hash. `Map`, `Set` and objects hash texts and numbers without a key.
 */
export class StringTable {
  readonly #texts: string[] = [];
  readonly #hashes: number[] = [];
  /**
   * The number of a text, plus one, in the first free slot from its hash on; at most half of the slots are
   * taken.
   */
  #slots = new Int32Array(FIRST_SLOTS);

  /** The distinct texts, by their numbers. */
  get texts(): readonly string[] {
    return this.#texts;
  }

  has(text: string): boolean {
    return this.#slots[this.#slotOf(text, halfSipHash(text, PROCESS_KEY))] !== 0;
  }

  /** Returns the number of a text; a new text gets the next one. */
  intern(text: string): number {
    const hash = halfSipHash(text, PROCESS_KEY);
    const slot = this.#slotOf(text, hash);
    const taken = this.#slots[slot] ?? 0;
    if (taken !== 0) return taken - 1;
    this.#texts.push(text);
    this.#hashes.push(hash);
    this.#slots[slot] = this.#texts.length;
    if (2 * this.#texts.length > this.#slots.length) this.#grow();
    return this.#texts.length - 1;
  }

  /** Returns the slot of the text, or the free one for it. */
  #slotOf(text: string, hash: number): number {
    const slots = this.#slots;
    let slot = hash & (slots.length - 1);
    for (let taken = slots[slot] ?? 0; taken !== 0; taken = slots[slot] ?? 0) {
      if (this.#hashes[taken - 1] === hash && this.#texts[taken - 1] === text) break;
      slot = (slot + 1) & (slots.length - 1);
    }
    return slot;
  }

  #grow(): void {
    const slots = new Int32Array(2 * this.#slots.length);
    this.#hashes.forEach((hash, index) => {
      let slot = hash & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = index + 1;
    });
    this.#slots = slots;
  }
}
