import type { Records, Store } from '../../src/store/store.ts';
import { KeyChanges, noKeyChange } from '../key-changes.ts';
import { SqlAccountRecords } from '../records/account-records.ts';
import { SqlAlertRecords } from '../records/alert-records.ts';
import { SqlAuditLogRecords } from '../records/audit-log-records.ts';
import { SqlInvitationRecords } from '../records/invitation-records.ts';
import { SqlPaymentRecords } from '../records/payment-records.ts';
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
export class SqliteStore implements Store {
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
  /** Access outside of any transaction, for code with its own SQL (`sign-in-database.ts`). */
  readonly outside: Access;
  readonly #transactions: Transactions;
  readonly #recordsThrough: (access: Access, noteKeyChange: () => void) => Records;
  readonly #keyChanges = new KeyChanges();

  /** `writes` bounds the waits of transactions for a lock. `commits` is the group commit of the same connection. */
  constructor(db: Db, writes?: GroupCommitOptions, commits = new GroupCommit(db, writes)) {
    const keyStatements = prepareKeyStatements(db);
    const catalogStatements = prepareCatalogStatements(db);
    const ledger = new SqliteLedger(db);
    this.#recordsThrough = (access, noteKeyChange) => {
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
    };
    this.#transactions = new Transactions(db, writes);
    this.outside = this.#transactions.outside;
    const outside = this.#recordsThrough(this.outside, this.#keyChanges.announce);
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
      this.#transactions.run((access) => work(this.#recordsThrough(access, note))),
    );
  }

  /** Also rejects as `Transactions.snapshot` does. */
  snapshot<T>(work: (records: Records) => Promise<T>): Promise<T> {
    return this.#transactions.snapshot((access) => work(this.#recordsThrough(access, noKeyChange)));
  }

  onKeyChange(listener: () => void): void {
    this.#keyChanges.listen(listener);
  }
}
