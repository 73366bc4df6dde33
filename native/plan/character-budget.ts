/** A text has, or would be rendered to, more characters than the limit. */
export class TextTooLong extends Error {
  override readonly name = 'TextTooLong';
}

/** A budget of characters, because a small value can be rendered to a text many times its size. */
export class CharacterBudget {
  #left: number;

  constructor(most_characters: number) {
    this.#left = most_characters;
  }

  get left(): number {
    return this.#left;
  }

  /** Spends `characters`. Throws `TextTooLong` when fewer are left. */
  spend(characters: number): void {
    this.#left -= characters;
    if (this.#left < 0) throw new TextTooLong('The text has too many characters.');
  }
}
