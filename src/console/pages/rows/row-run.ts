import { type ReadonlySignal, signal } from '@preact/signals';
import { microsOf } from '../../../contract/money.ts';
import { canGoOn, whyEnded } from '../../../decisions/batch/ending.ts';
import { retryOf } from '../../../errors/errors.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { NESTING_MAX } from '../../../json/read-json.ts';
import { writeJson } from '../../../json/write-json.ts';
import { ApiError, asApiError, callForLines } from '../client.ts';
import { objectIn } from '../object-in.ts';
import { pause } from '../pause.ts';
import type { Kept, RunKeeper, RunStore } from './kept-rows.ts';
import type { RunSetup } from './run-setup.ts';

/** How far a run over the rows of a file is. */
export interface RunProgress {
  readonly state: 'stopped' | 'running' | 'pausing';
  readonly answered: number;
  /** Rows that got an error, which would be the same again. */
  readonly refused: number;
  readonly cost_micros: number;
  /** Why rows are not answered: the run has stopped, or tries again. */
  readonly failure: ApiError | null;
  /** Milliseconds until the end, as it goes now; null while that is not known. */
  readonly left_ms: number | null;
  /** `unkept` where the browser had no room for rows or answers. */
  readonly kept: Kept;
}

/** The record of a row, and what is asked about it. */
export interface AskedRow {
  readonly record: JsonValue;
  readonly questions: JsonValue;
}

/** Rows of a file that can be asked. */
export interface RowTask {
  readonly organization_id: string;
  readonly key_id: string;
  /** Those that are asked, by their number from 1. */
  readonly rows: readonly number[];
  /** The questions of all rows that are not asked others. */
  readonly questions: JsonValue;
  /** Null for a row that has no record. */
  readonly asked: (row: number) => AskedRow | null;
  readonly setup: Pick<RunSetup, 'model' | 'mode' | 'run_key'>;
}

/** A request has as many rows as are answered in so long: a pause waits for them. */
const REQUEST_MS = 10_000;
const ROWS_AT_FIRST = 32;
const ROWS_MIN = 8;
const ROWS_MAX = 2_000;
/** Characters of a request after which no row is added. */
const REQUEST_LENGTH = 2_000_000;

/** The waits between tries that bring no answer; after the last one the run stops. */
const WAITS_MS = [1_000, 2_000, 5_000, 10_000, 20_000];

/** As in `src/http/body-bytes.ts`. */
const LINE_BYTES_MAX = 1_048_576;
/** The line of a row is a level around its record. */
const RECORD_NESTING_MAX = NESTING_MAX - 1;

/** The errors of rows that are not asked. */
const UNASKED = {
  // The answer would say nothing and be charged.
  missing_state: 'The row has no record.',
  // The service would not read the line.
  request_too_large: 'The row is larger than 1 MB.',
  invalid_request: `The record of the row is nested deeper than ${RECORD_NESTING_MAX} levels.`,
} as const;

/** The line of a request that asks about a row. */
interface RowLine {
  readonly row: number;
  readonly text: string;
}

/**
 * Asks about the rows of a file that have no answer, some of them in each request. Every answer is kept in the browser as
 * it comes. Rows that were sent and whose answer was lost are sent again under the same key, and not charged again.
 */
