/** A place that the palette leads to. */
export interface Destination {
  /** Its kind, which the list shows beside it: "Page", "Key". */
  readonly kind: string;
  readonly label: string;
  /** More words by which it is found, such as a key's prefix. */
  readonly words?: string;
  readonly href: string;
}

/** The results that fit a screen without scrolling. */
export const SHOWN_MAX = 12;

/**
 * Returns the destinations with every word of a text, at most `SHOWN_MAX`: first those whose label begins with the text,
 * else in the given order. Without a text it returns the first ones.
 */
export function matches(destinations: readonly Destination[], text: string): readonly Destination[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter((word) => word !== '');
  const found = destinations.filter(({ kind, label, words: more = '' }) => {
    const searched = `${kind} ${label} ${more}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
  const begins = ({ label }: Destination) => wanted !== '' && label.toLowerCase().startsWith(wanted);
  return [...found.filter(begins), ...found.filter((one) => !begins(one))].slice(0, SHOWN_MAX);
}
