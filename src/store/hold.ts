import type { IdempotencyClaim } from './idempotency-records.ts';

/**
 * A request's reservation of its worst-case cost, against the organization's credit and the limits of project and key.
 */
export interface HoldRequest {
  readonly organization_id: string;
  readonly project_id: string;
  readonly request_id: string;
  readonly amount_micros: number;
  readonly at_ms: number;
  /** The key whose limit applies and whose spend counts: the first of its rotations. Without it, none does. */
  readonly api_key_id?: string;
  /** The claim of an idempotency key, stored with the hold for as long as it is open. */
  readonly claim?: IdempotencyClaim;
}

/** Credit that is reserved until it is charged or released. */
export interface Hold {
  readonly entry_id: number;
  /**
   * The request that it was placed for. The number alone does not name a hold: a database that was restored, or a
   * standby without the last commits, gives it to another request.
   */
  readonly request_id: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly amount_micros: number;
  /** The UTC month (`YYYY-MM`) in which the hold and its charge count. */
  readonly month: string;
  /** The key that the hold counts for, as in `HoldRequest`; null for none, as for holds of earlier versions. */
  readonly api_key_id: string | null;
}

/** The reason for a refused hold, with the values for its message. */
export type HoldRefusal =
  | {
      readonly refusal: 'insufficient_credit';
      /** The credit less all holds; below zero after a refund of spent credit. */
      readonly available_micros: number;
    }
  | {
      readonly refusal: 'project_spend_limit';
      /** The name of the project. */
      readonly project: string;
      readonly spend_limit_micros: number;
    }
  | {
      readonly refusal: 'api_key_spend_limit';
      /** The name of the key. */
      readonly api_key: string;
      readonly monthly_limit_micros: number;
    };

/** The refusal where another request has the claim, or its answer is kept. */
export interface ClaimTaken {
  readonly refusal: 'idempotency_key_in_use';
}

export type HoldResult =
  | { readonly held: true; readonly hold: Hold }
  | ({ readonly held: false } & (HoldRefusal | ClaimTaken));
