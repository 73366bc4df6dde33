import type { LedgerRecords, PaidMovement, PaymentMovement } from '../../src/store/ledger-records.ts';
import type { SqliteLedger } from './sqlite-ledger.ts';
import type { Access } from './transactions.ts';

/** Writes the movements of payments in SQLite. */
export class SqliteLedgerRecords implements LedgerRecords {
  constructor(
    private readonly ledger: SqliteLedger,
    private readonly access: Access,
  ) {}

  topUp(movement: PaidMovement): Promise<void> {
    return this.access.write(() => this.ledger.topUp(movement));
  }

  refund(movement: PaymentMovement): Promise<void> {
    return this.access.write(() => this.ledger.refund(movement));
  }
}
