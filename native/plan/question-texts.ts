import { StringTable } from '../../src/hashing/string-table.ts';
import type { JsonValue } from '../../src/json/json-value.ts';
import { PlanRejected } from '../errors.ts';
import { CharacterBudget, TextTooLong } from './character-budget.ts';
import type { Tokenizer } from './profile.ts';
import { isScalar, text } from './render.ts';

/**
 * Characters of a question that are looked at, for each token of the model's context: above what any language needs
 * (English has less than five a token), so that a longer text is refused before it costs the time to tokenize it.
 */
const CHARACTERS_PER_TOKEN_MAX = 8;
/** Characters that all values of a request's questions may be rendered to: as many as the largest body has bytes. */
const REQUEST_CHARACTERS_MAX = 2 ** 20;

/** Instructions, a description or a level as text; see `text`. */
export type TextReader = (value: JsonValue | undefined) => string;

/** The tokens of a text of the request. */
export type TokensOf = (text: string) => readonly number[];

/**
 * The texts of one wording of a question. Both functions throw `PlanRejected` with the question's index as soon as
 * the wording has too many characters to fit.
 */
export interface WordingTexts {
  readonly text: TextReader;
  /** Takes a text of the wording that is to be tokenized, and gives it back. */
  readonly take: (text: string) => string;
}

/**
 * Renders the questions of one request, within bounds, because one request that is long to render would hold up all
 * others; then tokenizes them in one batch. What several wordings share is rendered and tokenized once.
 */
export class QuestionTexts {
  /** Arrays and objects; of everything else the texts are in `#scalars`, since a map would hash what a client chose. */
  readonly #rendered = new Map<object, string>();
  readonly #scalars = new StringTable();
  readonly #wordings: { readonly index: number; readonly texts: string[] }[] = [];
  #request_characters = REQUEST_CHARACTERS_MAX;

  constructor(
    private readonly tokenizer: Tokenizer,
    private readonly context_tokens: number,
  ) {}

  /** A wording of question `index`; every wording may have as many characters and tokens as fit alone. */
  wording(index: number): WordingTexts {
    const most_characters = this.context_tokens * CHARACTERS_PER_TOKEN_MAX;
    const tooLong = () =>
      new PlanRejected(
        `The question has more than ${most_characters} characters, more than the ${this.context_tokens} tokens that the model can read at once.`,
        index,
      );
    let renderable = most_characters;
    let tokenizable = most_characters;
    const texts: string[] = [];
    this.#wordings.push({ index, texts });
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
   * Tokenizes what the wordings have taken, and `others`, in one batch. Rejects with `PlanRejected` when a wording has
   * too many tokens to fit, and as `Tokenizer.tokenize` does.
   */
  async tokenize(others: readonly string[]): Promise<TokensOf> {
    const texts = new StringTable();
    for (const written of others) texts.intern(written);
    for (const wording of this.#wordings) for (const written of wording.texts) texts.intern(written);
    const tokens = await this.tokenizer.tokenize(texts.texts);
    const tokensOf: TokensOf = (written) => {
      const ids = tokens[texts.intern(written)];
      if (ids === undefined) throw new Error('A text was not tokenized.');
      return ids;
    };
    for (const wording of this.#wordings) {
      const needed = wording.texts.reduce((sum, written) => sum + tokensOf(written).length, 0);
      if (needed <= this.context_tokens) continue;
      throw new PlanRejected(
        `The question needs more than the ${this.context_tokens} tokens that the model can read at once.`,
        wording.index,
      );
    }
    return tokensOf;
  }

  /** `value` as text of at most `most_characters`; a value that was rendered before costs nothing of the request's. */
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
