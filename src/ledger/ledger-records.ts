/** Money that a payment brought, or that a refund takes back. */
export interface PaymentMovement {
  readonly organization_id: string;
  readonly amount_micros: number;
  readonly payment_id: string;
  readonly at_ms: number;
}

/** What an organization has. */
export interface Balance {
  /** May be negative: a refund can take back credit that was already spent. */
  readonly credit_micros: number;
  /** What open holds reserve of the credit. */
  readonly held_micros: number;
  /** Lifetime purchases less refunds. */
  readonly paid_micros: number;
}

/** A movement of an organization's credit; what is only held does not move it. */
export interface CreditMovement {
  /** Its place in the order of the ledger. */
  readonly entry_id: number;
  /** `daily_charges` stands for all the charges of a project on an old UTC day. */
  readonly kind: 'top_up' | 'refund' | 'charge' | 'daily_charges';
  /** Charges that were rolled up count as made at their day's end. */
  readonly created_at_ms: number;
  /** What it adds to the credit: negative for a refund or a charge. */
  readonly amount_micros: number;
  readonly project_id: string | null;
  readonly payment_id: string | null;
}

/** The ledger as one transaction (or a single read) sees it: what payments move, and what has moved. */
export interface LedgerRecords {
  /** Adds paid credit. Rejects with `UnknownAccount`, and with the store's error for a payment that was entered before. */
  topUp(movement: PaymentMovement): Promise<void>;
  /**
   * Takes refunded credit back, below zero if it was spent (contract: a refund lowers what was paid, and so the tier).
   * When nothing is left of what was paid, the days since the first payment start anew with the next one. Rejects with
   * `UnknownAccount`, `RefundExceedsPayments`, and with the store's error for a refund that was entered before.
   */
  refund(movement: PaymentMovement): Promise<void>;
  /** Undefined when there is no such organization. */
  balance(organization_id: string): Promise<Balance | undefined>;
  /** The newest movements, newest first, at most `limit` of them. */
  movements(organization_id: string, limit: number): Promise<readonly CreditMovement[]>;
}
