import { systemErrorCode } from '../errors/system-error-code.ts';
import { CallSlots } from './call-slots.ts';
import type { Credentials } from './credentials.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** The longest list of models, and the longest answer. */
const ANSWER_BYTES_MAX = 8 * 1_024 * 1_024;
/** The longest answer to the shortest question: numbers for 255 levels of 64 questions. */
const SHORT_ANSWER_BYTES_MAX = 1_024 * 1_024;
/** An answer is longer by this for each byte of its question: it repeats option names and levels, at worst escaped. */
const BYTES_PER_BYTE_MAX = 8;
/** The bytes of an error that are read: enough to recognize that a model is loading. */
const ERROR_BYTES_MAX = 16_384;
/** The longest rest that an upstream may ask for. */
const RETRY_AFTER_MAX_S = 60;

/**
 * The slots of all pools. Bun has at most 256 requests of a process under way, and all others wait, whatever
 * their host.
 */
const SLOTS = new CallSlots(256);

export interface HttpCall {
  /** The member's address, as in messages. */
  readonly address: string;
  /** The path from the root of the address. */
  readonly path: string;
  /** Returns the JSON when it is sent; null for a GET. */
  readonly body: (() => string) | null;
  readonly credentials: Credentials;
  /** True for a client's question, which waits where too many others to this member are under way. */
  readonly needs_slot: boolean;
  /** True where a connection that was idle has just ended, because the others may have ended with it. */
  readonly needs_new_connection: boolean;
  /** The limit from the call to the end of the answer, with the wait for a slot. */
  readonly timeout_ms: number;
  readonly signal: AbortSignal;
}

/** An upstream's 200. */
export type UpstreamResponse = Pick<Response, 'headers'> & { readonly text: string };

/**
 * Returns an upstream's 200. Rejects with the signal's reason, and otherwise with
 * `UpstreamFailed`. A redirect is a failure, because the record may only go to the given address.
 */
export async function callUpstream(call: HttpCall): Promise<UpstreamResponse> {
  const { address, signal } = call;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), call.timeout_ms);
  const given_up = AbortSignal.any([signal, late.signal]);
  let has_begun = false;
  try {
    using _slot = call.needs_slot ? await SLOTS.take(address, given_up) : null;
    const body = call.body?.() ?? null;
    const response = await send(call, body, given_up);
    if (!response.ok) throw await refusalOf(address, response);
    has_begun = true;
    const text = await textOf(response, address, longestAnswer(body));
    return { headers: response.headers, text };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof UpstreamFailed) throw error;
    if (late.signal.aborted) {
      const message = `${address} did not answer in ${call.timeout_ms / 1_000} seconds.`;
      throw new UpstreamFailed(has_begun ? 'bad_answer' : 'timed_out', message);
    }
    const code = systemErrorCode(error) ?? 'no code';
    if (has_begun) throw new UpstreamFailed('bad_answer', `The answer of ${address} broke off (${code}).`);
    throw new UpstreamFailed(
      code === 'ECONNRESET' ? 'cut_off' : 'unreachable',
      `${address} cannot be reached (${code}).`,
    );
  } finally {
    clearTimeout(timer);
  }
}

function send(
  { address, path, credentials, needs_new_connection }: HttpCall,
  body: string | null,
  signal: AbortSignal,
): Promise<Response> {
  const { token, certificates } = credentials;
  return fetch(`${address}${path}`, {
    method: body === null ? 'GET' : 'POST',
    headers: {
      accept: 'application/json',
      // A small compressed body could unpack to a large one.
      'accept-encoding': 'identity',
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body,
    keepalive: !needs_new_connection,
    redirect: 'manual',
    decompress: false,
    // The environment's proxy must not get the record either.
    proxy: false,
    signal,
    ...(certificates === null ? {} : { tls: { ca: certificates } }),
  });
}

/**
 * Returns the failure of a status; a 503 means loading if it has the words of a known server. This program
 * answers a full queue with 502 and a time, and a broken model with 502 alone.
 */
async function refusalOf(address: string, response: Response): Promise<UpstreamFailed> {
  const { status } = response;
  const text = await beginningOf(response);
  const retry_after_s = retryAfterOf(response.headers);
  const message = `${address} answered with status ${status}.`;
  if (status === 503 && /"model_warming_up"|Loading model/.test(text)) {
    return new UpstreamFailed('loading', `${address} is loading its model.`, retry_after_s);
  }
  if (status === 429) {
    const meaning =
      'It limits requests: a limit of the key or account that it is asked with may be reached, or it is overloaded.';
    return new UpstreamFailed('busy', `${message} ${meaning}`, retry_after_s, status);
  }
  const is_busy = status === 503 || (status === 502 && retry_after_s !== null);
  if (is_busy) return new UpstreamFailed('busy', message, retry_after_s);
  if (status === 400 || status === 413 || status === 422) return new UpstreamFailed('rejected', message);
  return new UpstreamFailed('refused', message, null, status);
}

function retryAfterOf(headers: Headers): number | null {
  const text = headers.get('retry-after') ?? '';
  return /^\d{1,9}$/.test(text) ? Math.min(RETRY_AFTER_MAX_S, Math.max(1, Number(text))) : null;
}

/** Returns the beginning of the text, as far as it arrives. */
async function beginningOf(response: Response): Promise<string> {
  try {
    return new TextDecoder().decode(await bytesOf(response, ERROR_BYTES_MAX)).slice(0, ERROR_BYTES_MAX);
  } catch {
    return '';
  }
}

async function textOf(response: Response, address: string, bytes_max: number): Promise<string> {
  const bytes = await bytesOf(response, bytes_max);
  if (bytes.byteLength > bytes_max) {
    throw new UpstreamFailed('bad_answer', `The answer of ${address} is too long.`);
  }
  return new TextDecoder().decode(bytes);
}

/** Returns the most bytes of an answer to that body, so that many answers at once do not fill the memory. */
function longestAnswer(body: string | null): number {
  if (body === null) return ANSWER_BYTES_MAX;
  const bytes = SHORT_ANSWER_BYTES_MAX + BYTES_PER_BYTE_MAX * Buffer.byteLength(body);
  return Math.min(ANSWER_BYTES_MAX, bytes);
}

/** Returns the body; of one that is too long, at most one piece beyond the bound. */
async function bytesOf(response: Response, bytes_max: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    pieces.push(piece);
    length += piece.byteLength;
    // Leaving the loop ends the connection.
    if (length > bytes_max) break;
  }
  return Buffer.concat(pieces);
}
