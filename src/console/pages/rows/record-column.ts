import type { Option } from '../components/field.tsx';

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
