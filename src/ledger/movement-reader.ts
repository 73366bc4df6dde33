/** A line of the list of everything that moved an organization's credit. */
export interface MovementLine {
  /** `charges` stands for several: those of a UTC day, or of a project on a day that was rolled up. */
  readonly kind: 'top_up' | 'refund' | 'charge' | 'charges';
  /** The place of its newest entry in the order of the ledger. */
  readonly entry_id: number;
  /** When the newest of it was made. Charges that were rolled up count as made at their day's end. */
  readonly at_ms: number;
  /** What it adds to the credit: negative for a refund or a charge. */
  readonly amount_micros: number;
  /** The balance after it. */
  readonly balance_micros: number;
  /** How many charges it stands for; 0 for a payment. */
  readonly charges: number;
  /** Of a charge; null where the line has those of several projects. */
  readonly project_id: string | null;
  /** Of a single charge. */
  readonly request_id: string | null;
  /** Of a top-up or a refund, with who collected it. */
  readonly payment_id: string | null;
  readonly provider: string | null;
}

/** Where the next lines begin: before an entry, with the balance there. */
export interface MovementPlace {
  readonly entry_id: number;
  readonly balance_micros: number;
}

/** Which lines: charges each by itself, or those of a UTC day that follow each other together. */
export interface MovementQuestion {
  readonly organization_id: string;
  readonly charges_by: 'request' | 'day';
  readonly limit: number;
  readonly before?: MovementPlace | undefined;
}

/** Lines, newest first, and where the next ones begin; null after the first movement of all. */
export interface MovementPage {
  readonly items: readonly MovementLine[];
  readonly next: MovementPlace | null;
}

/** Reads of the ledger that may take long, beside the event loop. Each sees one state of the database. */
export interface MovementReader {
  /**
   * All lines of an organization add up to its balance, and each line's balance is that of the line below it with its
   * own amount. No lines for an organization that does not exist.
   */
  movementLines(question: MovementQuestion): Promise<MovementPage>;
}