export class RowRun {
  /** The lines of answers, by the number of their row from 1. */
  readonly #answers: Map<number, string>;
  readonly #progress = signal<RunProgress>({
    state: 'stopped',
    answered: 0,
    refused: 0,
    cost_micros: 0,
    failure: null,
    left_ms: null,
    kept: 'kept',
  });
  #pausing = new AbortController();
  #leaving = new AbortController();
  /** Resolves when all answers so far are kept, or cannot be. Never rejects. */
  #keeping: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly keeper: Pick<RunKeeper<RunStore>, 'keepAnswers'>,
    answers: ReadonlyMap<number, string> = new Map(),
  ) {
    this.#answers = new Map(answers);
    for (const answer of answers.values()) this.#count(objectIn(answer));
  }

  get progress(): ReadonlySignal<RunProgress> {
    return this.#progress;
  }

  get answers(): ReadonlyMap<number, string> {
    return this.#answers;
  }

  /** Notes what became of keeping it. It pauses where it was replaced, and goes on only if that is asked for. */
  note(kept: Kept): void {
    if (kept === 'replaced' && this.#progress.value.kept !== kept) this.pause();
    this.#tell({ kept });
  }

  /** Asks until all rows have an answer or an error, or it is paused. Never rejects: a failure is told. */
  async start(task: RowTask): Promise<void> {
    if (this.#progress.value.state !== 'stopped') return;
    this.#pausing = new AbortController();
    this.#leaving = new AbortController();
    this.#tell({ state: 'running', failure: null, left_ms: null });
    // A run that was replaced meanwhile asks, and pays for, nothing.
    this.#add(task, []);
    await this.#keeping;
    try {
      await this.#toEnd(task);
    } catch (thrown) {
      this.#tell({ failure: asApiError(thrown) });
    }
    // A reader who is told that all rows are done may leave the page.
    await this.#keeping;
    this.#tell({ state: 'stopped', left_ms: null });
  }

  /** Stops once the rows that were sent are answered. */
  pause(): void {
    if (this.#progress.value.state !== 'running') return;
    this.#tell({ state: 'pausing' });
    this.#pausing.abort();
  }

  /** Stops at once, because the page is left. */
  leave(): void {
    this.#pausing.abort();
    this.#leaving.abort();
  }

  async #toEnd(task: RowTask): Promise<void> {
    let tries = 0;
    let size = ROWS_AT_FIRST;
    while (!this.#pausing.signal.aborted) {
      const lines = this.#nextLines(task, size);
      if (lines.length === 0) return;
      const before = this.#answers.size;
      const began_ms = performance.now();
      const failure = await this.#send(task, lines);
      // Where it was replaced, it pauses before it sends more.
      await this.#keeping;
      const answered = this.#answers.size - before;
      const per_row_ms = (performance.now() - began_ms) / Math.max(1, answered);
      const left = task.rows.length - this.#answers.size;
      this.#tell({ failure, left_ms: answered === 0 ? null : left * per_row_ms });
      size = Math.min(ROWS_MAX, Math.max(ROWS_MIN, Math.round(REQUEST_MS / per_row_ms)));
      if (failure !== null && isFinal(failure)) return;
      if (answered > 0) tries = 0;
      else {
        const wait_ms = WAITS_MS[tries];
        if (wait_ms === undefined) return;
        tries += 1;
        await pause(Math.max(wait_ms, (failure?.retry_after_s ?? 0) * 1_000), this.#pausing.signal);
      }
    }
  }

  /** The next rows without an answer, as lines. */
  #nextLines(task: RowTask, size: number): readonly RowLine[] {
    const { rows, questions, asked } = task;
    const lines: RowLine[] = [];
    let length = 0;
    for (const row of rows) {
      if (lines.length === size || length > REQUEST_LENGTH) break;
      if (this.#answers.has(row)) continue;
      const line = lineOf(row, asked(row), questions);
      if (typeof line === 'string') {
        const error = { type: 'invalid_request_error', code: line, message: UNASKED[line] };
        this.#add(task, [[row, JSON.stringify({ id: row, error })]]);
        continue;
      }
      length += line.text.length;
      lines.push(line);
    }
    return lines;
  }

  /** Sends lines, and keeps their answers. Returns why one of them has none; null where all have. */
  async #send(task: RowTask, lines: readonly RowLine[]): Promise<ApiError | null> {
    const { organization_id, key_id, questions, setup } = task;
    const { model, mode, run_key } = setup;
    const header = new JsonObject<JsonValue>(['model', 'mode', 'questions'], [model, mode, questions]);
    let failure: ApiError | null = null;
    try {
      const pieces = callForLines({
        path: `organizations/${organization_id}/batch/${key_id}`,
        body: `${[writeJson(header), ...lines.map(({ text }) => text)].join('\n')}\n`,
        headers: { 'idempotency-key': run_key },
        signal: this.#leaving.signal,
      });
      for await (const texts of pieces) {
        const kept: [row: number, answer: string][] = [];
        for (const text of texts) {
          const answer = objectIn(text);
          // The line says whose error it is where the service could not read the id. The header is line 1.
          const row = answer?.get('id') ?? lines[Number(answer?.get('line')) - 2]?.row;
          const about = failureOf(answer);
          if (about !== null) failure = about;
          else if (typeof row === 'number') kept.push([row, text]);
        }
        if (kept.length > 0) this.#add(task, kept);
      }
    } catch (thrown) {
      // The page is gone, and nobody reads it.
      failure = this.#leaving.signal.aborted ? failure : asApiError(thrown);
    }
    return failure;
  }

  #add({ setup }: RowTask, answers: readonly (readonly [row: number, answer: string])[]): void {
    for (const [row, answer] of answers) {
      if (!this.#answers.has(row)) this.#count(objectIn(answer));
      this.#answers.set(row, answer);
    }
    const kept = this.keeper.keepAnswers(setup.run_key, answers).then((became) => this.note(became));
    this.#keeping = Promise.all([this.#keeping, kept]);
  }

  #count(answer: JsonObject<JsonValue> | null): void {
    const { answered, refused, cost_micros } = this.#progress.value;
    if (answer?.get('error') !== undefined) {
      this.#tell({ refused: refused + 1 });
      return;
    }
    const usage = answer?.get('usage');
    const cost = isJsonObject(usage) ? usage.get('cost_usd') : undefined;
    const micros = typeof cost === 'number' ? microsOf(cost) : 0;
    this.#tell({ answered: answered + 1, cost_micros: cost_micros + micros });
  }

  #tell(change: Partial<RunProgress>): void {
    this.#progress.value = { ...this.#progress.value, ...change };
  }
}

