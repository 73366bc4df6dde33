import type { Store } from '../store/store.ts';
import { IDEMPOTENCY_KEPT_MS } from './claim.ts';

/** The answers that one transaction deletes: few enough that requests wait only some milliseconds. */
const BATCH_ANSWERS = 500;

/** Deletes the answers whose idempotency keys have expired, each batch in a transaction. Rejects as the store does. */
export async function forgetAnswers(store: Pick<Store, 'transaction'>, now_ms: number): Promise<void> {
  const up_to_ms = now_ms - IDEMPOTENCY_KEPT_MS;
  for (;;) {
    const deleted = await store.transaction(({ idempotency }) =>
      idempotency.deleteAnswers(up_to_ms, BATCH_ANSWERS),
    );
    if (deleted < BATCH_ANSWERS) return;
  }
}
