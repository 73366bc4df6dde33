import { StringTable } from '../../src/hashing/string-table.ts';
import type { JsonValue } from '../../src/json/json-value.ts';
import { PlanRejected } from '../errors.ts';
import type { Tokenizer } from './profile.ts';
import { CharacterBudget, isScalar, type TextReader, TextTooLong, text } from './render.ts';

/**
 * The largest number of a question's characters for each token of the context. No language needs as many (English has
 * less than five a token). A longer text is refused before it is tokenized.
 */
const CHARACTERS_PER_TOKEN_MAX = 8;
/** The largest number of characters of a request's rendered questions: the bytes of the largest body. */
const REQUEST_CHARACTERS_MAX = 2 ** 20;

/** Returns the tokens of a text of the request. */
export type TokensOf = (text: string) => readonly number[];

/**
 * The texts of one reading of a question. Both functions throw `PlanRejected` with the question's index once the
 * reading has too many characters.
 */
export interface ReadingTexts {
  readonly text: TextReader;
  /** Adds a text of the reading to the batch to tokenize, and returns it. */
  readonly take: (text: string) => string;
}

/**
 * Renders the questions of one request, then tokenizes them in one batch. Rendering is bounded, because a long
 * rendering would delay all other requests. Values that several readings share are rendered and tokenized once.
 */
export class QuestionTexts {
  /**
   * The texts of arrays and objects. Those of other values are in `#scalars`, because a map would hash a client's text.
   */
  readonly #rendered = new Map<object, string>();
  readonly #scalars = new StringTable();
  readonly #readings: { readonly index: number; readonly texts: string[] }[] = [];
  #request_characters = REQUEST_CHARACTERS_MAX;

  constructor(
    private readonly tokenizer: Tokenizer,
    private readonly context_tokens: number,
  ) {}

  /** Returns a reading of question `index`. Every reading may have as many characters and tokens as fit alone. */
  reading(index: number): ReadingTexts {
    const most_characters = this.context_tokens * CHARACTERS_PER_TOKEN_MAX;
    const tooLong = () =>
      new PlanRejected(
        `The question has more than ${most_characters} characters, more than the ${this.context_tokens} tokens that the model can read at once.`,
        index,
      );
    let renderable = most_characters;
    let tokenizable = most_characters;
    const texts: string[] = [];
    this.#readings.push({ index, texts });
    return {
      text: (value) => {
        const written = this.#render(value ?? null, renderable, index, tooLong);
        renderable -= written.length;
        return written;
      },
      take: (written) => {
        tokenizable -= written.length;
        if (tokenizable < 0) throw tooLong();
        texts.push(written);
        return written;
      },
    };
  }

  /**
   * Tokenizes the readings' texts and `others` in one batch. Rejects with `PlanRejected` if a reading has too many
   * tokens, and as `Tokenizer.tokenize` does.
   */
  async tokenize(others: readonly string[]): Promise<TokensOf> {
    const texts = new StringTable();
    for (const written of others) texts.intern(written);
    for (const reading of this.#readings) for (const written of reading.texts) texts.intern(written);
    const tokens = await this.tokenizer.tokenize(texts.texts);
    const tokensOf: TokensOf = (written) => {
      const ids = tokens[texts.intern(written)];
      if (ids === undefined) throw new Error('A text was not tokenized.');
      return ids;
    };
    for (const reading of this.#readings) {
      const needed = reading.texts.reduce((sum, written) => sum + tokensOf(written).length, 0);
      if (needed <= this.context_tokens) continue;
      throw new PlanRejected(
        `The question needs more than the ${this.context_tokens} tokens that the model can read at once.`,
        reading.index,
      );
    }
    return tokensOf;
  }

  /**
   * Renders `value` as text of at most `most_characters`. A value that was rendered before costs nothing of the
   * request's budget.
   */
  #render(value: JsonValue, most_characters: number, index: number, tooLong: () => PlanRejected): string {
    let written = this.#renderedBefore(value);
    if (written === undefined) {
      const budget = new CharacterBudget(Math.min(most_characters, this.#request_characters));
      try {
        written = text(value, budget);
      } catch (error) {
        if (!(error instanceof TextTooLong)) throw error;
        if (most_characters <= this.#request_characters) throw tooLong();
        throw new PlanRejected(
          `The questions have more than ${REQUEST_CHARACTERS_MAX} characters together.`,
          index,
        );
      }
      this.#request_characters -= written.length;
      if (isScalar(value)) this.#scalars.intern(written);
      else this.#rendered.set(value, written);
    }
    if (written.length > most_characters) throw tooLong();
    return written;
  }

  #renderedBefore(value: JsonValue): string | undefined {
    if (!isScalar(value)) return this.#rendered.get(value);
    const written = text(value);
    return this.#scalars.has(written) ? written : undefined;
  }
}
