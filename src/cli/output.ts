import { writeSync } from 'node:fs';
import { formatDollars } from '../contract/money.ts';
import { systemErrorCode } from '../errors/system-error-code.ts';
import { CommandFailed } from './command-failed.ts';

/** Returns a value as one JSON document, for scripts. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** Writes one JSON document to standard output, for scripts. */
export function printJson(value: unknown): void {
  process.stdout.write(jsonText(value));
}

/**
 * Writes a text that cannot be printed again to standard output, all of it before it returns. Throws `CommandFailed`
 * with `consequence`, a sentence, where that fails. The error has no cause, because a broken pipe is also how a
 * connection to a database ends.
 */
export function writeNow(text: string, consequence: string): void {
  const bytes = Buffer.from(text);
  try {
    for (let written = 0; written < bytes.length; ) {
      written += writeSync(process.stdout.fd, bytes, written);
    }
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    throw new CommandFailed(`Standard output cannot be written (${code}). ${consequence}`);
  }
}

/** Writes a line of text to standard output. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints a secret inside the transaction that stores it: nothing is changed where it cannot be printed. */
export function writeSecret(text: string): void {
  writeNow(text, 'Nothing was changed.');
}

/**
 * Prints rows under their headings in columns as wide as their widest cell; or `empty` when there is no row.
 */
export function printTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
): void {
  if (rows.length === 0) {
    printLine(empty);
    return;
  }
  const lines = [headings, ...rows];
  const widths = headings.map((_, column) =>
    Math.max(...lines.map((line) => Bun.stringWidth(line[column] ?? ''))),
  );
  for (const line of lines) {
    const cells = line.map(
      (cell, column) => cell + ' '.repeat((widths[column] ?? 0) - Bun.stringWidth(cell)),
    );
    printLine(cells.join('  ').trimEnd());
  }
}

/**
 * Prints a list: with `json` as one document of what `document` makes of each row, else as a table. `columns` has
 * its headings and their cells; `empty` is printed when there is no row. A line on standard error tells of the rows that
 * `limit` left out.
 */
export function printRows<Row>(
  { json, limit }: { readonly json?: true; readonly limit?: number },
  all: readonly Row[],
  empty: string,
  columns: Readonly<Record<string, (row: Row) => string>>,
  document: (row: Row) => unknown = (row) => row,
): void {
  const rows = all.slice(0, limit);
  if (rows.length < all.length) {
    process.stderr.write(`tds: Only the first ${rows.length} of ${all.length} are listed.\n`);
  }
  if (json) {
    printJson(rows.map((row) => document(row)));
    return;
  }
  const cells = Object.values(columns);
  printTable(
    Object.keys(columns),
    rows.map((row) => cells.map((cell) => cell(row))),
    empty,
  );
}

/** Returns a time for people: UTC to the second; a dash for none. */
export function formatTime(time_ms: number | null): string {
  return time_ms === null ? '-' : new Date(time_ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** Returns a monthly spend limit in dollars, or the word for no limit. */
export function formatLimit(limit_micros: number | null): string {
  return limit_micros === null ? 'none' : formatDollars(limit_micros);
}
