import type { AccountRecords } from './accounts/account-records.ts';
import type { InvitationRecords } from './accounts/invitation-records.ts';
import type { KeyRecords } from './accounts/key-records.ts';
import type { CatalogRecords } from './catalog/catalog-records.ts';
import type { IdempotencyRecords } from './idempotency/idempotency-records.ts';
import type { LedgerRecords } from './ledger/ledger-records.ts';
import type { PaymentRecords } from './payments/payment-records.ts';
import type { TrailRecords } from './trail/trail-records.ts';
import type { UsageRecords } from './usage/usage-records.ts';

/** What is kept, as one transaction (or a single read) sees it. */
export interface Records {
  readonly accounts: AccountRecords;
  readonly invitations: InvitationRecords;
  readonly keys: KeyRecords;
  readonly catalog: CatalogRecords;
  readonly payments: PaymentRecords;
  readonly usage: UsageRecords;
  readonly ledger: LedgerRecords;
  readonly trail: TrailRecords;
  readonly idempotency: IdempotencyRecords;
}

/** A transaction, or a read outside of it, was asked for inside a transaction's work. */
export class NestedTransaction extends Error {
  override readonly name = 'NestedTransaction';
}

/** Where everything is kept. A single read or write needs no transaction. */
export interface Store extends Records {
  /**
   * Runs `work` in one transaction. Resolves with its result once that is on disk; rolls all of it back when `work`
   * rejects. `work` may await nothing but the records that it gets, and must have no effect elsewhere.
   */
  transaction<T>(work: (records: Records) => Promise<T>): Promise<T>;

  /**
   * Runs `work`, which only reads, on one state of everything. It waits for nobody's writes, and succeeds where the
   * database takes none; a write in it rejects. `work` may await nothing but the records that it gets.
   */
  snapshot<T>(work: (records: Records) => Promise<T>): Promise<T>;

  /**
   * Calls `listener` after each commit of this store that may change a lookup of a key. Those are revoked keys, and
   * the tier, the limits and the suspension of organizations.
   */
  onKeyChange(listener: () => void): void;
}
