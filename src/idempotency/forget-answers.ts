import type { IdempotencyRecords } from '../store/idempotency-records.ts';
import { IDEMPOTENCY_KEPT_MS } from './claim.ts';

/** The answers that one transaction deletes: few enough that requests wait only some milliseconds. */
const BATCH_ANSWERS = 500;

/** The part of the store with the answers, which gives a transaction for each batch. */
interface ForgetfulStore {
  transaction<T>(work: (records: { readonly idempotency: IdempotencyRecords }) => Promise<T>): Promise<T>;
}

/** Deletes the answers whose idempotency keys have expired. Rejects as the store does. */
export async function forgetAnswers(store: ForgetfulStore, now_ms: number): Promise<void> {
  const up_to_ms = now_ms - IDEMPOTENCY_KEPT_MS;
  for (;;) {
    const deleted = await store.transaction(({ idempotency }) =>
      idempotency.deleteAnswers(up_to_ms, BATCH_ANSWERS),
    );
    if (deleted < BATCH_ANSWERS) return;
  }
}
