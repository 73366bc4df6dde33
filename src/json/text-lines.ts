type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
/** Makes the error for bytes that are no UTF-8. */
type NotUtf8 = (cause: unknown) => Error;

/**
 * Yields a text in UTF-8, in pieces. Throws as its pieces do, and what `notUtf8` makes of bytes that are none. Without
 * it, replacement characters stand in their place.
 */
export async function* textPieces(pieces: Pieces, notUtf8?: NotUtf8): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: notUtf8 !== undefined });
  const decode = (piece?: Uint8Array) => {
    try {
      return decoder.decode(piece, { stream: piece !== undefined });
    } catch (cause) {
      throw notUtf8?.(cause) ?? cause;
    }
  };
  for await (const piece of pieces) yield decode(piece);
  yield decode();
}

/**
 * Yields the lines of a text in UTF-8, and returns what follows its last end of a line. Only `\n` ends a line: a line
 * of JSON may have all other characters that some readers split at, such as U+2028. Throws as `textPieces` does.
 */
export async function* textLines(pieces: Pieces, notUtf8?: NotUtf8): AsyncGenerator<string, string> {
  let rest = '';
  for await (const piece of textPieces(pieces, notUtf8)) {
    const [first = '', ...lines] = piece.split('\n');
    const last = lines.pop();
    if (last === undefined) {
      rest += first;
      continue;
    }
    yield rest + first;
    yield* lines;
    rest = last;
  }
  return rest;
}

/** Yields the lines of a text; a last line needs no end. Throws as `textPieces` does. */
export async function* allLines(pieces: Pieces, notUtf8?: NotUtf8): AsyncGenerator<string> {
  const rest = yield* textLines(pieces, notUtf8);
  if (rest !== '') yield rest;
}
