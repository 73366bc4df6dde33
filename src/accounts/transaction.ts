import type { Records } from '../store.ts';
import type { AccountContext } from './context.ts';

/** What rules work with inside one transaction, where they need more than its records. */
export interface Transaction extends Pick<AccountContext, 'clock' | 'identifiers'> {
  readonly records: Records;
}

/** Runs `work` in one transaction of the store: all of it, or nothing when it rejects. */
export function inTransaction<T>(
  { store, clock, identifiers }: AccountContext,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return store.transaction((records) => work({ records, clock, identifiers }));
}
