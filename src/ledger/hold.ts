import type { IdempotencyClaim } from '../idempotency/claim.ts';

/** What a request asks to reserve: its worst-case cost, against the organization's credit and the project's limit. */
export interface HoldRequest {
  readonly organization_id: string;
  readonly project_id: string;
  readonly request_id: string;
  readonly amount_micros: number;
  readonly at_ms: number;
  /** Of a request with an idempotency key: stored with the hold, for as long as that is open. */
  readonly claim?: IdempotencyClaim;
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

/** Why there is no hold, with what its client is told of it. */
export type HoldRefusal =
  | {
      readonly refusal: 'insufficient_credit';
      /** The credit less all holds; below zero after a refund of what was spent. */
      readonly available_micros: number;
    }
  | {
      readonly refusal: 'project_spend_limit';
      /** The name of the project. */
      readonly project: string;
      readonly spend_limit_micros: number;
    };

/** Another request has the claim, or its answer is kept. */
export interface ClaimTaken {
  readonly refusal: 'idempotency_key_in_use';
}

export type HoldResult =
  | { readonly held: true; readonly hold: Hold }
  | ({ readonly held: false } & (HoldRefusal | ClaimTaken));
