/** The last words in the names of columns that are taken for the record without being chosen, the likeliest first. */
const RECORD_WORDS = [
  'state',
  'record',
  'text',
  'message',
  'body',
  'content',
  'comment',
  'review',
  'description',
];

/**
 * Returns the column that most likely has the record, or null for all of them. It is the only one, or the shortest name
 * with such a last word, as `customer message` and `reviewText` have.
 */
export function likeliestRecord(columns: readonly string[]): string | null {
  const [only, ...others] = columns;
  if (only !== undefined && others.length === 0) return only;
  const by_length = columns.toSorted((one, other) => one.length - other.length);
  for (const word of RECORD_WORDS) {
    const found = by_length.find((name) => lastWordOf(name) === word);
    if (found !== undefined) return found;
  }
  return null;
}

function lastWordOf(name: string): string | undefined {
  const apart = name.replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2').toLowerCase();
  return apart.match(/[\p{L}\p{N}]+/gu)?.at(-1);
}
