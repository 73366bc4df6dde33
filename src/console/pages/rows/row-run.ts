import { type ReadonlySignal, signal } from '@preact/signals';
import { microsOf } from '../../../contract/money.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../../../json/json-value.ts';
import { writeJson } from '../../../json/write-json.ts';
import { ApiError, asApiError, callForLines } from '../client.ts';
import { objectIn } from '../object-in.ts';
import { pause } from '../pause.ts';
import { keepAnswers } from './kept-rows.ts';
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
  /** False where the browser had no room for rows or answers. */
  readonly is_kept: boolean;
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

/** The types of errors of a row itself. For all others it can be asked again. */
const TYPES_OF_ROWS: readonly (JsonValue | undefined)[] = ['invalid_request_error', 'not_found_error'];

/** A row without a record is not asked, because the answer would say nothing and be charged. */
const NO_RECORD = { type: 'invalid_request_error', code: 'missing_state', message: 'The row has no record.' };

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
    is_kept: true,
  });
  #pausing = new AbortController();
  #leaving = new AbortController();
  /** Resolves when all answers so far are kept, or cannot be. Never rejects. */
  #keeping: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly scope: string,
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

  /** Tells that rows could not be kept. */
  noteUnkept(): void {
    this.#tell({ is_kept: false });
  }

  /** Asks until all rows have an answer or an error, or it is paused. Never rejects: a failure is told. */
  async start(task: RowTask): Promise<void> {
    if (this.#progress.value.state !== 'stopped') return;
    this.#pausing = new AbortController();
    this.#leaving = new AbortController();
    this.#tell({ state: 'running', failure: null, left_ms: null });
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
  #nextLines({ rows, questions, asked }: RowTask, size: number): readonly string[] {
    const lines: string[] = [];
    let length = 0;
    for (const row of rows) {
      if (lines.length === size || length > REQUEST_LENGTH) break;
      if (this.#answers.has(row)) continue;
      const own = asked(row);
      if (own === null) {
        this.#add([[row, JSON.stringify({ id: row, error: NO_RECORD })]]);
        continue;
      }
      const line = writeJson(
        own.questions === questions
          ? new JsonObject<JsonValue>(['id', 'state'], [row, own.record])
          : new JsonObject<JsonValue>(['id', 'state', 'questions'], [row, own.record, own.questions]),
      );
      length += line.length;
      lines.push(line);
    }
    return lines;
  }

  /** Sends lines, and keeps their answers. Returns why one of them has none; null where all have. */
  async #send(task: RowTask, lines: readonly string[]): Promise<ApiError | null> {
    const { organization_id, key_id, questions, setup } = task;
    const { model, mode, run_key } = setup;
    const header = new JsonObject<JsonValue>(['model', 'mode', 'questions'], [model, mode, questions]);
    let failure: ApiError | null = null;
    try {
      const pieces = callForLines({
        path: `organizations/${organization_id}/batch/${key_id}`,
        body: `${[writeJson(header), ...lines].join('\n')}\n`,
        headers: { 'idempotency-key': run_key },
        signal: this.#leaving.signal,
      });
      for await (const texts of pieces) {
        const kept: [row: number, answer: string][] = [];
        for (const text of texts) {
          const answer = objectIn(text);
          const row = answer?.get('id');
          const about = failureOf(answer);
          if (about !== null) failure = about;
          else if (typeof row === 'number') kept.push([row, text]);
        }
        if (kept.length > 0) this.#add(kept);
      }
    } catch (thrown) {
      // The page is gone, and nobody reads it.
      failure = this.#leaving.signal.aborted ? failure : asApiError(thrown);
    }
    return failure;
  }

  #add(answers: readonly (readonly [row: number, answer: string])[]): void {
    for (const [row, answer] of answers) {
      if (!this.#answers.has(row)) this.#count(objectIn(answer));
      this.#answers.set(row, answer);
    }
    const kept = keepAnswers(this.scope, answers).then((is_kept) => is_kept || this.noteUnkept());
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

/** Returns why the row of a line, or all that follow, were not answered; null for an answer and an error of the row. */
function failureOf(answer: JsonObject<JsonValue> | null): ApiError | null {
  const error = answer?.get('error');
  if (!isJsonObject(error)) return null;
  if (answer?.get('id') !== null && TYPES_OF_ROWS.includes(error.get('type'))) return null;
  const message = String(error.get('message')).replace(/ The batch ends here: .*$/, '');
  return new ApiError(String(error.get('code')), message, null, String(answer?.get('request_id')), 0);
}

/** Codes of the service that say the same at the next try. */
const FINAL_CODES = ['invalid_api_key', 'insufficient_credit', 'project_spend_limit', 'api_key_spend_limit'];

function isFinal({ code, status }: ApiError): boolean {
  const may_pass = status === 408 || status === 429;
  return FINAL_CODES.includes(code) || (status >= 400 && status < 500 && !may_pass);
}
