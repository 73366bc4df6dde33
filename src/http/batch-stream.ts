import { DEFAULT_MODEL } from '../catalog/catalog.ts';
import type { Identifiers } from '../contract/identifiers.ts';
import { endMessage } from '../decisions/batch/ending.ts';
import { inOrderOfCompletion } from '../decisions/batch/in-order-of-completion.ts';
import type { BatchLines, LineRequest } from '../decisions/batch/lines.ts';
import type { LineId } from '../decisions/batch/schemas.ts';
import type { AskedKey, DecisionOutcome, KnownCaller } from '../decisions/call.ts';
import type { WrittenDecision } from '../decisions/schemas.ts';
import { ERRORS, overloaded, Refusal } from '../errors/errors.ts';
import type { JsonObject, JsonValue } from '../json/json-value.ts';
import { writeJson } from '../json/write-json.ts';
import type { BodyBudget } from '../limits/body-budget.ts';
import type { Log } from '../log/log.ts';
import type { Tracing } from '../observability/tracing.ts';
import { reported } from '../problems/problems.ts';
import { MS_PER_S } from '../time/clock.ts';
import { parseJson } from './body.ts';
import { type BodyLine, isBlank } from './body-lines.ts';
import type { RequestContext } from './context.ts';
import { answerDecision, type DecisionRouteServices, unreadParts } from './decision-routes.ts';
import type { Draining } from './draining.ts';
import { spendRefusal, spendUnpaid } from './refusal-gate.ts';
import { recordRequest } from './request-records.ts';

/** The parts that answer batches. */
export type BatchServices = DecisionRouteServices & {
  readonly identifiers: Identifiers;
  readonly log: Pick<Log, 'request' | 'info'>;
  readonly tracing: Pick<Tracing, 'begin'>;
  readonly draining: Draining;
  readonly batch_lines: BodyBudget;
};

export const BATCH_PATH = '/v1/decisions/batch';

/** Lines that a batch may have, a header not counted. */
export const LINES_MAX = 100_000;

/** Lines of a batch that are under way, or wait to be read by the client: enough to keep a model busy. */
export const LINES_AT_ONCE = 32;
/** Bytes of those lines; one line is under way however large it is. */
export const BATCH_BYTES = 4 * 1_048_576;

/** Between two tries of a line that could not be asked through our own fault. */
const FIRST_RETRY_S = 1;
const LONGEST_RETRY_S = 30;
/** How long the place of a line that failed stays taken: while everything fails, a batch is not burned through. */
const FAILED_LINE_S = 1;

/** A line as it was read. */
export interface ReadLine {
  /** From 1. */
  readonly number: number;
  readonly value: JsonValue | Refusal<'invalid_json' | 'invalid_request' | 'request_too_large'>;
  readonly bytes: number;
}

/** A batch whose first line is read. */
export interface OpenedBatch {
  readonly request: Request;
  readonly context: RequestContext;
  readonly key: AskedKey['key'];
  readonly query_mode: string | null;
  /** The `Idempotency-Key` of the batch; null without one. */
  readonly idempotency_key: string | null;
  readonly caller: KnownCaller;
  readonly first: ReadLine;
  readonly lines: BatchLines;
  /** The lines after the first one. */
  readonly rest: AsyncIterable<BodyLine>;
  /** Aborted when the client is gone, or the service is being stopped. */
  readonly patience: AbortSignal;
  /** Ends the reading of lines. */
  readonly endReading: () => void;
  /** Gives back what the batch has taken of the service's memory. */
  readonly giveMemoryBack: () => void;
}

/** Reads the value of a line, or the refusal of one that has none, whose sentence calls it by `name`. */
export function readLine({ number, bytes }: BodyLine, name: string): ReadLine {
  if (bytes !== null) return { number, value: parseJson(bytes, name), bytes: bytes.byteLength };
  const message = `${name} is larger than 1 MB.`;
  // Its bytes are counted as they are skipped.
  return { number, value: new Refusal('request_too_large', { message }), bytes: 0 };
}

