import type { AccountContext } from '../accounts/context.ts';
import type { Records, Store } from '../store.ts';

/** What the credit services work with. */
export interface CreditContext extends AccountContext {
  readonly store: Store;
}

/** What they work with inside one transaction. */
export interface CreditTransaction extends Pick<CreditContext, 'clock' | 'identifiers'> {
  readonly records: Records;
}

/** Runs `work` in one transaction of the store: all of it, or nothing when it rejects. */
export function inTransaction<T>(
  { store, clock, identifiers }: CreditContext,
  work: (transaction: CreditTransaction) => Promise<T>,
): Promise<T> {
  return store.transaction((records) => work({ records, clock, identifiers }));
}
