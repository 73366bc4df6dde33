import { and, desc, eq, isNotNull, lte, sql } from 'drizzle-orm';
import { IDEMPOTENCY_KEPT_MS } from '../../src/idempotency/claim.ts';
import type { Hold } from '../../src/store/hold.ts';
import type { IdempotencyClaim } from '../../src/store/idempotency-records.ts';
import { KEPT_BYTES_MAX, type KeptAnswer, writeKept } from '../../src/store/kept-answer.ts';
import type { Db } from './connection.ts';
import { idempotentRequests } from './schema.ts';

/**
 * Writes the claims of requests with an idempotency key in the commits of their holds. Writes the answers in the
 * commits of the charges. The deletion of a hold deletes its claim, so a release or a crash needs no code here.
 */
export class IdempotencyWriter {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Db) {
    this.#statements = prepare(db);
  }

  /** Returns true if another request has the claim, or its answer is kept. Deletes an expired claim. */
  isTaken({ api_key_id, key_hash }: IdempotencyClaim, now_ms: number): boolean {
    const key = { api_key_id, key_hash };
    this.#statements.forget.run({ ...key, up_to_ms: now_ms - IDEMPOTENCY_KEPT_MS });
    return this.#statements.find.get(key) !== undefined;
  }

  /** Gives the claim to the hold's request. Throws SQLite's constraint error if it is taken. */
  claim(claim: IdempotencyClaim, { organization_id, entry_id }: Hold, now_ms: number): void {
    this.#statements.insert.run({ ...claim, organization_id, hold_entry_id: entry_id, now_ms });
  }

  /** Stores the answer to the hold's request, and deletes the organization's oldest answers above its limit. */
  keep({ organization_id, entry_id }: Hold, kept: KeptAnswer): void {
    const { answer, bytes } = writeKept(kept);
    const before = this.#statements.last.get({ organization_id })?.bytes_so_far ?? 0;
    const bytes_so_far = before + bytes;
    this.#statements.answer.run({ answer, bytes_so_far, hold_entry_id: entry_id });
    this.#statements.drop.run({ organization_id, up_to_bytes: bytes_so_far - KEPT_BYTES_MAX });
  }
}

function prepare(db: Db) {
  const { placeholder } = sql;
  const ofKey = and(
    eq(idempotentRequests.api_key_id, placeholder('api_key_id')),
    eq(idempotentRequests.key_hash, placeholder('key_hash')),
  );
  return {
    forget: db
      .delete(idempotentRequests)
      .where(
        and(
          ofKey,
          isNotNull(idempotentRequests.answer),
          lte(idempotentRequests.created_at_ms, placeholder('up_to_ms')),
        ),
      )
      .prepare(),
    find: db
      .select({ body_hash: idempotentRequests.body_hash })
      .from(idempotentRequests)
      .where(ofKey)
      .prepare(),
    insert: db
      .insert(idempotentRequests)
      .values({
        api_key_id: placeholder('api_key_id'),
        key_hash: placeholder('key_hash'),
        body_hash: placeholder('body_hash'),
        organization_id: placeholder('organization_id'),
        hold_entry_id: placeholder('hold_entry_id'),
        created_at_ms: placeholder('now_ms'),
      })
      .prepare(),
    last: db
      .select({ bytes_so_far: idempotentRequests.bytes_so_far })
      .from(idempotentRequests)
      .where(eq(idempotentRequests.organization_id, placeholder('organization_id')))
      .orderBy(desc(idempotentRequests.bytes_so_far))
      .limit(1)
      .prepare(),
    answer: db
      .update(idempotentRequests)
      .set({
        hold_entry_id: null,
        answer: sql`${placeholder('answer')}`,
        bytes_so_far: sql`${placeholder('bytes_so_far')}`,
      })
      .where(eq(idempotentRequests.hold_entry_id, placeholder('hold_entry_id')))
      .prepare(),
    drop: db
      .delete(idempotentRequests)
      .where(
        and(
          eq(idempotentRequests.organization_id, placeholder('organization_id')),
          lte(idempotentRequests.bytes_so_far, placeholder('up_to_bytes')),
        ),
      )
      .prepare(),
  };
}
