import type { AccountContext } from '../accounts/context.ts';
import type { Records } from '../store.ts';

/** What the rules of payments work with inside one transaction. */
export interface PaymentTransaction extends Pick<AccountContext, 'clock' | 'identifiers'> {
  readonly records: Records;
}

/** Runs `work` in one transaction of the store: all of it, or nothing when it rejects. */
export function inTransaction<T>(
  { store, clock, identifiers }: AccountContext,
  work: (transaction: PaymentTransaction) => Promise<T>,
): Promise<T> {
  return store.transaction((records) => work({ records, clock, identifiers }));
}
