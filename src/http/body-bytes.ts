import { type CommonCode, type ErrorCode, Refusal } from '../errors.ts';
import type { BodyBudget } from '../limits/body-budget.ts';

/** The largest body that is read (contract: a body has at most 1 MB). */
export const BODY_BYTES_MAX = 1_048_576;

/** How long a body may take to arrive; a client that sends slower holds a place and, at a stop, everybody else. */
export const BODY_DEADLINE_MS = 60_000;

/** Seconds after which a body that found no room is worth sending again: most arrive within one. */
const RETRY_AFTER_S = 1;

/** What a body can be refused with, beside `COMMON_CODES`. */
export const BODY_CODES = ['request_too_large', 'invalid_json'] as const satisfies readonly ErrorCode[];

/** Why there are no bytes. */
export type BodyRefusal = Refusal<(typeof BODY_CODES)[number] | CommonCode>;

/** What bounds the bodies that are being received. */
export interface BodyLimits {
  readonly budget: BodyBudget;
  readonly deadline_ms: number;
  /** The largest body that is read, where that is less than the contract's. */
  readonly bytes_max?: number;
}

/**
 * The bytes of a request's body. Refuses with `request_too_large` above `bytes_max`, by Content-Length or by the
 * bytes that came. Refuses with `request_timeout` when the body is late, and with `invalid_json` when the client
 * stopped sending. Refuses with `overloaded` when bodies that are still arriving have used up the budget of `owner` or
 * of all. A body whose stream fails with a refusal is refused with that one. Nothing is read before the call.
 * `onReceived` is told how many bytes came, whatever became of them.
 */
export async function readBytes(
  request: Request,
  owner: string,
  { budget, deadline_ms, bytes_max = BODY_BYTES_MAX }: BodyLimits,
  onReceived: (bytes: number) => void = () => {},
): Promise<Uint8Array | BodyRefusal> {
  const announced = announcedBytes(request);
  if (announced !== null && announced > bytes_max) return new Refusal('request_too_large');
  if (request.body === null) return new Uint8Array();
  // Room for the whole body is taken at once: a refusal costs least before anything was read.
  let taken = announced ?? 0;
  if (!budget.take(owner, taken)) return overloaded();
  // Nearly every body comes in one piece.
  let first: Uint8Array | undefined;
  let received: Bun.ArrayBufferSink | undefined;
  const reader = request.body.getReader();
  let is_late = false;
  const deadline = setTimeout(() => {
    is_late = true;
    // Nothing is lost: the rest of a body that is late is not read, however its stream ends.
    reader.cancel().catch(() => {});
  }, deadline_ms);
  let size = 0;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.byteLength;
      const refusal = size > bytes_max ? new Refusal('request_too_large') : takeUpTo(size);
      if (refusal !== null) {
        // Nothing is lost: the body is refused, however its stream ends.
        reader.cancel().catch(() => {});
        return refusal;
      }
      if (first === undefined) first = read.value;
      else {
        received ??= growing(first);
        received.write(read.value);
      }
    }
  } catch (reason) {
    if (reason instanceof Refusal) return reason;
    return new Refusal('invalid_json', { message: 'The request body ended early.' });
  } finally {
    clearTimeout(deadline);
    budget.give(owner, taken);
    onReceived(size);
  }
  if (is_late) return new Refusal('request_timeout');
  const bytes = received?.end() ?? first ?? new Uint8Array();
  return bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);

  function takeUpTo(bytes: number): BodyRefusal | null {
    const more = bytes - taken;
    if (more <= 0) return null;
    if (!budget.take(owner, more)) return overloaded();
    taken += more;
    return null;
  }
}

/** One growing buffer: a body of single bytes, kept as it came, would take a hundred times its size. */
function growing(first: Uint8Array): Bun.ArrayBufferSink {
  const buffer = new Bun.ArrayBufferSink();
  buffer.start({ asUint8Array: true });
  buffer.write(first);
  return buffer;
}

/** The size that a request announces; null when it does not, as beside Transfer-Encoding (RFC 9112, 6.3). */
function announcedBytes({ headers }: Request): number | null {
  const length = headers.get('content-length');
  return length === null || headers.has('transfer-encoding') ? null : Number(length);
}

function overloaded(): Refusal<'overloaded'> {
  return new Refusal('overloaded', {
    message: 'Too many request bodies are arriving at once.',
    retry_after_s: RETRY_AFTER_S,
  });
}
