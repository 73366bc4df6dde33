/** A place that the palette leads to. */
export interface Destination {
  /** Its kind, which the list shows beside it: "Page", "Key". */
  readonly kind: string;
  readonly label: string;
  /** More words by whose beginnings it is found, such as a key's prefix. */
  readonly words?: string;
  readonly href: string;
}

/** The results that fit a screen without scrolling. */
export const SHOWN_MAX = 12;

/**
 * Returns the destinations that have every word of a text, at most `SHOWN_MAX`; without a text the first ones. A word is
 * looked for in the label, and at the beginning of the kind and the other words. The label that is the text comes first.
 * Next are the labels that begin with it, then those that have its words.
 */
export function matches(destinations: readonly Destination[], text: string): readonly Destination[] {
  const wanted = wordsOf(text);
  return destinations
    .filter((one) => wanted.every((word) => isIn(one, word)))
    .map((one) => ({ one, rank: rankOf(one, wanted) }))
    .toSorted((one, other) => one.rank - other.rank)
    .slice(0, SHOWN_MAX)
    .map(({ one }) => one);
}

function isIn({ kind, label, words = '' }: Destination, word: string): boolean {
  // An id is random: inside of it there is every number.
  return (
    label.toLowerCase().includes(word) || wordsOf(`${kind} ${words}`).some((one) => one.startsWith(word))
  );
}

function rankOf({ label }: Destination, wanted: readonly string[]): number {
  const named = wordsOf(label).join(' ');
  const text = wanted.join(' ');
  if (text === '' || named === text) return 0;
  if (named.startsWith(text)) return 1;
  return wanted.every((word) => named.includes(word)) ? 2 : 3;
}

function wordsOf(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
}
