import type { KeptAnswer } from './kept-answer.ts';

/**
 * The identity of a request with an idempotency key. Both hashes are keyed with the secret of the API key, or with
 * another one of its client, which is stored nowhere. Therefore a reader of the database cannot try out guesses of
 * what a client sent.
 */
export interface IdempotencyClaim {
  readonly api_key_id: string;
  readonly key_hash: string;
  readonly body_hash: string;
}

/** The stored state of an idempotency key. */
export interface StoredClaim {
  readonly body_hash: string;
  /** Null while its request runs, on any node. */
  readonly kept: KeptAnswer | null;
}

/** The stored idempotency keys. Claims are written with holds, and answers with charges, by `Books`. */
export interface IdempotencyRecords {
  /** Returns the state of the claim's key since `after_ms`; undefined for a new key. */
  findClaim(
    claim: Pick<IdempotencyClaim, 'api_key_id' | 'key_hash'>,
    after_ms: number,
  ): Promise<StoredClaim | undefined>;
  /** Deletes at most `limit` answers to requests of up to that time. Resolves with their number. */
  deleteAnswers(up_to_ms: number, limit: number): Promise<number>;
}
