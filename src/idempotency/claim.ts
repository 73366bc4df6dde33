import { createHmac } from 'node:crypto';
import { DAY_MS } from '../clock.ts';
import type { JsonValue } from '../json/json-value.ts';
import { writeJson } from '../json/write-json.ts';

/** Characters that an `Idempotency-Key` may have; it has at least one. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 255;

/** How long an answer is kept for its key, from the time of its request. */
export const IDEMPOTENCY_KEPT_MS = DAY_MS;

/**
 * What a request with an idempotency key is known by. Both hashes are keyed with the secret of the API key, which is
 * stored nowhere. So nobody who reads the database can try out what a client may have sent.
 */
export interface IdempotencyClaim {
  readonly api_key_id: string;
  readonly key_hash: string;
  readonly body_hash: string;
}

/** What a client sent with an idempotency key. */
export interface IdempotentRequest {
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly idempotency_key: string;
  readonly endpoint: string;
  readonly query_mode: string | null;
  readonly body: JsonValue;
}

/**
 * The claim of a request. Bodies are the same when their JSON says the same in the same order. The order of options is
 * part of what the model reads, and spaces are not.
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
  // No text of a part can look like the end of another.
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('base64url');
}
