/** A line in the list of an organization's credit movements. */
export interface MovementLine {
  /**
   * `charges` stands for several charges: those of a UTC day, or of a project on a day that was rolled up.
   */
  readonly kind: 'top_up' | 'refund' | 'charge' | 'charges';
  /** The id of its newest entry. */
  readonly entry_id: number;
  /** The time of the newest movement. Rolled-up charges count at their day's end. */
  readonly at_ms: number;
  /** The change of the credit: negative for a refund or a charge. */
  readonly amount_micros: number;
  /** The balance after the movement. */
  readonly balance_micros: number;
  /** The number of charges; 0 for a payment. */
  readonly charges: number;
  /** The project of a charge; null where several projects share the line. */
  readonly project_id: string | null;
  /** The request of a single charge. */
  readonly request_id: string | null;
  /** The payment of a top-up or refund, and its provider. */
  readonly payment_id: string | null;
  readonly provider: string | null;
  /** The payment that a refund gives back, or whose refund a top-up takes back; null for a new payment. */
  readonly refunds_payment_id: string | null;
}

/** The start of the next lines: before an entry, with the balance there. */
export interface MovementPlace {
  readonly entry_id: number;
  readonly balance_micros: number;
}

/** The requested lines. Charges are listed singly, or consecutive ones of a UTC day together. */
export interface MovementQuestion {
  readonly organization_id: string;
  readonly charges_by: 'request' | 'day';
  readonly limit: number;
  readonly before?: MovementPlace | undefined;
}

/** Lines, newest first, and the start of the next page; null after the first movement of all. */
export interface MovementPage {
  readonly items: readonly MovementLine[];
  readonly next: MovementPlace | null;
}

/** Long reads of the ledger, outside of the event loop. Each sees one state of the database. */
export interface MovementReader {
  /**
   * Returns lines that add up to the organization's balance. Each line's balance is that of the line below
   * plus its own amount. Returns no lines for an unknown organization.
   */
  movementLines(question: MovementQuestion): Promise<MovementPage>;
}
