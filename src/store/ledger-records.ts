/** The money of a payment or of a refund. */
export interface PaymentMovement {
  readonly organization_id: string;
  readonly amount_micros: number;
  readonly payment_id: string;
  readonly at_ms: number;
}

/** The money of a payment, or of a refund that is taken back. */
export interface PaidMovement extends PaymentMovement {
  /** The time of the payment where that is not now, because a refund of it is taken back. */
  readonly paid_at_ms?: number;
}

/** The ledger of payments and refunds, as one transaction sees it. */
export interface LedgerRecords {
  /**
   * Adds paid credit. The days since the first payment count from the earliest time that was paid at. Rejects with
   * `UnknownAccount`, and with the store's error for a payment entered before.
   */
  topUp(movement: PaidMovement): Promise<void>;
  /**
   * Takes refunded credit back, below zero if it was spent (contract: a refund lowers the total paid, and so
   * the tier). When that total reaches 0, the days since the first payment start again with the next one.
   * Rejects with `UnknownAccount`, `RefundExceedsPayments`, and with the store's error for a refund entered
   * before.
   */
  refund(movement: PaymentMovement): Promise<void>;
}