/** Returns the refusal of a batch that goes on above `LINES_MAX`. */
export function tooManyLines(): Refusal<'request_too_large'> {
  return new Refusal('request_too_large', { message: `A batch has at most ${LINES_MAX} lines.` });
}

/** Resolves when the key has refusals left: a batch of broken lines is no way around their budget. */
export async function waitForRefusals(
  { refusals, clock, pause }: BatchServices,
  { key_id }: KnownCaller,
  patience: AbortSignal,
): Promise<void> {
  while (!patience.aborted) {
    const wait_s = refusals.keyWait_s(key_id, clock.monotonic_ms());
    if (wait_s === 0) return;
    await pause(wait_s * MS_PER_S, patience);
  }
}

/** The answers to one batch. */
export class BatchStream {
  /** The first line that was not taken. */
  #next_line: number;
  #is_read_to_end = false;
  /** Why the batch ends before its last line; null where it does not. */
  #ending: Refusal | null = null;
  readonly #counts = { answered: 0, refused: 0 };

  constructor(
    private readonly services: BatchServices,
    private readonly batch: OpenedBatch,
  ) {
    this.#next_line = batch.first.number + 1;
  }

  /** The lines of the response as they come; ends when all that was begun has ended, also where nobody reads it. */
  async *answers(): AsyncGenerator<string> {
    const { request, context, patience, caller, first } = this.batch;
    const bounds = { at_once: LINES_AT_ONCE, bytes: BATCH_BYTES };
    try {
      yield* inOrderOfCompletion(this.#read(), (line) => this.#answer(line), bounds);
    } finally {
      this.batch.giveMemoryBack();
    }
    if (!this.#is_read_to_end && patience.aborted) this.#ending ??= overloaded('stopping');
    if (this.#counts.answered + this.#counts.refused === 0 && !patience.aborted) {
      spendUnpaid(this.services, caller, { refusals: 1, body_bytes: first.bytes });
    }
    const { request_id } = context;
    const code = request.signal.aborted ? null : (this.#ending?.code ?? null);
    this.services.log.info('a batch has ended', { request_id, ...this.#counts, code });
    if (this.#ending !== null) yield this.#lastLine(this.#ending);
  }

  /** The lines of the request, until the batch ends. */
  async *#read(): AsyncGenerator<ReadLine> {
    const { first, lines, rest, patience } = this.batch;
    const last_number = lines.has_header ? LINES_MAX + first.number : LINES_MAX;
    if (!lines.has_header) yield first;
    try {
      for await (const line of rest) {
        if (this.#ending !== null || patience.aborted) return;
        if (line.number > last_number) {
          this.#end(tooManyLines());
          return;
        }
        this.#next_line = line.number + 1;
        if (!isBlank(line)) yield readLine(line, 'The line');
      }
      this.#is_read_to_end = this.#ending === null && !patience.aborted;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // A batch that has ended already has its reason.
      if (!patience.aborted) this.#end(error);
    }
  }

  #end(ending: Refusal): void {
    this.#ending ??= ending;
    this.batch.endReading();
  }

  /** The line of the response for one of the request. Never rejects. */
  async #answer({ number: line, value, bytes }: ReadLine): Promise<string> {
    const { services, batch } = this;
    const context = this.#contextOfLine();
    const { id, body } = value instanceof Refusal ? { id: null, body: value } : batch.lines.request(value);
    const { result, ...about } = await this.#outcomeOf(id, body, context);
    const place = { id, line, request_id: context.request_id };
    if (!(result instanceof Refusal)) {
      this.#counts.answered += 1;
      this.#record(context);
      return answerLine(place, result, about);
    }
    this.#counts.refused += 1;
    context.refusal = result;
    spendRefusal(services, context, result, bytes);
    this.#record(context);
    // Every later line would be refused, too.
    if (ERRORS[result.code].retry === 'after_account_change') this.#end(result);
    if (result.status >= 500) await services.pause(FAILED_LINE_S * MS_PER_S, batch.patience);
    return errorLine(place, result);
  }

  async #outcomeOf(id: LineId, body: LineRequest['body'], context: RequestContext): Promise<LineOutcome> {
    const { services, batch } = this;
    try {
      await waitForRefusals(services, batch.caller, batch.patience);
      return body instanceof Refusal ? { result: body } : await this.#decide(id, body, context);
    } catch (error) {
      const { request_id } = context;
      const code = 'internal_error';
      return { result: reported(services.problems, { request_id, step: 'http', code, error }) };
    }
  }

  /** Decides what a line asks. One that fails through our own fault before it is asked is tried again, for as long. */
  async #decide(id: LineId, body: JsonObject<JsonValue>, context: RequestContext): Promise<DecisionOutcome> {
    const { services, batch } = this;
    const { key, query_mode, patience, request } = batch;
    const idempotency_key = keyOfLine(batch.idempotency_key, id);
    const line = {
      ...({ endpoint: BATCH_PATH, default_model: DEFAULT_MODEL, openai: null } as const),
      ...{ key, query_mode, idempotency_key, patience },
      // Batches have a budget of memory of their own.
      reading: { readBody: () => Promise.resolve(body), body_bytes: () => 0 },
    };
    for (let wait_s = FIRST_RETRY_S; ; wait_s = Math.min(2 * wait_s, LONGEST_RETRY_S)) {
      const { outcome } = await answerDecision(services, line, request, context);
      const { result, was_held } = outcome;
      if (!(result instanceof Refusal) || was_held || patience.aborted) return outcome;
      // A planner may fail over this line only, and a line that the rate limits refuse has waited for them.
      const is_of_line = result.code === 'model_unavailable' || result.code === 'rate_limit_exceeded';
      if (ERRORS[result.code].retry !== 'later' || is_of_line) return outcome;
      await services.pause(wait_s * MS_PER_S, patience);
    }
  }

  /** A line is a request of its own, of the same client. */
  #contextOfLine(): RequestContext {
    const { services, batch } = this;
    const { url, path, client_address, endpoint } = batch.context;
    return {
      request_id: services.identifiers.id('request'),
      started_ms: services.clock.monotonic_ms(),
      url,
      path,
      ...(endpoint === undefined ? {} : { endpoint }),
      client_address,
      onKnown: () => {},
      span: services.tracing.begin(batch.request, BATCH_PATH),
      caller: batch.caller,
      refusal: null,
      is_over_budget: false,
    };
  }

  #record(context: RequestContext): void {
    recordRequest(this.services, this.batch.request, context, 200);
  }