/**
 * Returns the line that asks about a row, or the code of an error for a row that is not asked. Only questions that are not
 * those of all rows are in the line.
 */
function lineOf(row: number, asked: AskedRow | null, of_all: JsonValue): RowLine | keyof typeof UNASKED {
  if (asked === null) return 'missing_state';
  const { record, questions } = asked;
  const text = writeJson(
    questions === of_all
      ? new JsonObject<JsonValue>(['id', 'state'], [row, record])
      : new JsonObject<JsonValue>(['id', 'state', 'questions'], [row, record, questions]),
  );
  if (new TextEncoder().encode(text).byteLength > LINE_BYTES_MAX) return 'request_too_large';
  return objectIn(text) === null ? 'invalid_request' : { row, text };
}

/** Returns why the row of a line, or all that follow, were not answered; null for an answer and an error of the row. */
function failureOf(answer: JsonObject<JsonValue> | null): ApiError | null {
  const error = answer?.get('error');
  if (!isJsonObject(error)) return null;
  const code = String(error.get('code'));
  const message = String(error.get('message'));
  const why_ended = whyEnded(message);
  const is_end = answer?.get('id') === null && why_ended !== null;
  if (!is_end && isOfRow(code)) return null;
  return new ApiError(code, why_ended ?? message, null, String(answer?.get('request_id')), 0);
}

/** Returns true if a row with that code is not asked again: it has waited for the rate limits, or the page is older. */
function isOfRow(code: string): boolean {
  return code === 'rate_limit_exceeded' || (retryOf(code) ?? 'never') === 'never';
}

function isFinal({ code, status }: ApiError): boolean {
  // Codes of the console itself, such as that of a session that has ended.
  if (retryOf(code) === null) return status >= 400 && status < 500 && ![408, 429].includes(status);
  return !canGoOn(code);
}
