import { Value } from '@sinclair/typebox/value';
import { SERVICE_URL } from '../../config/settings.ts';
import { randomIdentifiers } from '../../contract/identifiers.ts';
import { formatDollars, microsOf } from '../../contract/money.ts';
import { AnswerColumns } from '../../decisions/batch/answer-columns.ts';
import { canGoOn } from '../../decisions/batch/ending.ts';
import { LineIdSchema } from '../../decisions/batch/schemas.ts';
import { isEmptyRecord } from '../../decisions/batch/table.ts';
import { parseDecisionRequest } from '../../decisions/request.ts';
import { Refusal } from '../../errors/errors.ts';
import { ProgressBar } from '../../eval/progress.ts';
import { LINES_MAX } from '../../http/batch-stream.ts';
import { BODY_BYTES_MAX } from '../../http/body-bytes.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../../json/json-value.ts';
import { writeJson } from '../../json/write-json.ts';
import { classesOf } from '../../questions/question.ts';
import { MS_PER_S } from '../../time/clock.ts';
import { pauseByTimer } from '../../time/pause.ts';
import { CommandFailed } from '../command-failed.ts';
import { interruptible } from '../interruptible.ts';
import { readQuestionFile } from '../question-file.ts';
import { AnswersFile } from './answers-file.ts';
import { type BatchRecord, formatOf, ID, RECORD, RecordsHeader, readRecords } from './records.ts';
import { BatchEnded, ConnectionLost, type SentLine, sendBatch } from './send-batch.ts';

/** The options of `tds decide --batch`. */
export interface BatchOptions {
  readonly batch: string;
  readonly output?: string | undefined;
  readonly mode?: string | undefined;
  readonly url?: string | undefined;
  readonly key?: string | undefined;
}

/** The fields that all records of a batch share. */
const SHARED = ['questions', 'mode', 'model'] as const;

/** The answered records after which an empty line tells the service that the file is still being read. */
const SKIPPED_PER_LINE = 100;

/** The waits in seconds between tries that bring no answer; after the last one the command ends. */
const WAITS_S = [1, 2, 5, 10, 20, 30];

/** The records of a file, once it was read whole. */
interface Scanned {
  readonly ids: readonly BatchRecord['id'][];
  /** Records that the service would not read, or that say nothing. */
  readonly unreadable: readonly (readonly [id: BatchRecord['id'], why: Refusal])[];
  /** The first line of every request. */
  readonly header: JsonObject<JsonValue>;
  readonly columns: AnswerColumns | null;
}

/** The records of a run by their outcome, and their cost. */
interface Tally {
  answered: number;
  failed: number;
  cost_micros: number;
}

/**
 * Asks the questions about every record of a file that has no answer in the output file yet. `question_file` has the
 * body of a request, whose record is not looked at; null where the records have their questions with them. Throws
 * `CommandFailed`.
 */
export async function runBatch(question_file: string | null, options: BatchOptions): Promise<void> {
  const { batch, key, output, url: service = SERVICE_URL } = options;
  if (key === undefined) throw new CommandFailed('An API key is needed: set TDS_API_KEY.');
  const questions = question_file === null ? null : await readQuestionFile(question_file);
  const scanned = await scan(questions, options);
  const file = output === undefined ? null : await AnswersFile.open(output, scanned.columns);
  try {
    await interruptible(async (isStopped, signal) => {
      const run_key = file?.run_key ?? randomIdentifiers.linkToken();
      const run = new BatchRun({ path: batch, service, key, file, run_key, signal, ...scanned });
      await run.toEnd();
      const is_stopped = isStopped();
      process.stderr.write(`${run.summary(is_stopped)}\n`);
      if (!is_stopped && run.has_failed) process.exitCode = 1;
    });
  } finally {
    file?.close();
  }
}

