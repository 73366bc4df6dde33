import type { IdempotencyClaim } from './claim.ts';
import type { KeptAnswer } from './kept-answer.ts';

/** What is stored for an idempotency key. */
export interface StoredClaim {
  readonly body_hash: string;
  /** Null while its request runs, on whichever node. */
  readonly kept: KeptAnswer | null;
}

/** The stored idempotency keys. Claims are written with holds, and answers with charges, by `Books`. */
export interface IdempotencyRecords {
  /** What the key of the claim stands for since `after_ms`; undefined where it is new. */
  findClaim(
    claim: Pick<IdempotencyClaim, 'api_key_id' | 'key_hash'>,
    after_ms: number,
  ): Promise<StoredClaim | undefined>;
  /** Deletes the answers to requests of up to that time, at most `limit` of them. Resolves with how many. */
  deleteAnswers(up_to_ms: number, limit: number): Promise<number>;
}
