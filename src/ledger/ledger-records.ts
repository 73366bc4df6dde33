/** Money that a payment brought, or that a refund takes back. */
export interface PaymentMovement {
  readonly organization_id: string;
  readonly amount_micros: number;
  readonly payment_id: string;
  readonly at_ms: number;
}

/** The ledger as one transaction sees it: what payments move. */
export interface LedgerRecords {
  /**
   * Adds paid credit. Rejects with `UnknownAccount`, and with the store's error for a payment that was entered before.
   */
  topUp(movement: PaymentMovement): Promise<void>;
  /**
   * Takes refunded credit back, below zero if it was spent (contract: a refund lowers what was paid, and so the tier).
   * When nothing is left of what was paid, the days since the first payment start anew with the next one. Rejects with
   * `UnknownAccount`, `RefundExceedsPayments`, and with the store's error for a refund that was entered before.
   */
  refund(movement: PaymentMovement): Promise<void>;
}
