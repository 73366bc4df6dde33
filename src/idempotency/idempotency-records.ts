import type { IdempotencyClaim } from './claim.ts';
import type { KeptAnswer } from './kept-answer.ts';

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
