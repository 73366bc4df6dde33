/** A model's vocabulary: the text of every token by its id, and the control tokens. */
export interface Vocabulary {
  readonly texts: readonly string[];
  /** The ids of tokens that text must not produce: control tokens and user-defined ones. */
  readonly special: ReadonlySet<number>;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  /** True if the model expects every text to begin with `bos`. */
  readonly begins_with_bos: boolean;
}

/** The character for bytes that are no UTF-8. Texts with it may differ in the file. */
const REPLACEMENT = '\ufffd';

/** Returns true if two tokens have the same text. llama.cpp itself tells tokens without text apart. */
export function hasEqualTexts({ texts }: Vocabulary): boolean {
  const known = texts.filter((text) => text !== '' && !text.includes(REPLACEMENT));
  return new Set(known).size < known.length;
}
