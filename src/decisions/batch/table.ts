import { isJsonArray, isJsonObject, type JsonValue } from '../../json/json-value.ts';

/** The characters that separate cells in files that people call CSV. */
const DELIMITERS = [',', ';', '\t'] as const;

/** Returns the delimiter that is most frequent in the first line of a text that is not blank. */
export function likeliestDelimiter(text: string): string {
  const line = /^.*\S.*$/m.exec(text)?.[0] ?? '';
  const count = (delimiter: string) => line.split(delimiter).length;
  return DELIMITERS.reduce((best, delimiter) => (count(delimiter) > count(best) ? delimiter : best));
}

/** Returns the names of columns by the cells of the first row, or a sentence on why they name none. */
export function columnNames(cells: readonly string[]): readonly string[] | string {
  const columns = cells.map((name, at) => name.trim() || `Column ${at + 1}`);
  const twice = columns.find((name, at) => columns.indexOf(name) < at);
  return twice === undefined ? columns : `two columns have the name "${twice}". Give each a name of its own.`;
}

/** Returns true for a record that says nothing: it would be charged, and its answer be nonsense. */
export function isEmptyRecord(value: JsonValue): boolean {
  if (value === null) return true;
  if (typeof value === 'string') return value.trim() === '';
  if (isJsonArray(value)) return value.every(isEmptyRecord);
  return isJsonObject(value) && value.values.every(isEmptyRecord);
}
