import type { Records, Store } from '../../src/store.ts';
import { SqliteAccountRecords } from './account-records.ts';
import { prepareCatalogStatements, SqliteCatalogRecords } from './catalog-records.ts';
import type { Db } from './connection.ts';
import type { GroupCommitOptions } from './group-commit.ts';
import { type Access, Transactions } from './transactions.ts';

/** The store in one SQLite database. */
export class SqliteStore implements Store {
  readonly accounts: Records['accounts'];
  readonly catalog: Records['catalog'];
  readonly #transactions: Transactions;
  readonly #recordsThrough: (access: Access) => Records;

  constructor(db: Db, writes?: GroupCommitOptions) {
    const catalogStatements = prepareCatalogStatements(db);
    this.#recordsThrough = (access) => ({
      accounts: new SqliteAccountRecords(db, access),
      catalog: new SqliteCatalogRecords(db, access, catalogStatements),
    });
    this.#transactions = new Transactions(db, writes);
    const { accounts, catalog } = this.#recordsThrough(this.#transactions.outside);
    this.accounts = accounts;
    this.catalog = catalog;
  }

  /** As the port says. What else it rejects with stands at `Transactions.run`. */
  transaction<T>(work: (records: Records) => Promise<T>): Promise<T> {
    return this.#transactions.run((access) => work(this.#recordsThrough(access)));
  }
}
