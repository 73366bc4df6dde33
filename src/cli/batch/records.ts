import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { Value } from '@sinclair/typebox/value';
import { CsvError, parse } from 'csv-parse';
import { BatchLines } from '../../decisions/batch/lines.ts';
import { LineIdSchema } from '../../decisions/batch/schemas.ts';
import { columnNames, likeliestDelimiter } from '../../decisions/batch/table.ts';
import { systemErrorCode } from '../../errors/system-error-code.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../../json/json-value.ts';
import { JsonError, readJson } from '../../json/read-json.ts';
import { allLines, textPieces } from '../../json/text-lines.ts';
import { CommandFailed } from '../command-failed.ts';

/** One record of a file. */
export interface BatchRecord {
  readonly id: string | number;
  /** The line of the batch, with the id. */
  readonly line: JsonObject<JsonValue>;
}

/** The first line of a file in JSON lines, where that is no record: questions, mode and model for all of them. */
export class RecordsHeader {
  constructor(readonly fields: JsonObject<JsonValue>) {}
}

/** The column or field with the record's text, and the one with its id. */
export const RECORD = 'state';
export const ID = 'id';

/** The formats of files by the end of their names. */
const FORMATS = { '.csv': 'csv', '.tsv': 'csv', '.jsonl': 'jsonl', '.ndjson': 'jsonl' } as const;
export type FileFormat = (typeof FORMATS)[keyof typeof FORMATS];

/** Returns the format of a file by its name. Throws `CommandFailed` for another one. */
export function formatOf(path: string): FileFormat {
  const found = Object.entries(FORMATS).find(([end]) => path.toLowerCase().endsWith(end));
  if (found !== undefined) return found[1];
  throw new CommandFailed(`${path} must end in ${Object.keys(FORMATS).join(', ')}.`);
}

/**
 * Yields the records of a file in their order, and its header before them where it has one. A record without an id has
 * the number of its line, or of its row. An empty cell of the column `id` is `row` and that number. Throws
 * `CommandFailed`, which names the line at fault.
 */
export async function* readRecords(path: string): AsyncGenerator<BatchRecord | RecordsHeader> {
  try {
    yield* formatOf(path) === 'csv' ? csvRecords(path) : jsonRecords(path);
  } catch (error) {
    if (error instanceof CsvError) throw new CommandFailed(`${path}: ${error.message}.`, { cause: error });
    const code = systemErrorCode(error);
    if (error instanceof CommandFailed || code === undefined) throw error;
    throw new CommandFailed(`${path} cannot be read (${code}).`, { cause: error });
  }
}

/** Returns what makes the error for a file that is no UTF-8. */
function notUtf8(path: string) {
  return (cause: unknown) =>
    new CommandFailed(`${path} is not a text in UTF-8: save it again as UTF-8.`, { cause });
}

async function* jsonRecords(path: string): AsyncGenerator<BatchRecord | RecordsHeader> {
  let number = 0;
  let is_first = true;
  for await (const text of allLines(createReadStream(path), notUtf8(path))) {
    number += 1;
    if (text.trim() === '') continue;
    const fail = (reason: string) => new CommandFailed(`${path}, line ${number}: ${reason}`);
    const line = jsonOf(text, fail);
    const has_header = is_first && new BatchLines(line).has_header;
    is_first = false;
    if (has_header) {
      yield new RecordsHeader(line);
      continue;
    }
    const id = line.get(ID) ?? number;
    if (!Value.Check(LineIdSchema, id) || id === null) {
      throw fail('the id must be a string of at most 255 characters, or a whole number below 2^53.');
    }
    yield { id, line: line.with(ID, id) };
  }
}

function jsonOf(text: string, fail: (reason: string) => CommandFailed): JsonObject<JsonValue> {
  try {
    const value = readJson(text, { keeps_outer_numbers: true });
    if (isJsonObject(value)) return value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    if (error.place === null) throw fail(`the line is ${error.message}.`);
    throw fail(`the line is not valid JSON, at column ${error.place.column}.`);
  }
  throw fail('a line must be a JSON object with a record as "state".');
}

async function* csvRecords(path: string): AsyncGenerator<BatchRecord> {
  const parser = parse({ bom: true, delimiter: await delimiterOf(path), skip_empty_lines: true });
  const file = Readable.from(textPieces(createReadStream(path), notUtf8(path)));
  file.on('error', (error) => parser.destroy(error)).pipe(parser);
  let columns: readonly string[] | null = null;
  let row = 0;
  for await (const cells of parser) {
    if (!isCells(cells)) continue;
    if (columns === null) {
      const names = columnNames(cells);
      if (typeof names === 'string') throw new CommandFailed(`${path}: ${names}`);
      columns = names;
      continue;
    }
    row += 1;
    yield recordOf(columns, cells, row);
  }
}

function isCells(value: unknown): value is readonly string[] {
  return Array.isArray(value);
}

/** Returns a row as a record: the text of its column `state`, or all columns but the id as an object. */
function recordOf(columns: readonly string[], cells: readonly string[], row: number): BatchRecord {
  const at = (name: string) => cells[columns.indexOf(name)];
  const named = at(ID);
  // Beside ids of others, the bare number may be one of them.
  const id = named?.trim() === '' ? `row ${row}` : (named ?? row);
  const fields = columns.map((name, index) => [name, cells[index] ?? ''] as const);
  const whole = JsonObject.of<JsonValue>(fields.filter(([name]) => name !== ID));
  return { id, line: new JsonObject<JsonValue>([ID, RECORD], [id, at(RECORD) ?? whole]) };
}

async function delimiterOf(path: string): Promise<string> {
  for await (const line of allLines(createReadStream(path), notUtf8(path)))
    if (line.trim() !== '') return likeliestDelimiter(line);
  return likeliestDelimiter('');
}
