import { createHmac, timingSafeEqual } from 'node:crypto';

/** The tolerated difference between Paddle's clock and this machine's, in either direction. */
const CLOCK_DIFFERENCE_MAX_S = 5 * 60;
/** The longest transit of a call. Paddle gives up after 5 seconds and signs the next try anew. */
const TRANSIT_MAX_S = 10;

const TIME = /^\d{1,12}$/;
const HASH = /^[0-9a-f]{64}$/i;

/** A `Paddle-Signature` header: the time of the signature, and the hashes under all valid secrets. */
export interface PaddleSignature {
  /** The signed Unix seconds, as text. */
  readonly time: string;
  readonly hashes: readonly Buffer[];
}

/**
 * Parses the header `ts=<seconds>;h1=<hash>` (Paddle Billing, "Signature verification"). During the rotation
 * of a secret there is an `h1` for the old one and one for the new one. Returns null for any other text.
 */
export function parseSignature(header: string | null): PaddleSignature | null {
  const fields = (header ?? '').split(';').map((field) => field.trim().split('='));
  const times = fields.flatMap(([name, value = '']) => (name === 'ts' ? [value] : []));
  const hashes = fields.flatMap(([name, value = '']) => (name === 'h1' && HASH.test(value) ? [value] : []));
  const [time, second] = times;
  if (time === undefined || second !== undefined || !TIME.test(time) || hashes.length === 0) return null;
  return { time, hashes: hashes.map((hash) => Buffer.from(hash, 'hex')) };
}

/**
 * Returns true if one of the hashes is the HMAC SHA-256 of `time:body` under the secret. Takes constant time.
 */
export function isSignedBy(signature: PaddleSignature, body: Uint8Array, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(`${signature.time}:`).update(body).digest();
  return signature.hashes.some((hash) => timingSafeEqual(hash, expected));
}

/** Returns the seconds since the call was signed; below zero when its clock is ahead of `now_ms`. */
export function ageSeconds(signature: PaddleSignature, now_ms: number): number {
  return Math.floor(now_ms / 1_000) - Number(signature.time);
}

/** Returns true if a call of that age can be a first delivery instead of a recording. */
export function isWithinTolerance(age_s: number): boolean {
  return age_s >= -CLOCK_DIFFERENCE_MAX_S && age_s <= CLOCK_DIFFERENCE_MAX_S + TRANSIT_MAX_S;
}
