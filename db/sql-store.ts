import type { Records, Store } from '../src/store/store.ts';
import { KeyChanges, noKeyChange } from './key-changes.ts';

/** The transactions of a database. They give their work a scope, which reads and writes inside of them. */
interface ScopedTransactions<Scope> {
  run<T>(work: (scope: Scope) => Promise<T>): Promise<T>;
  snapshot<T>(work: (scope: Scope) => Promise<T>): Promise<T>;
}

/** The parts of which a database's store is made. */
interface StoreParts<Scope> {
  readonly transactions: ScopedTransactions<Scope>;
  /** The scope outside of any transaction. */
  readonly outside: Scope;
  /** Returns the records as a scope sees them. */
  readonly recordsThrough: (scope: Scope, noteKeyChange: () => void) => Records;
}

/** The store in one database, which tells its listeners of changed keys after the commit. */
export abstract class SqlStore<Scope> implements Store {
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
  readonly #parts: StoreParts<Scope>;
  readonly #key_changes = new KeyChanges();

  constructor(parts: StoreParts<Scope>) {
    this.#parts = parts;
    const outside = parts.recordsThrough(parts.outside, this.#key_changes.announce);
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

  /** Also rejects as `Transactions.run` of the database does. */
  transaction<T>(work: (records: Records) => Promise<T>): Promise<T> {
    const { transactions, recordsThrough } = this.#parts;
    return this.#key_changes.afterCommit((note) =>
      transactions.run((scope) => work(recordsThrough(scope, note))),
    );
  }

  /** Also rejects as `Transactions.snapshot` of the database does. */
  snapshot<T>(work: (records: Records) => Promise<T>): Promise<T> {
    const { transactions, recordsThrough } = this.#parts;
    return transactions.snapshot((scope) => work(recordsThrough(scope, noKeyChange)));
  }

  onKeyChange(listener: () => void): void {
    this.#key_changes.listen(listener);
  }
}
