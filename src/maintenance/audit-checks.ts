/** The guarantees of a sound database, by the name of the check that finds violations. */
export const GUARANTEES = {
  file_is_sound: 'the database finds the structure of its files sound',
  balance_equals_ledger:
    'an organization has the credit, the held credit and the lifetime payments that its ledger adds up to',
  held_equals_open_holds:
    'an organization has as many open holds as it counts, and exactly what they reserve is held',
  project_months_equal_ledger: 'what a project spent and holds in a month is what the ledger adds up to',
  api_key_months_equal_ledger: 'what an API key spent and holds in a month is what the ledger adds up to',
  entries_are_whole:
    'a hold and its end name a project of the organization and a month; payments move credit only',
  hold_has_one_end:
    'a hold has at most one end, which frees exactly what was held and charges no more than that',
  success_has_one_charge:
    'a request that was answered with 200 has one charge of its cost; any other request has none',
  hold_was_covered: 'no hold was placed that the balance less the open holds could not cover at that time',
  hold_ended_with_its_request: 'no hold is open after its request ended',
  payment_has_one_entry:
    'a completed payment or refund has one ledger entry of its amount; any other payment has none',
  paid_since_first_payment: 'an organization has a time of its first payment exactly while something is paid',
  days_equal_usage: 'what an old day was charged is what the usage of that day cost',
  references_exist: 'every reference names a row that exists',
  checkpoint_equals_ledger:
    'what earlier audits noted of the entries that they checked is what these add up to',
  organization_has_owner: 'an organization has an owner ("tds member add" gives it one)',
  indexes_are_valid:
    'every index is valid; one that is not is being made, or is what is left of that: drop it or reindex it',
} as const;

/** The name of a check. */
export type CheckName = keyof typeof GUARANTEES;

/** The most violations that a check lists. */
export const VIOLATIONS_MAX = 100;

/** The start of an audit, after the part that an earlier one has checked. */
export interface AuditStart {
  readonly last_entry_id: number;
  readonly last_usage_row_id: number;
}

/** The start of an audit of everything. */
export const BEGINNING: AuditStart = { last_entry_id: 0, last_usage_row_id: 0 };

/** The options of an audit of everything. */
export interface AuditOptions {
  /**
   * Holds placed before this time must have ended; without it a hold may be open as long as its request is.
   */
  readonly ended_before_ms?: number;
}
