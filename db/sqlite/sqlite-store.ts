import type { Records, Store } from '../../src/store.ts';
import { SqliteAccountRecords } from './account-records.ts';
import { prepareCatalogStatements, SqliteCatalogRecords } from './catalog-records.ts';
import type { Db } from './connection.ts';
import type { GroupCommitOptions } from './group-commit.ts';
import { SqliteLedgerRecords } from './ledger-records.ts';
import { SqlitePaymentRecords } from './payment-records.ts';
import { SqliteLedger } from './sqlite-ledger.ts';
import { type Access, Transactions } from './transactions.ts';
import { SqliteUsageRecords } from './usage-records.ts';

/** The store in one SQLite database. */
export class SqliteStore implements Store {
  readonly accounts: Records['accounts'];
  readonly catalog: Records['catalog'];
  readonly payments: Records['payments'];
  readonly usage: Records['usage'];
  readonly ledger: Records['ledger'];
  readonly #transactions: Transactions;
  readonly #recordsThrough: (access: Access) => Records;

  constructor(db: Db, writes?: GroupCommitOptions) {
    const catalogStatements = prepareCatalogStatements(db);
    const ledger = new SqliteLedger(db);
    this.#recordsThrough = (access) => ({
      accounts: new SqliteAccountRecords(db, access),
      catalog: new SqliteCatalogRecords(db, access, catalogStatements),
      payments: new SqlitePaymentRecords(db, access),
      usage: new SqliteUsageRecords(db, access),
      ledger: new SqliteLedgerRecords(ledger, access),
    });
    this.#transactions = new Transactions(db, writes);
    const {
      accounts,
      catalog,
      payments,
      usage,
      ledger: ledgerRecords,
    } = this.#recordsThrough(this.#transactions.outside);
    this.accounts = accounts;
    this.catalog = catalog;
    this.payments = payments;
    this.usage = usage;
    this.ledger = ledgerRecords;
  }

  /** As the port says. What else it rejects with stands at `Transactions.run`. */
  transaction<T>(work: (records: Records) => Promise<T>): Promise<T> {
    return this.#transactions.run((access) => work(this.#recordsThrough(access)));
  }
}
