import type { AccountContext } from '../access/context.ts';
import type { Records } from '../store/store.ts';

/** The parts that rules use inside one transaction. */
export interface Transaction extends Pick<AccountContext, 'clock' | 'identifiers'> {
  readonly records: Records;
}

/** Runs `work` in one transaction of the store, which is rolled back when it rejects. */
export function inTransaction<T>(
  { store, clock, identifiers }: AccountContext,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return store.transaction((records) => work({ records, clock, identifiers }));
}