/** Reads all records once, so that a mistake in a late one costs nothing. */
async function scan(questions: JsonObject<JsonValue> | null, options: BatchOptions): Promise<Scanned> {
  const { batch, output, mode } = options;
  const is_csv = output !== undefined && formatOf(output) === 'csv';
  const seen = new Map<string, BatchRecord['id']>();
  const unreadable: [BatchRecord['id'], Refusal][] = [];
  let shared = questions;
  for await (const record of readRecords(batch)) {
    if (record instanceof RecordsHeader) {
      shared ??= record.fields;
      continue;
    }
    shared ??= record.line;
    const name = is_csv ? String(record.id) : writeJson(record.id);
    if (seen.has(name))
      throw new CommandFailed(`${batch} has the id ${name} twice: answers are found by it.`);
    seen.set(name, record.id);
    const refusal = refusalOf(record);
    if (refusal !== null) unreadable.push([record.id, refusal]);
    if (is_csv && seen.size > 1 && isJsonObject(record.line.get('questions'))) {
      throw new CommandFailed(
        `The record ${name} has questions of its own: name an --output that ends in .jsonl.`,
      );
    }
  }
  if (seen.size === 0 || shared === null) throw new CommandFailed(`${batch} has no record.`);
  const header = headerOf(shared, mode);
  // The service knows how many questions the organization may ask.
  const request = parseDecisionRequest(header.with('state', ''), null, Number.POSITIVE_INFINITY);
  if (request instanceof Refusal) {
    throw new CommandFailed(
      `${request.code}${request.param === null ? '' : ` (${request.param})`}: ${request.message} Name a file with questions before --batch, or give them in the first line.`,
    );
  }
  const asked = request.questions.map(({ id, question, threshold }) => {
    return { id, type: question.type, threshold, classes: classesOf(question) };
  });
  const columns = is_csv ? new AnswerColumns(asked) : null;
  return { ids: [...seen.values()], unreadable, header, columns };
}

/** Returns why the line of a record is not asked; null where it is. */
function refusalOf({ id, line }: BatchRecord): Refusal | null {
  if (!Value.Check(LineIdSchema, id)) {
    const message = 'The id of a record has at most 255 characters.';
    return new Refusal('invalid_request', { message, param: ID });
  }
  if (isEmptyRecord(line.get(RECORD) ?? null)) {
    return new Refusal('missing_state', { message: 'The record is empty.', param: RECORD });
  }
  if (Buffer.byteLength(writeJson(line)) <= BODY_BYTES_MAX) return null;
  return new Refusal('request_too_large', { message: 'The record is larger than 1 MB.' });
}

function errorLine(id: BatchRecord['id'], { type, code, message, param }: Refusal): JsonObject<JsonValue> {
  const names = ['type', 'code', 'message', 'param'];
  return new JsonObject<JsonValue>([ID, 'error'], [id, new JsonObject(names, [type, code, message, param])]);
}

function headerOf(shared: JsonObject<JsonValue>, mode: string | undefined): JsonObject<JsonValue> {
  const given = SHARED.flatMap((name) => {
    const value = shared.get(name) ?? (name === 'mode' ? mode : null) ?? null;
    return value === null ? [] : [[name, value] as const];
  });
  return JsonObject.of<JsonValue>(given);
}

/** The parts of a run. */
interface RunParts extends Scanned {
  readonly path: string;
  readonly service: string;
  readonly key: string;
  /** Null where answers go to standard output. */
  readonly file: AnswersFile | null;
  /** The idempotency key of all requests: a line whose answer was lost is not charged again. */
  readonly run_key: string;
  readonly signal: AbortSignal;
}

/** One run over the records that have no answer. */
class BatchRun {
  /** The records that this run is done with, by the JSON of their ids. */
  readonly #done = new Set<string>();
  /** The ids of the records in the current request, in its order; null for an empty line. */
  #sent: (BatchRecord['id'] | null)[] = [];
  /** The number of records that had an answer before this run. */
  readonly #before: number;
  readonly #tally: Tally = { answered: 0, failed: 0, cost_micros: 0 };
  readonly #bar = new ProgressBar(process.stderr, () => performance.now());

  constructor(private readonly parts: RunParts) {
    const { file, ids } = parts;
    this.#before = ids.filter((id) => file?.has(id) === true).length;
  }

  get has_failed(): boolean {
    return this.#tally.failed > 0;
  }

