/**
 * Characters that start a formula in spreadsheets, with their full-width forms. They count at the start of a
 * cell, and after characters at which some spreadsheets split or which they strip. Characters without a width
 * count as stripped.
 */
const FORMULA_START =
  /(^|["',;|\t\r\n])((?:(?![\t\r\n])[\s\p{C}\p{Default_Ignorable_Code_Point}])*)(?=[=+\-@\uFF1D\uFF0B\uFF0D\uFF20])/gu;
const CONTROL_START = /^(?=[\t\r\n])/;
const NEEDS_QUOTES = /[",;\t\r\n]/;

/** A column of a file: its name, and its value in a row. */
export type CsvColumn<Row> = readonly [name: string, value: (row: Row) => string | number];

/**
 * Returns one line of CSV (RFC 4180) with its line end. Text that a spreadsheet would run as a formula gets a
 * leading apostrophe, which makes spreadsheets show it as text. Numbers are unchanged.
 */
export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

/** Returns the first line of a file, the names of its columns. */
export function csvHeader(columns: readonly CsvColumn<never>[]): string {
  return csvLine(columns.map(([name]) => name));
}

/** Returns the line of a row. */
export function csvRow<Row>(columns: readonly CsvColumn<Row>[], row: Row): string {
  return csvLine(columns.map(([, value]) => value(row)));
}

/** Returns the text of a cell that no spreadsheet runs as a formula. */
export function harmlessText(value: string): string {
  return value.replace(FORMULA_START, "$1$2'").replace(CONTROL_START, "'");
}

function cellOf(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const harmless = harmlessText(value);
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
