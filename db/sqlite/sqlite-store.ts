import { SqlAccountRecords } from '../records/account-records.ts';
import { SqlAlertRecords } from '../records/alert-records.ts';
import { SqlAuditLogRecords } from '../records/audit-log-records.ts';
import { SqlInvitationRecords } from '../records/invitation-records.ts';
import { SqlPaymentRecords } from '../records/payment-records.ts';
import { SqlStore } from '../sql-store.ts';
import { prepareCatalogStatements, SqliteCatalogRecords } from './catalog-records.ts';
import type { Db } from './connection.ts';
import { executorThrough } from './executor.ts';
import { GroupCommit, type GroupCommitOptions } from './group-commit.ts';
import { SqliteIdempotencyRecords } from './idempotency-records.ts';
import { prepareKeyStatements, SqliteKeyRecords } from './key-records.ts';
import { SqliteLedgerRecords } from './ledger-records.ts';
import { SqliteLedger } from './sqlite-ledger.ts';
import { type Access, Transactions } from './transactions.ts';
import { SqliteUsageRecords } from './usage-records.ts';

/** The store in one SQLite database. A connection has one store, because its transactions cannot overlap. */
export class SqliteStore extends SqlStore<Access> {
  /** Access outside of any transaction, for code with its own SQL (`sign-in-database.ts`). */
  readonly outside: Access;

  /** `writes` bounds the waits of transactions for a lock. `commits` is the group commit of the same connection. */
  constructor(db: Db, writes?: GroupCommitOptions, commits = new GroupCommit(db, writes)) {
    const keyStatements = prepareKeyStatements(db);
    const catalogStatements = prepareCatalogStatements(db);
    const ledger = new SqliteLedger(db);
    const transactions = new Transactions(db, writes);
    const { outside } = transactions;
    super({
      transactions,
      outside,
      recordsThrough: (access, noteKeyChange) => {
        const executor = executorThrough(db.$client, access);
        return {
          accounts: new SqlAccountRecords(executor, noteKeyChange),
          invitations: new SqlInvitationRecords(executor),
          keys: new SqliteKeyRecords(executor, access, keyStatements, commits, noteKeyChange),
          catalog: new SqliteCatalogRecords(executor, access, catalogStatements),
          payments: new SqlPaymentRecords(executor),
          usage: new SqliteUsageRecords(db, access),
          ledger: new SqliteLedgerRecords(ledger, access),
          audit_log: new SqlAuditLogRecords(executor),
          alerts: new SqlAlertRecords(executor),
          idempotency: new SqliteIdempotencyRecords(db, access),
        };
      },
    });
    this.outside = outside;
  }
}
