import { IDEMPOTENCY_KEPT_MS } from './claim.ts';
import type { IdempotencyRecords } from './idempotency-records.ts';

/** Answers that one transaction deletes: few enough that requests wait some milliseconds at most. */
const BATCH_ANSWERS = 500;

/** Where the answers are, with a transaction for each batch. */
interface ForgetfulStore {
  transaction<T>(work: (records: { readonly idempotency: IdempotencyRecords }) => Promise<T>): Promise<T>;
}

/** Deletes the answers that no idempotency key stands for any more. Rejects with what the store rejects with. */
export async function forgetAnswers(store: ForgetfulStore, now_ms: number): Promise<void> {
  const up_to_ms = now_ms - IDEMPOTENCY_KEPT_MS;
  for (;;) {
    const deleted = await store.transaction(({ idempotency }) =>
      idempotency.deleteAnswers(up_to_ms, BATCH_ANSWERS),
    );
    if (deleted < BATCH_ANSWERS) return;
  }
}