  /** The last line of a response that ends before the request does: where to go on. */
  #lastLine({ code, message }: Refusal): string {
    const refusal = new Refusal(code, { message: endMessage(message, this.#next_line) });
    const { request_id } = this.batch.context;
    return errorLine({ id: null, line: this.#next_line, request_id }, refusal);
  }
}

/** The beginning of every line of a response. */
interface LinePlace {
  readonly id: LineId;
  readonly line: number;
  readonly request_id: string;
}

/** The outcome of a line, as its answer says it. */
type LineOutcome = Pick<
  DecisionOutcome,
  'result' | 'ignored_fields' | 'record_tokens_left_out' | 'is_replayed'
>;

/**
 * Returns the idempotency key of a line, by the one of its batch and its id. Only a line with an id can be sent again as
 * the same one.
 */
function keyOfLine(batch_key: string | null, id: LineId): string | null {
  if (batch_key === null || id === null) return null;
  return new Bun.CryptoHasher('sha256').update(JSON.stringify([batch_key, id])).digest('hex');
}

function answerLine(
  { id, line, request_id }: LinePlace,
  { id: decision_id, ...decision }: WrittenDecision,
  { is_replayed: replayed, ...about }: Omit<LineOutcome, 'result'>,
): string {
  const written = { id, line, request_id, decision_id, ...decision, replayed, ...unreadParts(about) };
  return `${writeJson(written)}\n`;
}

function errorLine({ id, line, request_id }: LinePlace, { type, code, message, param }: Refusal): string {
  return `${writeJson({ id, line, request_id, error: { type, code, message, param } })}\n`;
}
