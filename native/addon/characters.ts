const CODE_POINTS = 0x110000;
const ASCII = 0x80;
/** Halves of a pair of UTF-16, which are no characters. */
const SURROGATES = { first: 0xd800, last: 0xdfff };

/** Ranges of code points beyond ASCII, first and last in turns. */
export interface CharacterRanges {
  readonly letters: Int32Array;
  readonly numbers: Int32Array;
  readonly spaces: Int32Array;
}

function ranges(text: string, pattern: RegExp): Int32Array {
  return Int32Array.from(
    Array.from(text.matchAll(pattern), ([run]) => [
      run.codePointAt(0) ?? 0,
      run.codePointAt(lastIndex(run)) ?? 0,
    ]).flat(),
  );
}

/** Where a text's last character starts. */
function lastIndex(text: string): number {
  const low = text.charCodeAt(text.length - 1);
  return text.length - (low >= 0xdc00 && low <= SURROGATES.last ? 2 : 1);
}

let known: CharacterRanges | undefined;

/** The classes of characters that split text into words, as this runtime's Unicode has them. */
export function characterRanges(): CharacterRanges {
  if (known !== undefined) return known;
  const pieces: string[] = [];
  for (let start = ASCII; start < CODE_POINTS; start += ASCII) {
    if (start >= SURROGATES.first && start <= SURROGATES.last) continue;
    pieces.push(String.fromCodePoint(...Array.from({ length: ASCII }, (_, index) => start + index)));
  }
  const all = pieces.join('');
  known = {
    letters: ranges(all, /\p{L}+/gu),
    numbers: ranges(all, /\p{N}+/gu),
    spaces: ranges(all, /\p{White_Space}+/gu),
  };
  return known;
}
