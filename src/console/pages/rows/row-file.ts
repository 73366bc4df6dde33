import { columnNames, isEmptyRecord, likeliestDelimiter } from '../../../decisions/batch/table.ts';
import { JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { formatBytes, formatCount, formatNumber } from '../format.ts';
import { objectIn } from '../object-in.ts';

/** The rows of a file that somebody chose. */
export interface RowFile {
  readonly name: string;
  readonly columns: readonly string[];
  /** Each an object in JSON, from column to value. */
  readonly rows: readonly string[];
}

/** A larger file would hold the page up for too long. */
const FILE_BYTES_MAX = 25_000_000;
/** As in `src/http/batch-stream.ts`. */
const ROWS_MAX = 100_000;
/** The names of columns are those of so many lines of JSON. */
const LINES_WITH_NAMES = 1_000;

/** The ends of names of files, as the browser's dialog offers them. */
export const FILE_ENDS = '.csv,.tsv,.jsonl,.ndjson';

/** Returns the rows of a CSV or JSONL file, or a sentence on why there are none. */
export async function readRowFile(file: File): Promise<RowFile | string> {
  const { name, size } = file;
  const end = /\.(csv|tsv|jsonl|ndjson)$/i.exec(name)?.[1]?.toLowerCase();
  if (end === undefined) return `${name} is no CSV and no JSONL: its name must end in ${FILE_ENDS}.`;
  if (size > FILE_BYTES_MAX) {
    return `${name} has ${formatBytes(size)}: this page takes ${formatBytes(FILE_BYTES_MAX)}. The command "tds decide --batch" takes any size.`;
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return `${name} is not a text in UTF-8: save it again as UTF-8.`;
  }
  const read = end === 'csv' || end === 'tsv' ? await rowsOfCsv(text) : rowsOfLines(text);
  if (typeof read === 'string') return `${name}: ${read}`;
  const { length } = read.rows;
  if (length === 0) return `${name} has no rows.`;
  if (length > ROWS_MAX) {
    return `${name} has ${formatCount(length, 'row')}: a batch has at most ${formatNumber(ROWS_MAX)}.`;
  }
  return { name, ...read };
}

type Rows = Pick<RowFile, 'columns' | 'rows'>;

async function rowsOfCsv(text: string): Promise<Rows | string> {
  // Only this page needs it, and only with a file.
  const { parse, CsvError } = await import('csv-parse/browser/esm/sync');
  let table: readonly (readonly string[])[];
  try {
    const delimiter = likeliestDelimiter(text);
    table = parse(new TextEncoder().encode(text), { delimiter, skip_empty_lines: true });
  } catch (thrown) {
    if (!(thrown instanceof CsvError)) throw thrown;
    return csvComplaint(thrown);
  }
  const [names = [], ...rows] = table;
  const columns = columnNames(names);
  if (typeof columns === 'string') return columns;
  return { columns, rows: rows.map((cells) => writeJson(new JsonObject<JsonValue>(columns, cells))) };
}

function csvComplaint({
  code,
  message,
  ...place
}: {
  readonly code: string;
  readonly message: string;
}): string {
  const line = 'lines' in place && typeof place.lines === 'number' ? place.lines : 1;
  switch (code) {
    case 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH':
      return `line ${formatNumber(line)} has not as many cells as the first line.`;
    case 'CSV_QUOTE_NOT_CLOSED':
      return `line ${formatNumber(line)} opens a quotation mark that is never closed.`;
    case 'CSV_INVALID_CLOSING_QUOTE':
    case 'INVALID_OPENING_QUOTE':
      return `line ${formatNumber(line)} has a quotation mark within a cell. It must be doubled, and the cell in quotation marks.`;
    default:
      return `it cannot be read as CSV (${message}).`;
  }
}

function rowsOfLines(text: string): Rows | string {
  const names = new Set<string>();
  const rows: string[] = [];
  const lines = text.split('\n');
  for (const [at, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const row = objectIn(line);
    if (row === null) {
      const is_last = at + 1 === lines.length;
      return `line ${formatNumber(at + 1)} is not a JSON object${is_last ? ': the file ends in the middle of it' : ''}.`;
    }
    if (rows.length < LINES_WITH_NAMES) for (const name of row.names) names.add(name);
    rows.push(line.trim());
  }
  return { columns: [...names], rows };
}

/** Returns the record of a row: a column's value, or all of them as an object. Null where it says nothing. */
export function recordOf(row: string, column: string | null): JsonValue | null {
  return recordIn(column === null ? objectIn(row) : (objectIn(row)?.get(column) ?? null));
}

/** Returns a value as a record: null where it says nothing, and numbers as texts, because a record is none. */
export function recordIn(value: JsonValue): JsonValue | null {
  if (isEmptyRecord(value)) return null;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
}

/** Returns the values of a row as cells, in the order of the columns. */
export function cellsOf(row: string, columns: readonly string[]): readonly string[] {
  const values = objectIn(row);
  return columns.map((name) => {
    const value = values?.get(name) ?? '';
    return typeof value === 'string' ? value : writeJson(value);
  });
}
