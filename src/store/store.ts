import type { AccountRecords } from './account-records.ts';
import type { AlertRecords } from './alert-records.ts';
import type { AuditLogRecords } from './audit-log-records.ts';
import type { CatalogRecords } from './catalog-records.ts';
import type { IdempotencyRecords } from './idempotency-records.ts';
import type { InvitationRecords } from './invitation-records.ts';
import type { KeyRecords } from './key-records.ts';
import type { LedgerRecords } from './ledger-records.ts';
import type { PaymentRecords } from './payment-records.ts';
import type { UsageRecords } from './usage-records.ts';

/** The stored data, as one transaction (or a single read) sees it. */
export interface Records {
  readonly accounts: AccountRecords;
  readonly invitations: InvitationRecords;
  readonly keys: KeyRecords;
  readonly catalog: CatalogRecords;
  readonly payments: PaymentRecords;
  readonly usage: UsageRecords;
  readonly ledger: LedgerRecords;
  readonly audit_log: AuditLogRecords;
  readonly alerts: AlertRecords;
  readonly idempotency: IdempotencyRecords;
}

/** The error of a transaction, or of a read outside of it, that was asked for inside a transaction's work. */
export class NestedTransaction extends Error {
  override readonly name = 'NestedTransaction';
}

/** The stored data. A single read or write needs no transaction. */
export interface Store extends Records {
  /**
   * Runs `work` in one transaction. Resolves with its result once that is on disk; rolls everything back when
   * `work` rejects. `work` may await only the records that it gets, and must have no other effect.
   */
  transaction<T>(work: (records: Records) => Promise<T>): Promise<T>;

  /**
   * Runs the reads of `work` on one consistent state. It waits for no writer, and succeeds where the database
   * takes no writes; a write in it rejects. `work` may await only the records that it gets.
   */
  snapshot<T>(work: (records: Records) => Promise<T>): Promise<T>;

  /**
   * Calls `listener` after each commit of this store that may change a key lookup: revoked keys, and changes
   * of an organization's tier, limits and suspension.
   */
  onKeyChange(listener: () => void): void;
}
