import { createReadStream } from 'node:fs';
import { CommandFailed } from '../command-failed.ts';

/**
 * Yields the lines of a text in UTF-8, and returns what follows its last end of a line. Only `\n` ends a line: a line of
 * JSON may have all other characters that some readers split at, such as U+2028.
 */
export async function* textLines(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<string, string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of pieces) {
    const [first = '', ...lines] = decoder.decode(piece, { stream: true }).split('\n');
    const last = lines.pop();
    if (last === undefined) {
      rest += first;
      continue;
    }
    yield rest + first;
    yield* lines;
    rest = last;
  }
  return rest + decoder.decode();
}

/** Yields the lines of a text; a last line needs no end. Throws as its pieces do. */
export async function* allLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const rest = yield* textLines(pieces);
  if (rest !== '') yield rest;
}

/** Yields the pieces of a file. Throws `CommandFailed` where it is no UTF-8, and as reading does. */
export async function* utf8Pieces(path: string): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const check = (piece: Uint8Array, stream: boolean) => {
    try {
      decoder.decode(piece, { stream });
    } catch (error) {
      throw new CommandFailed(`${path} is not a text in UTF-8: save it again as UTF-8.`, { cause: error });
    }
  };
  for await (const piece of createReadStream(path)) {
    check(piece, true);
    yield piece;
  }
  check(new Uint8Array(), false);
}
