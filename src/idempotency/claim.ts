import { createHmac } from 'node:crypto';
import type { JsonValue } from '../json/json-value.ts';
import { writeJson } from '../json/write-json.ts';
import type { IdempotencyClaim } from '../store/idempotency-records.ts';
import { DAY_MS } from '../time/clock.ts';

/** The most characters of an `Idempotency-Key`; it has at least one. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;

/** The time for which an answer is kept for its key, from the time of its request. */
export const IDEMPOTENCY_KEPT_MS = DAY_MS;

/** A client's request with an idempotency key. */
export interface IdempotentRequest {
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly idempotency_key: string;
  readonly endpoint: string;
  readonly query_mode: string | null;
  readonly body: JsonValue;
}

/**
 * Returns the claim of a request. Bodies count as equal when their JSON has the same values in the same
 * order. The order matters, because the model reads options in it; spaces do not.
 */
export function claimOf(request: IdempotentRequest): IdempotencyClaim {
  const { api_key_id, api_key_secret, idempotency_key, endpoint, query_mode, body } = request;
  return {
    api_key_id,
    key_hash: keyedHash(api_key_secret, ['idempotency-key', idempotency_key]),
    body_hash: keyedHash(api_key_secret, ['body', endpoint, query_mode ?? '', writeJson(body)]),
  };
}

function keyedHash(secret: string, parts: readonly string[]): string {
  const hash = createHmac('sha256', secret);
  // The length before each part keeps the end of one from passing as the start of another.
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('base64url');
}
