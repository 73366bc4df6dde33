/** A model's vocabulary: the text of every token by its id, and which of them are control tokens. */
export interface Vocabulary {
  readonly texts: readonly string[];
  /** Ids of the tokens that text should not produce: control tokens, and those that a model's maker defined. */
  readonly special: ReadonlySet<number>;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  /** Whether the model expects every text to begin with `bos`. */
  readonly begins_with_bos: boolean;
}

/** What stands for bytes that are no UTF-8: texts with it may differ in the file. */
const REPLACEMENT = '\ufffd';

/** Whether two tokens have the same text. Those without any are told apart by llama.cpp itself. */
export function hasEqualTexts({ texts }: Vocabulary): boolean {
  const known = texts.filter((text) => text !== '' && !text.includes(REPLACEMENT));
  return new Set(known).size < known.length;
}
