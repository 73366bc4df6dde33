import type { Records, Store } from '../../src/store/store.ts';
import { KeyChanges, noKeyChange } from '../key-changes.ts';
import { SqlAccountRecords } from '../records/account-records.ts';
import { SqlAlertRecords } from '../records/alert-records.ts';
import { SqlAuditLogRecords } from '../records/audit-log-records.ts';
import { SqlCatalogRecords } from '../records/catalog-records.ts';
import { SqlInvitationRecords } from '../records/invitation-records.ts';
import { SqlPaymentRecords } from '../records/payment-records.ts';
import type { Executor, PgDb } from './connection.ts';
import { PostgresIdempotencyRecords } from './idempotency-records.ts';
import { PostgresKeyRecords } from './key-records.ts';
import { PostgresLedgerRecords } from './ledger-records.ts';
import { Transactions, type TransactionsOptions } from './transactions.ts';
import { PostgresUsageRecords } from './usage-records.ts';

/** The store in one PostgreSQL database, which other processes may share. */
export class PostgresStore implements Store {
  readonly accounts: Records['accounts'];
  readonly invitations: Records['invitations'];
  readonly keys: Records['keys'];
  readonly catalog: Records['catalog'];
  readonly payments: Records['payments'];
  readonly usage: Records['usage'];
  readonly ledger: Records['ledger'];
  readonly audit_log: Records['audit_log'];
  readonly alerts: Records['alerts'];
  readonly idempotency: Records['idempotency'];
  readonly #transactions: Transactions;
  readonly #keyChanges = new KeyChanges();

  constructor(db: PgDb, options?: TransactionsOptions) {
    this.#transactions = new Transactions(db, options);
    const outside = recordsThrough(db, this.#keyChanges.announce);
    this.accounts = outside.accounts;
    this.invitations = outside.invitations;
    this.keys = outside.keys;
    this.catalog = outside.catalog;
    this.payments = outside.payments;
    this.usage = outside.usage;
    this.ledger = outside.ledger;
    this.audit_log = outside.audit_log;
    this.alerts = outside.alerts;
    this.idempotency = outside.idempotency;
  }

  /** Also rejects as `Transactions.run` does. */
  transaction<T>(work: (records: Records) => Promise<T>): Promise<T> {
    return this.#keyChanges.afterCommit((note) =>
      this.#transactions.run((executor) => work(recordsThrough(executor, note))),
    );
  }

  /** Also rejects as `Transactions.snapshot` does. */
  snapshot<T>(work: (records: Records) => Promise<T>): Promise<T> {
    return this.#transactions.snapshot((executor) => work(recordsThrough(executor, noKeyChange)));
  }

  onKeyChange(listener: () => void): void {
    this.#keyChanges.listen(listener);
  }
}

/** Returns the records as the pool or one open transaction sees them. */
function recordsThrough(executor: Executor, noteKeyChange: () => void): Records {
  return {
    accounts: new SqlAccountRecords(executor, noteKeyChange),
    invitations: new SqlInvitationRecords(executor),
    keys: new PostgresKeyRecords(executor, noteKeyChange),
    catalog: new SqlCatalogRecords(executor),
    payments: new SqlPaymentRecords(executor),
    usage: new PostgresUsageRecords(executor),
    ledger: new PostgresLedgerRecords(executor),
    audit_log: new SqlAuditLogRecords(executor),
    alerts: new SqlAlertRecords(executor),
    idempotency: new PostgresIdempotencyRecords(executor),
  };
}
