/** What a request asks to reserve: its worst-case cost, against the organization's credit and the project's limit. */
export interface HoldRequest {
  readonly organization_id: string;
  readonly project_id: string;
  readonly request_id: string;
  readonly amount_micros: number;
  readonly at_ms: number;
}

/** Credit that is reserved until it is charged or released. */
export interface Hold {
  readonly entry_id: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly amount_micros: number;
  /** The UTC month (`YYYY-MM`) that the hold, and its charge, count in. */
  readonly month: string;
}

export type HoldRefusal = 'insufficient_credit' | 'project_spend_limit';
export type HoldResult =
  | { readonly held: true; readonly hold: Hold }
  | { readonly held: false; readonly refusal: HoldRefusal };
