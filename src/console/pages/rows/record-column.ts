import type { Option } from '../components/field.tsx';

/** The names of columns that are taken for the record without being chosen. */
const RECORD_COLUMNS = ['state', 'record', 'text', 'message', 'body'];
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

/** Returns the column that most likely has the record; null for all of them. */
export function likeliestRecord(columns: readonly string[]): string | null {
  const likeliest = columns.length === 1 ? columns[0] : RECORD_COLUMNS.find((name) => columns.includes(name));
  return likeliest ?? null;
}
