/** A window's characters for each wanted token: more than any language needs. English has less than five. */
const WINDOW_CHARACTERS_PER_TOKEN = 8;
/** The number of extra tokens of a window, because tokens at its cut edge may differ from those of the whole text. */
const WINDOW_EDGE_TOKENS = 64;

/** Records are cut to whole steps of this fraction of the context, so that most questions share one cut. */
const CUT_STEPS = 64;

/** Returns the number of tokens that are read of a record of `length` with `room` left: all, or whole steps. */
export function readableTokens(length: number, room: number, context_tokens: number): number {
  if (length <= room) return length;
  const step = Math.max(1, Math.floor(context_tokens / CUT_STEPS));
  return room < step ? room : room - (room % step);
}

/** Returns `tokens` cut to `room`: the first and the last half of the room stay. */
export function cutMiddle(tokens: readonly number[], room: number): readonly number[] {
  if (tokens.length <= room) return tokens;
  const head = Math.floor(room / 2);
  return [...tokens.slice(0, head), ...tokens.slice(tokens.length - (room - head))];
}

/** Returns `at`, or one less if that would split a character of two code units. */
function characterStart(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/**
 * Returns the texts of a record of any length to tokenize. The caller cuts their joined tokens by `cutMiddle` to its
 * own room of at most `most_tokens`. The result is the same as for the tokens of the whole text. Of a far longer text
 * only a window at each end is tokenized, so that a megabyte does not delay other requests.
 *
 * The exception is a uniform text (white space, rules of dashes) that is longer than both windows. If it has less than
 * one token for eight characters, its middle is left out, though it might fit. Such text takes a tokenizer the longest.
 */
export function recordWindows(text: string, most_tokens: number): readonly string[] {
  // Each end keeps half of the room.
  const window_tokens = Math.ceil(most_tokens / 2) + WINDOW_EDGE_TOKENS;
  const window = window_tokens * WINDOW_CHARACTERS_PER_TOKEN;
  if (text.length <= 2 * window) return [text];
  return [
    text.slice(0, characterStart(text, window)),
    text.slice(characterStart(text, text.length - window)),
  ];
}
