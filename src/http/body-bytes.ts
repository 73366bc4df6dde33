import { type CommonCode, type ErrorCode, overloaded, Refusal } from '../errors/errors.ts';
import { BodyBudget, type BodyShare } from '../limits/body-budget.ts';
import { UnknownBodies } from '../limits/unknown-bodies.ts';
import { type ContentCoding, decompress } from './content-encoding.ts';

/** The largest body that is read (contract: a body has at most 1 MB). */
export const BODY_BYTES_MAX = 1_048_576;

/** The longest time for a body to arrive; a slower client would hold a slot, and delay a stop. */
const BODY_DEADLINE_MS = 60_000;

/** The same for unknown clients, whose bodies are small. */
const UNKNOWN_BODY_DEADLINE_MS = 10_000;

/** The codes of bodies, besides `COMMON_CODES`. */
export const BODY_CODES = ['request_too_large', 'invalid_json'] as const satisfies readonly ErrorCode[];

/** The reason why a body was not read. */
export type BodyRefusal = Refusal<(typeof BODY_CODES)[number] | CommonCode>;

/**
 * The refusal of a body that its client ended before its end. Most of these clients have left; one that only ended its
 * sending reads this.
 */
export class BodyEndedEarly extends Refusal<'invalid_json'> {
  readonly is_client_gone = true;

  constructor() {
    super('invalid_json', { message: 'The request body ended early.' });
  }
}

/** The bounds of arriving bodies. Unknown clients cannot use up the memory for known ones. */
export interface BodyLimits {
  /** The memory for known clients, by organization. */
  readonly budget: BodyBudget;
  readonly deadline_ms: number;
  /** The memory for all other clients, by address. */
  readonly unknown_bodies: UnknownBodies;
  readonly unknown_deadline_ms: number;
  /** The largest body, where that is less than the contract's. */
  readonly bytes_max?: number;
}

/** Opens the bounds of arriving bodies, but for those that are given. */
export function openBodyLimits(given: Partial<BodyLimits> = {}): BodyLimits {
  return {
    budget: new BodyBudget(),
    deadline_ms: BODY_DEADLINE_MS,
    unknown_bodies: new UnknownBodies(),
    unknown_deadline_ms: UNKNOWN_BODY_DEADLINE_MS,
    ...given,
  };
}

/** The sender of a body: an organization with a valid key, or a client that is known only by its address. */
export type BodySender = { readonly organization_id: string } | { readonly client_address: string };

/** The options of reading a body. */
export interface BodyReading {
  /** The compression; null for none. */
  readonly coding?: ContentCoding | null;
  /** Called with the bytes that arrived or were decompressed, whatever the result. */
  readonly onReceived?: ((bytes: number) => void) | undefined;
}

/** Collects pieces of bytes. */
export class BytePieces {
  size = 0;
  /** Nearly everything comes in one piece. */
  #first: Uint8Array | undefined;
  /** One growing buffer, because single bytes would take a hundred times their size as pieces. */
  #buffer: Bun.ArrayBufferSink | undefined;

  add(piece: Uint8Array): void {
    this.size += piece.byteLength;
    if (this.#first === undefined) {
      this.#first = piece;
      return;
    }
    if (this.#buffer === undefined) {
      this.#buffer = new Bun.ArrayBufferSink();
      this.#buffer.start({ asUint8Array: true });
      this.#buffer.write(this.#first);
    }
    this.#buffer.write(piece);
  }

  /** Returns all bytes; no more can be added. */
  bytes(): Uint8Array {
    const bytes = this.#buffer?.end() ?? this.#first ?? new Uint8Array();
    return bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  }
}

/**
 * Reads the bytes of a request's body, decompressed piece by piece within the same bounds. Refuses with
 * `request_too_large` above `bytes_max`, by Content-Length or by the actual bytes, compressed or not. Refuses
 * with `request_timeout` when the body is late, with `BodyEndedEarly` when the client stopped sending, and with
 * `invalid_json` when the body cannot be decompressed. Refuses with `overloaded` when arriving bodies have used up the
 * budget of the organization or of all. An unknown client's body is refused so when a later one needs the room.
 * Bytes count when they arrive, because an announcement costs a client nothing. A body whose stream fails
 * with a refusal gets that one. Reads nothing before the call.
 */
export async function readBytes(
  request: Request,
  sender: BodySender,
  limits: BodyLimits,
  { coding = null, onReceived = () => {} }: BodyReading = {},
): Promise<Uint8Array | BodyRefusal> {
  const { bytes_max = BODY_BYTES_MAX } = limits;
  const announced = announcedBytes(request);
  if (announced !== null && announced > bytes_max) return new Refusal('request_too_large');
  if (request.body === null) return new Uint8Array();
  const reader = request.body.getReader();
  const ended: { refusal: BodyRefusal | null } = { refusal: null };
  const end = (reason: BodyRefusal) => {
    ended.refusal ??= reason;
    // Nothing is lost: the body is refused, however its stream ends.
    reader.cancel().catch(() => {});
  };
  const share = shareOf(sender, limits, () => end(overloaded('arriving_bodies')));
  const deadline = setTimeout(() => end(new Refusal('request_timeout')), deadlineOf(sender, limits));
  const received = new BytePieces();
  const decoded = new BytePieces();
  let size = 0;
  const keep = (piece: Uint8Array, pieces: BytePieces): boolean => {
    size += piece.byteLength;
    if (pieces.size + piece.byteLength > bytes_max) end(new Refusal('request_too_large'));
    else if (!share.take(piece.byteLength)) end(overloaded('arriving_bodies'));
    else pieces.add(piece);
    return ended.refusal === null;
  };
  try {
    if (!share.take(0)) end(overloaded('arriving_bodies'));
    for (let read = await reader.read(); !read.done; read = await reader.read()) keep(read.value, received);
    if (coding !== null && ended.refusal === null) {
      const damaged = await decompress(received.bytes(), coding, (piece) => keep(piece, decoded));
      if (damaged !== null) end(damaged);
    }
  } catch (reason) {
    if (reason instanceof Refusal) return reason;
    return new BodyEndedEarly();
  } finally {
    clearTimeout(deadline);
    share.close();
    onReceived(size);
  }
  return ended.refusal ?? (coding === null ? received : decoded).bytes();
}

function deadlineOf(sender: BodySender, { deadline_ms, unknown_deadline_ms }: BodyLimits): number {
  return 'organization_id' in sender ? deadline_ms : unknown_deadline_ms;
}

function shareOf(sender: BodySender, { budget, unknown_bodies }: BodyLimits, end: () => void): BodyShare {
  return 'organization_id' in sender
    ? budget.open(sender.organization_id)
    : unknown_bodies.open(sender.client_address, end);
}

/** Returns the announced size of a request; null for none, and beside Transfer-Encoding (RFC 9112, 6.3). */
function announcedBytes({ headers }: Request): number | null {
  const length = headers.get('content-length');
  return length === null || headers.has('transfer-encoding') ? null : Number(length);
}
