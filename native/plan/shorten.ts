/** Characters of a window for each token wanted of it: more than any language needs; English has less than five. */
const WINDOW_CHARACTERS_PER_TOKEN = 8;
/** Tokens at a window's cut edge may differ from those of the whole text: this many more are wanted than are used. */
const WINDOW_EDGE_TOKENS = 64;

/** A record that is cut is cut to whole steps of this part of the context, so that most questions share one cut. */
const CUT_STEPS = 64;

/**
 * How many tokens of a record of `length` are read where `room` of the context's are left: all of it, or whole steps.
 */
export function readableTokens(length: number, room: number, context_tokens: number): number {
  if (length <= room) return length;
  const step = Math.max(1, Math.floor(context_tokens / CUT_STEPS));
  return room < step ? room : room - (room % step);
}

/** `tokens` cut to `room`: the first half of the room and the last half stay. */
export function cutMiddle(tokens: readonly number[], room: number): readonly number[] {
  if (tokens.length <= room) return tokens;
  const head = Math.floor(room / 2);
  return [...tokens.slice(0, head), ...tokens.slice(tokens.length - (room - head))];
}

/** `at`, or one less where a character of two code units would be cut in two. */
function characterStart(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/**
 * What is tokenized of a record of any length. The caller cuts the tokens of these texts, one after the other, by
 * `cutMiddle` to its own room of at most `most_tokens`. The result is the same as for the tokens of the whole text. Of
 * a far longer text only a window at each end is tokenized, so that one request of a megabyte does not delay all
 * others.
 *
 * The exception is a uniform text (white space, rules of dashes) that is longer than both windows. Where it has less
 * than one token to eight characters, its middle is left out, though it might fit. Such text takes a tokenizer the
 * longest.
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
