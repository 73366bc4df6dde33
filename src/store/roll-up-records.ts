import type { UsageRow } from './usage-row.ts';

/** A request's ledger entry, as the roll-up reads it. */
export interface RequestEntry {
  readonly entry_id: number;
  readonly at_ms: number;
  readonly organization_id: string;
  readonly project_id: string | null;
  /** The UTC month (`YYYY-MM`) in which it counts. */
  readonly month: string | null;
  readonly credit_delta_micros: number;
  readonly held_delta_micros: number;
}

/** A request with a hold in the ledger, with its end and its usage row as far as they exist. */
export interface RequestInLedger {
  readonly request_id: string;
  readonly hold: RequestEntry;
  readonly end: (RequestEntry & { readonly kind: 'charge' | 'release' }) | undefined;
  readonly usage:
    | Pick<UsageRow, 'time_ms' | 'organization_id' | 'project_id' | 'status' | 'cost_micros'>
    | undefined;
}

/** A deleted ledger entry. */
export interface DeletedEntry {
  readonly entry_id: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly kind: string;
  readonly credit_delta_micros: number;
  readonly held_delta_micros: number;
}

/** The charges of a project on one UTC day, to be added to the stored total. */
export interface LedgerDay {
  readonly organization_id: string;
  readonly project_id: string;
  readonly day: string;
  /** The last of the entries that it replaces. */
  readonly last_entry_id: number;
  readonly charges: number;
  readonly charged_micros: number;
}

/** The columns by which usage is grouped within a UTC day. */
export type UsageGroup = Pick<
  UsageRow,
  'organization_id' | 'project_id' | 'api_key_id' | 'model' | 'mode' | 'endpoint' | 'status'
>;

type SummedUsage = UsageGroup & Pick<UsageRow, 'questions' | 'input_tokens' | 'cost_micros'>;

/** A deleted usage row. */
export type DeletedUsage = SummedUsage & Pick<UsageRow, 'request_id'>;

/** The usage of one group on one UTC day, to be added to the stored total. */
export interface UsageDay extends SummedUsage {
  readonly day: string;
  readonly requests: number;
}

/** A project on a UTC day. */
export type ProjectDay = Pick<LedgerDay, 'organization_id' | 'project_id' | 'day'>;

/** A hold and its end. */
export interface EntryPair {
  readonly hold_entry_id: number;
  readonly end_entry_id: number;
}

/** The roll-up's access to usage and ledger, inside a transaction. */
export interface RollUpRecords {
  /**
   * Returns the oldest requests with a hold after a ledger entry, at most `limit`. Leaves out ends that the
   * audit has not checked.
   */
  requestsInLedger(after_entry_id: number, limit: number): Promise<readonly RequestInLedger[]>;
  /**
   * Returns the oldest requests without ledger entries that were admitted from one time on and before
   * another.
   */
  requestsOutsideLedger(
    from_ms: number,
    before_ms: number,
    limit: number,
  ): Promise<readonly Pick<UsageRow, 'request_id' | 'time_ms' | 'cost_micros'>[]>;
  /** Deletes holds and their ends; resolves with the deleted entries, in any order. */
  deleteEntries(pairs: readonly EntryPair[]): Promise<readonly DeletedEntry[]>;
  /** Deletes the usage rows of requests; resolves with the deleted rows, in any order. */
  deleteUsage(request_ids: readonly string[]): Promise<readonly DeletedUsage[]>;
  /** Adds totals, each of another project or day. */
  addLedgerDays(days: readonly LedgerDay[]): Promise<void>;
  /** Adds totals, each of another group or day. */
  addUsageDays(days: readonly UsageDay[]): Promise<void>;
  /** Returns the rolled-up charges of projects on UTC days, in the given order. */
  chargedOnDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]>;
  /** Returns the rolled-up cost of projects' answered requests on UTC days, in the given order. */
  costOfDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]>;
}
