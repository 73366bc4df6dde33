import type {
  Balance,
  CreditMovement,
  LedgerRecords,
  PaymentMovement,
} from '../../src/ledger/ledger-records.ts';
import type { SqliteLedger } from './sqlite-ledger.ts';

/** The ledger of a SQLite database, for work that is in a transaction already. Its promises are settled at once. */
export class SqliteLedgerRecords implements LedgerRecords {
  constructor(private readonly ledger: SqliteLedger) {}

  topUp(movement: PaymentMovement): Promise<void> {
    return Promise.try(() => this.ledger.topUp(movement));
  }

  refund(movement: PaymentMovement): Promise<void> {
    return Promise.try(() => this.ledger.refund(movement));
  }

  balance(organization_id: string): Promise<Balance | undefined> {
    return Promise.try(() => this.ledger.balance(organization_id));
  }

  movements(organization_id: string, limit: number): Promise<readonly CreditMovement[]> {
    return Promise.try(() => this.ledger.movements(organization_id, limit));
  }
}