  /** Asks until every record has an answer or an error, or the signal is aborted. Throws `CommandFailed`. */
  async toEnd(): Promise<void> {
    const { signal, service, file, unreadable } = this.parts;
    let tries = 0;
    for (const [id, why] of unreadable) if (file?.has(id) !== true) await this.#take(errorLine(id, why));
    this.#show();
    while (this.#left > 0 && !signal.aborted) {
      const before = this.#handled;
      try {
        await this.#sendOnce();
        if (this.#handled === before) throw new ConnectionLost('no record was answered');
      } catch (error) {
        if (signal.aborted) return;
        const may_pass = error instanceof BatchEnded && canGoOn(error.code);
        if (!may_pass && !(error instanceof ConnectionLost)) throw this.#failed(error);
        tries = this.#handled > before ? 0 : tries;
        const wait_s = WAITS_S[tries];
        if (wait_s === undefined) throw this.#failed(error);
        tries += 1;
        const retry_after_s = error instanceof BatchEnded ? (error.retry_after_s ?? 0) : 0;
        process.stderr.write(`\n${service} does not answer now: trying again.\n`);
        await pauseByTimer(Math.max(wait_s, retry_after_s) * MS_PER_S, signal);
      }
    }
  }

  /** Returns the end of the run as a sentence. */
  summary(is_stopped: boolean): string {
    const { answered, failed, cost_micros } = this.#tally;
    const { file, ids } = this.parts;
    const stopped = is_stopped ? `Stopped: ${this.#whatIsLeft()}. ` : '';
    const before = this.#before === 0 ? '' : `, ${this.#before} before`;
    const errors =
      failed === 0 ? '' : `, ${failed} with errors${file === null ? '' : ` (${file.errors_path})`}`;
    return `${stopped}${answered} of ${ids.length} records answered${before}${errors}, for ${formatDollars(cost_micros)} US dollars.`;
  }

  get #handled(): number {
    return this.#before + this.#done.size;
  }

  get #left(): number {
    return this.parts.ids.length - this.#handled;
  }

  async #sendOnce(): Promise<void> {
    const { service, key, run_key, signal } = this.parts;
    const target = { service, key, signal, idempotency_key: run_key };
    for await (const answer of sendBatch(target, this.#lines())) {
      await this.#take(answer);
      this.#show();
    }
  }

  /** Yields the header, once a record is found that is left, and as many of those as a request may have. */
  async *#lines(): AsyncGenerator<SentLine> {
    const { path, header, file, signal } = this.parts;
    this.#sent = [];
    let skipped = 0;
    for await (const record of readRecords(path)) {
      if (signal.aborted || this.#sent.length === LINES_MAX) return;
      if (record instanceof RecordsHeader) continue;
      const { id, line } = record;
      const is_left = file?.has(id) !== true && !this.#done.has(writeJson(id));
      if (is_left) {
        if (this.#sent.length === 0) yield header;
        this.#sent.push(id);
        yield line;
      } else if (this.#sent.length > 0) {
        skipped += 1;
        if (skipped % SKIPPED_PER_LINE > 0) continue;
        this.#sent.push(null);
        yield null;
      }
    }
  }

  async #take(received: JsonObject<JsonValue>): Promise<void> {
    // The line says whose error it is where the service could not read the id. The header is line 1.
    const id = received.get(ID) ?? this.#sent[Number(received.get('line')) - 2];
    if (typeof id !== 'string' && typeof id !== 'number') return;
    const { file } = this.parts;
    const answer = received.with(ID, id);
    if (file === null) await print(`${writeJson(answer)}\n`);
    if (answer.get('error') === undefined) {
      file?.add(id, answer);
      this.#tally.answered += 1;
      const usage = answer.get('usage');
      const cost = isJsonObject(usage) ? usage.get('cost_usd') : undefined;
      if (typeof cost === 'number' && answer.get('replayed') !== true)
        this.#tally.cost_micros += microsOf(cost);
    } else {
      file?.addError(answer);
      this.#tally.failed += 1;
    }
    this.#done.add(writeJson(id));
  }

  #show(): void {
    this.#bar.show({ done: this.#handled, total: this.parts.ids.length, done_now: this.#done.size });
  }

  #failed(error: unknown): unknown {
    if (error instanceof BatchEnded) {
      return new CommandFailed(`${error.code}: ${error.message} ${this.#whatIsLeft()}.`, { cause: error });
    }
    if (error instanceof CommandFailed) {
      return new CommandFailed(`${error.message} ${this.#whatIsLeft()}.`, { cause: error });
    }
    if (error instanceof ConnectionLost) {
      return new CommandFailed(`No service answers at ${this.parts.service}. ${this.#whatIsLeft()}.`, {
        cause: error,
      });
    }
    return error;
  }

  #whatIsLeft(): string {
    const left = `${this.#left} records are left`;
    return this.parts.file === null ? left : `${left}: the same command goes on with them`;
  }
}

/** Writes to standard output, as fast as it is read. */
async function print(text: string): Promise<void> {
  if (process.stdout.write(text)) return;
  await new Promise((resolve) => process.stdout.once('drain', resolve));
}
