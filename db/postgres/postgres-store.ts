import type { Records } from '../../src/store/store.ts';
import { SqlAccountRecords } from '../records/account-records.ts';
import { SqlAlertRecords } from '../records/alert-records.ts';
import { SqlAuditLogRecords } from '../records/audit-log-records.ts';
import { SqlCatalogRecords } from '../records/catalog-records.ts';
import { SqlInvitationRecords } from '../records/invitation-records.ts';
import { SqlPaymentRecords } from '../records/payment-records.ts';
import { SqlStore } from '../sql-store.ts';
import type { Executor, PgDb } from './connection.ts';
import { PostgresIdempotencyRecords } from './idempotency-records.ts';
import { PostgresKeyRecords } from './key-records.ts';
import { PostgresLedgerRecords } from './ledger-records.ts';
import { Transactions, type TransactionsOptions } from './transactions.ts';
import { PostgresUsageRecords } from './usage-records.ts';

/** The store in one PostgreSQL database, which other processes may share. */
export class PostgresStore extends SqlStore<Executor> {
  constructor(db: PgDb, options?: TransactionsOptions) {
    super({ transactions: new Transactions(db, options), outside: db, recordsThrough });
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
