import { CharacterBudget, TextTooLong } from './character-budget.ts';
import type { JsonValue } from './json.ts';
import { PlanRejected, type Tokenizer } from './profile.ts';
import { text } from './render.ts';

/**
 * Characters of a question that are looked at, for each token of the model's context: above what any language needs
 * (English has less than five a token), so that a longer text is refused before it costs the time to tokenize it.
 */
const CHARACTERS_PER_TOKEN_MAX = 8;
/** Characters that all values of a request's questions may be rendered to: as many as the largest body has bytes. */
const REQUEST_CHARACTERS_MAX = 2 ** 20;

/** Instructions, a description or a level as text; see `text`. */
export type TextReader = (value: JsonValue | undefined) => string;

/**
 * The texts of one wording of a question. Both functions throw `PlanRejected` with the question's index as soon as
 * the wording cannot fit.
 */
export interface WordingTexts {
  readonly text: TextReader;
  readonly tokenize: (text: string) => readonly number[];
}

/**
 * Renders and tokenizes the questions of one request, within bounds: planning is synchronous, so one request that is
 * long to plan would hold up all others. What several wordings share is rendered and tokenized once.
 */
export class QuestionTexts {
  readonly #rendered = new Map<JsonValue, string>();
  readonly #tokenized = new Map<string, readonly number[]>();
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
    let tokens = 0;
    return {
      text: (value) => {
        const written = this.#render(value ?? null, renderable, index, tooLong);
        renderable -= written.length;
        return written;
      },
      tokenize: (written) => {
        tokenizable -= written.length;
        if (tokenizable < 0) throw tooLong();
        const ids = this.#tokenize(written);
        tokens += ids.length;
        if (tokens > this.context_tokens) {
          throw new PlanRejected(
            `The question needs more than the ${this.context_tokens} tokens that the model can read at once.`,
            index,
          );
        }
        return ids;
      },
    };
  }

  /** `value` as text of at most `most_characters`; a value that was rendered before costs nothing of the request's. */
  #render(value: JsonValue, most_characters: number, index: number, tooLong: () => PlanRejected): string {
    let written = this.#rendered.get(value);
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
      this.#rendered.set(value, written);
    }
    if (written.length > most_characters) throw tooLong();
    return written;
  }

  #tokenize(written: string): readonly number[] {
    let ids = this.#tokenized.get(written);
    if (ids === undefined) {
      ids = this.tokenizer.tokenize(written);
      this.#tokenized.set(written, ids);
    }
    return ids;
  }
}
