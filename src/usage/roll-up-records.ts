import type { UsageRow } from './usage-row.ts';

/** What the roll-up reads of a ledger entry that a request made. */
export interface RequestEntry {
  readonly entry_id: number;
  readonly at_ms: number;
  readonly organization_id: string;
  readonly project_id: string | null;
  /** The UTC month (`YYYY-MM`) that it counts in. */
  readonly month: string | null;
  readonly credit_delta_micros: number;
  readonly held_delta_micros: number;
}

/** A request that the ledger knows: its hold, with its end and its usage row as far as they are there. */
export interface RequestInLedger {
  readonly request_id: string;
  readonly hold: RequestEntry;
  readonly end: (RequestEntry & { readonly kind: 'charge' | 'release' }) | undefined;
  readonly usage:
    | Pick<UsageRow, 'time_ms' | 'organization_id' | 'project_id' | 'status' | 'cost_micros'>
    | undefined;
}

/** What was deleted of the ledger. */
export interface DeletedEntry {
  readonly entry_id: number;
  readonly organization_id: string;
  readonly project_id: string;
  readonly kind: string;
  readonly credit_delta_micros: number;
  readonly held_delta_micros: number;
}

/** The charges of a project on one UTC day, to be added to what is there. */
export interface LedgerDay {
  readonly organization_id: string;
  readonly project_id: string;
  readonly day: string;
  /** The last of the entries that it replaces. */
  readonly last_entry_id: number;
  readonly charges: number;
  readonly charged_micros: number;
}

/** What usage is grouped by within a UTC day. */
export type UsageGroup = Pick<
  UsageRow,
  'organization_id' | 'project_id' | 'api_key_id' | 'model' | 'mode' | 'endpoint' | 'status'
>;

type SummedUsage = UsageGroup & Pick<UsageRow, 'questions' | 'input_tokens' | 'cost_micros'>;

/** What a deleted usage row said. */
export type DeletedUsage = SummedUsage & Pick<UsageRow, 'request_id'>;

/** The usage of one group on one UTC day, to be added to what is there. */
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

/** What rolling up reads and writes of usage and ledger, inside a transaction. */
export interface RollUpRecords {
  /**
   * The oldest requests with a hold after a ledger entry, at most `limit` of them. An end that the audit has not
   * checked is left out.
   */
  requestsInLedger(after_entry_id: number, limit: number): Promise<readonly RequestInLedger[]>;
  /** The oldest requests admitted from a time on and before another that the ledger does not know. */
  requestsOutsideLedger(
    from_ms: number,
    before_ms: number,
    limit: number,
  ): Promise<readonly Pick<UsageRow, 'request_id' | 'time_ms' | 'cost_micros'>[]>;
  /** Deletes holds and their ends; resolves with what was there, in any order. */
  deleteEntries(pairs: readonly EntryPair[]): Promise<readonly DeletedEntry[]>;
  /** Deletes the usage rows of requests; resolves with those that were there, in any order. */
  deleteUsage(request_ids: readonly string[]): Promise<readonly DeletedUsage[]>;
  /** Each is of another project or day. */
  addLedgerDays(days: readonly LedgerDay[]): Promise<void>;
  /** Each is of another group or day. */
  addUsageDays(days: readonly UsageDay[]): Promise<void>;
  /** What projects' charges of UTC days add up to that were rolled up, in the order of the days that are given. */
  chargedOnDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]>;
  /** What projects' answered requests of UTC days cost that were rolled up, in the order of the days that are given. */
  costOfDays_micros(days: readonly ProjectDay[]): Promise<readonly number[]>;
}
