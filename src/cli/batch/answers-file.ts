import { createHash } from 'node:crypto';
import {
  closeSync,
  createReadStream,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { resolve } from 'node:path';
import { CsvError, parse } from 'csv-parse';
import { FileInUse, lockFile } from '../../../db/sqlite/lock.ts';
import type { AnswerColumns, Cell } from '../../decisions/batch/answer-columns.ts';
import { systemErrorCode } from '../../errors/system-error-code.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { readJsonOr } from '../../json/read-json.ts';
import { allLines } from '../../json/text-lines.ts';
import { writeJson } from '../../json/write-json.ts';
import { csvLine, harmlessText } from '../../usage/csv.ts';
import { CommandFailed } from '../command-failed.ts';

/** Longer than any line of an answer. */
const TAIL_BYTES = 8 * 1_048_576;
const NEWLINE = 0x0a;
/** The beginning of every answer in JSON lines: before its id, and after it. */
const LINE_START = '{"id":';
const AFTER_ID = ',"line":';
/** An id, perhaps cut, and what follows a whole one. */
const ID_AND_REST = /^(?:"(?:[^"\\]|\\.)*(?:\\?$|"(.*)$)|-?\d*(.*)$)/s;

/** The id of a record, as the file says it. */
type Id = string | number;

/**
 * The file of a batch's answers: JSON lines, or CSV with `columns`. Each answer is one line that is written at once. So a
 * run that was killed leaves at most the beginning of a last line, which the next run removes. One run at a time may use
 * the file.
 */
export class AnswersFile {
  /** The ids that have an answer. */
  readonly #answered = new Set<string>();
  readonly #file: number;
  readonly #unlock: () => void;
  #errors: number | null = null;

  private constructor(
    readonly path: string,
    private readonly columns: AnswerColumns | null,
  ) {
    this.#unlock = locked(path);
    try {
      this.#file = openSync(path, 'a+');
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** Opens a file of answers, or makes it. Throws `CommandFailed` for any other file, and where another run uses it. */
  static async open(path: string, columns: AnswerColumns | null): Promise<AnswersFile> {
    let opened: AnswersFile | null = null;
    try {
      opened = new AnswersFile(path, columns);
      await opened.#read();
      return opened;
    } catch (error) {
      opened?.close();
      throw unwritable(path, error);
    }
  }

  /** Where the errors are. */
  get errors_path(): string {
    return `${this.path}.errors.jsonl`;
  }

  /** How many records have an answer. */
  get count(): number {
    return this.#answered.size;
  }

  /** Returns a text that is the same for all runs into this file, and for no other file. */
  get run_key(): string {
    const { ino, birthtimeMs } = fstatSync(this.#file);
    return createHash('sha256')
      .update(JSON.stringify([resolve(this.path), ino, birthtimeMs]))
      .digest('hex');
  }

  /** Returns the name by which an id is found; equal ones cannot be told apart in the file. */
  keyOf(id: Id): string {
    return this.columns === null ? JSON.stringify(id) : cellText(String(id));
  }

  has(id: Id): boolean {
    return this.#answered.has(this.keyOf(id));
  }

  /** Writes an answer. Throws `CommandFailed`. */
  add(id: Id, answer: JsonObject<JsonValue>): void {
    const line = this.columns === null ? `${writeJson(answer)}\n` : csvRow(this.columns.row(answer));
    writeAll(this.path, this.#file, line);
    this.#answered.add(this.keyOf(id));
  }

  /** Writes an error beside the answers. Throws `CommandFailed`. */
  addError(answer: JsonObject<JsonValue>): void {
    try {
      this.#errors ??= openSync(this.errors_path, 'w');
    } catch (error) {
      throw unwritable(this.errors_path, error);
    }
    writeAll(this.errors_path, this.#errors, `${writeJson(answer)}\n`);
  }

  close(): void {
    closeSync(this.#file);
    if (this.#errors !== null) closeSync(this.#errors);
    this.#unlock();
  }

  async #read(): Promise<void> {
    // Another file is not touched.
    const { bytes, rest } = wholeLines(this.#file);
    if (bytes > 0) await (this.columns === null ? this.#readJson(bytes) : this.#readCsv(this.columns, bytes));
    const is_ours =
      this.columns === null ? isCutAnswer(rest) : bytes > 0 || areAlike(rest, csvRow(this.columns.headings));
    if (!is_ours) throw otherFile(this.path);
    ftruncateSync(this.#file, bytes);
    rmSync(this.errors_path, { force: true });
    if (this.columns !== null && bytes === 0) writeAll(this.path, this.#file, csvRow(this.columns.headings));
  }

  async #readJson(bytes: number): Promise<void> {
    for await (const text of allLines(createReadStream(this.path, { end: bytes - 1 }))) {
      const id = idOf(text);
      if (id === undefined) throw otherFile(this.path);
      this.#answered.add(JSON.stringify(id));
    }
  }

  async #readCsv({ headings }: AnswerColumns, bytes: number): Promise<void> {
    const expected = headings.map(cellText);
    let is_heading = true;
    const rows = createReadStream(this.path, { end: bytes - 1 }).pipe(parse());
    try {
      for await (const row of rows) {
        if (!Array.isArray(row)) continue;
        if (is_heading && row.join('\n') !== expected.join('\n')) throw otherFile(this.path);
        if (!is_heading) this.#answered.add(String(row[0]));
        is_heading = false;
      }
    } catch (error) {
      throw error instanceof CsvError ? otherFile(this.path) : error;
    }
  }
}

/** Returns true for what is left of an answer in JSON lines when a run is killed: its beginning, or nothing. */
function isCutAnswer(rest: string): boolean {
  if (!areAlike(rest, LINE_START)) return false;
  const [, after_text, after_number] = ID_AND_REST.exec(rest.slice(LINE_START.length)) ?? [];
  // Only the end of its line may be missing.
  return (
    areAlike(after_text ?? after_number ?? '', AFTER_ID) &&
    (readJsonOr(rest, undefined) === undefined || idOf(rest) !== undefined)
  );
}

/** Returns true if one of two texts begins with the other. */
function areAlike(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}

/** Returns the id of a line of answers; undefined for any other text. */
function idOf(text: string): JsonValue | undefined {
  const answer = readJsonOr(text, undefined);
  return isJsonObject(answer) && answer.get('object') === 'decision' ? answer.get('id') : undefined;
}

/** Returns a text as its cell has it: without ends of lines, so that each row is one line of the file. */
function cellText(text: string): string {
  return harmlessText(text.replaceAll(/[\r\n]+/g, ' '));
}

function csvRow(cells: readonly Cell[]): string {
  return csvLine(cells.map((cell) => (typeof cell === 'number' ? cell : cell.replaceAll(/[\r\n]+/g, ' '))));
}

/** Returns the bytes of all whole lines of a file, and the text after them. */
function wholeLines(file: number): { readonly bytes: number; readonly rest: string } {
  const { size } = fstatSync(file);
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
  readSync(file, tail, 0, tail.byteLength, size - tail.byteLength);
  const end = tail.lastIndexOf(NEWLINE) + 1;
  return { bytes: size - tail.byteLength + end, rest: tail.toString('utf8', end) };
}

function locked(path: string): () => void {
  const lock = `${path}.lock`;
  try {
    const unlock = lockFile(lock);
    return () => {
      rmSync(lock, { force: true });
      unlock();
    };
  } catch (error) {
    if (!(error instanceof FileInUse)) throw error;
    throw new CommandFailed(
      `Another run writes ${path}: wait for its end, or name another file with --output.`,
      {
        cause: error,
      },
    );
  }
}

/** Writes a whole text. Throws `CommandFailed`. */
function writeAll(path: string, file: number, text: string): void {
  const bytes = Buffer.from(text);
  try {
    // A disk that is nearly full takes a part, and fails only for the rest.
    for (let at = 0; at < bytes.byteLength; ) at += writeSync(file, bytes, at);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Returns the sentence for a failure of the system; any other error as it is. */
function unwritable(path: string, error: unknown): unknown {
  const code = systemErrorCode(error);
  if (error instanceof CommandFailed || code === undefined) return error;
  return new CommandFailed(`${path} cannot be written (${code}).`, { cause: error });
}

function otherFile(path: string): CommandFailed {
  return new CommandFailed(
    `${path} is no file of answers to these questions: name another file with --output, or move it away.`,
  );
}
