import { and, eq, gt, isNull, or, sql } from 'drizzle-orm';
import type { IdempotencyRecords, StoredClaim } from '../../src/store/idempotency-records.ts';
import { readKept } from '../../src/store/kept-answer.ts';
import type { Executor } from './connection.ts';
import { idempotentRequests } from './schema.ts';

/** The stored idempotency keys in PostgreSQL; claims and answers are written in the transactions of the ledger. */
export class PostgresIdempotencyRecords implements IdempotencyRecords {
  constructor(private readonly executor: Executor) {}

  async findClaim(
    { api_key_id, key_hash }: Parameters<IdempotencyRecords['findClaim']>[0],
    after_ms: number,
  ): Promise<StoredClaim | undefined> {
    const { body_hash, answer, created_at_ms } = idempotentRequests;
    const [row] = await this.executor
      .select({ body_hash, answer })
      .from(idempotentRequests)
      .where(
        and(
          eq(idempotentRequests.api_key_id, api_key_id),
          eq(idempotentRequests.key_hash, key_hash),
          or(isNull(answer), gt(created_at_ms, after_ms)),
        ),
      );
    if (row === undefined) return undefined;
    return { body_hash: row.body_hash, kept: readKept(row.answer) };
  }

  /** Skips locked rows, because the ledger also deletes old answers and may have locked several. */
  async deleteAnswers(up_to_ms: number, limit: number): Promise<number> {
    const deleted = await this.executor.execute(sql`
      DELETE FROM idempotent_requests WHERE (api_key_id, key_hash) IN (
        SELECT api_key_id, key_hash FROM idempotent_requests
        WHERE created_at_ms <= ${up_to_ms} AND answer IS NOT NULL LIMIT ${limit} FOR UPDATE SKIP LOCKED)
      RETURNING 1 AS deleted`);
    return deleted.length;
  }
}
