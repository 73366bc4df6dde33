import { AnswerColumns, type Cell } from '../../../decisions/batch/answer-columns.ts';
import { isJsonObject, type JsonValue } from '../../../json/json-value.ts';
import { csvLine } from '../../../usage/csv.ts';
import { objectIn } from '../object-in.ts';
import type { AskedQuestion } from '../playground/asked.ts';
import { cellsOf, type RowFile } from '../rows/row-file.ts';
import { saveFile } from '../save-file.ts';

/** Formats of a download. */
export type DownloadFormat = 'csv' | 'jsonl';

/** The rows of a batch, and the answers that have come. */
export interface AnsweredRows {
  readonly file: RowFile;
  readonly questions: readonly AskedQuestion[];
  readonly answers: ReadonlyMap<number, string>;
}

/** Gives the reader a file with all rows in their order, each with its answer or error where it has one. */
export function download(rows: AnsweredRows, format: DownloadFormat): void {
  const parts = format === 'csv' ? csvParts(rows) : jsonParts(rows);
  saveFile(parts, `${rows.file.name.replace(/\.\w+$/, '')}-answers.${format}`);
}

function* csvParts({ file, questions, answers }: AnsweredRows): Generator<string> {
  const columns = new AnswerColumns(questions);
  // The first column of an answer is its id, which the row has no use for.
  const headings = [...columns.headings.slice(1), 'error'];
  const named = headings.map((name) => (file.columns.includes(name) ? `answer.${name}` : name));
  yield csvLine([...file.columns, ...named]);
  for (const [at, row] of file.rows.entries()) {
    const answer = objectIn(answers.get(at + 1) ?? '');
    const cells = answer === null ? columns.headings.map(() => '') : columns.row(answer);
    const error = messageOf(answer?.get('error'));
    yield csvLine([...cellsOf(row, file.columns).map(ownCell), ...cells.slice(1), error]);
  }
}

function* jsonParts({ file, answers }: AnsweredRows): Generator<string> {
  for (const [at, row] of file.rows.entries()) {
    yield `{"row":${at + 1},"data":${row},"answer":${answers.get(at + 1) ?? 'null'}}\n`;
  }
}

/** A number of the file stays one: as a text, a negative one would be taken for a formula. */
function ownCell(text: string): Cell {
  const number = Number(text);
  return String(number) === text ? number : text;
}

/** Returns the sentence of an error; empty where there is none. */
export function messageOf(error: JsonValue | undefined): string {
  const message = isJsonObject(error) ? error.get('message') : undefined;
  return typeof message === 'string' ? message : '';
}
