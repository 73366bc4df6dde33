import type { LedgerRecords, PaidMovement, PaymentMovement } from '../../src/store/ledger-records.ts';
import type { SqliteLedger } from './sqlite-ledger.ts';
import type { Access } from './transactions.ts';

/** Writes the movements of payments in SQLite. */
export class SqliteLedgerRecords implements LedgerRecords {
  readonly #ledger: SqliteLedger;
  readonly #access: Access;

  constructor(ledger: SqliteLedger, access: Access) {
    this.#ledger = ledger;
    this.#access = access;
  }

  topUp(movement: PaidMovement): Promise<void> {
    return this.#access.write(() => this.#ledger.topUp(movement));
  }

  refund(movement: PaymentMovement): Promise<void> {
    return this.#access.write(() => this.#ledger.refund(movement));
  }
}
