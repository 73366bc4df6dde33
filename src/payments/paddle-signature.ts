import { createHmac, timingSafeEqual } from 'node:crypto';

/** Paddle's and this machine's clock may be so far apart, in either direction. */
const CLOCK_DIFFERENCE_MAX_S = 5 * 60;
/** How long a call may be on its way. Paddle gives up on one after 5 seconds and signs the next try anew. */
const TRANSIT_MAX_S = 10;

const TIME = /^\d{1,12}$/;
const HASH = /^[0-9a-f]{64}$/i;

/** A `Paddle-Signature` header: when the call was signed, and the hashes under every secret that is valid then. */
export interface PaddleSignature {
  /** Unix seconds as they were signed. */
  readonly time: string;
  readonly hashes: readonly Buffer[];
}

/**
 * The parts of the header `ts=<seconds>;h1=<hash>` (Paddle Billing, "Signature verification"). While a secret is
 * rotated there is an `h1` for the old and one for the new secret. Null when the text cannot be such a header.
 */
export function parseSignature(header: string | null): PaddleSignature | null {
  const fields = (header ?? '').split(';').map((field) => field.trim().split('='));
  const times = fields.flatMap(([name, value = '']) => (name === 'ts' ? [value] : []));
  const hashes = fields.flatMap(([name, value = '']) => (name === 'h1' && HASH.test(value) ? [value] : []));
  const [time, second] = times;
  if (time === undefined || second !== undefined || !TIME.test(time) || hashes.length === 0) return null;
  return { time, hashes: hashes.map((hash) => Buffer.from(hash, 'hex')) };
}

/** Whether one of the hashes is the HMAC SHA-256 of `time:body` under the secret, in a time that tells nothing else. */
export function isSignedBy(signature: PaddleSignature, body: Uint8Array, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(`${signature.time}:`).update(body).digest();
  return signature.hashes.some((hash) => timingSafeEqual(hash, expected));
}

/** How many seconds ago the call was signed; below zero when its clock is ahead of `now_ms`. */
export function ageSeconds(signature: PaddleSignature, now_ms: number): number {
  return Math.floor(now_ms / 1_000) - Number(signature.time);
}

/** Whether a call of that age can be a first delivery and no recording. */
export function isWithinTolerance(age_s: number): boolean {
  return age_s >= -CLOCK_DIFFERENCE_MAX_S && age_s <= CLOCK_DIFFERENCE_MAX_S + TRANSIT_MAX_S;
}
