import type { Option } from '../components/field.tsx';

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
/** The value of the choice that takes no column; a column's name has another first character. */
const NO_COLUMN = '*';

/** Returns the choices of a column, after one that takes none. */
export function columnOptions(columns: readonly string[], none: string): readonly Option<string>[] {
  return [{ value: NO_COLUMN, label: none }, ...columns.map((name) => ({ value: `=${name}`, label: name }))];
}

/** Returns the value of the choice of a column; null is none. */
export function columnValue(column: string | null): string {
  return column === null ? NO_COLUMN : `=${column}`;
}

/** Returns the column of a choice; null for none. */
export function columnIn(value: string): string | null {
  return value === NO_COLUMN ? null : value.slice(1);
}

/**
 * Returns the column that most likely has the record: the only one, or else the shortest name with such a last word, as
 * `customer message` and `reviewText` have. Returns null for all of them.
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
