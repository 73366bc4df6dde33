/** Names, roles, amounts and limits as they were: metadata only (contract: records are never kept). */
export type TrailDetail = Readonly<Record<string, string | number | boolean | null>>;

/** One act of a person, as it is stored. */
export interface NewTrailEntry {
  /** Null for what was done to the service, or to an account. */
  readonly organization_id: string | null;
  /** Null for the operator at the command line. */
  readonly user_id: string | null;
  readonly action: string;
  readonly object_kind: string;
  readonly object_id: string | null;
  readonly detail: TrailDetail;
  readonly created_at_ms: number;
}

/** A stored act, with what its user and its object are named today. */
export interface StoredTrailEntry extends NewTrailEntry {
  readonly id: number;
  readonly user_name: string | null;
  readonly user_email: string | null;
  /** What the object is named today: the address of an invitation; null where it has no name, or is gone. */
  readonly object_name: string | null;
}

/** What a roll-up makes of entries: some stand for others, which go. */
export interface RolledUpEntries {
  readonly kept: readonly (Pick<NewTrailEntry, 'object_id' | 'detail'> & { readonly id: number })[];
  readonly removed: readonly number[];
}

/** What is kept of the audit trail: entries are added, and changed by the roll-up of old ones only. */
export interface TrailRecords {
  insertEntry(entry: NewTrailEntry): Promise<void>;
  /** Entries of an organization (null: of the service), newest first, older than the entry `before_id`. */
  listEntries(filter: {
    readonly organization_id: string | null;
    readonly before_id: number | null;
    /** Null for every action. */
    readonly action: string | null;
    readonly limit: number;
  }): Promise<StoredTrailEntry[]>;
  /** When the entry of an organization was made before which there are `newer` newer ones; undefined without it. */
  timeOfEntry_ms(organization_id: string, newer: number): Promise<number | undefined>;
  /** The first entries of everything after the entry `after_id`, in the order of their ids. */
  entriesAfter(after_id: number, limit: number): Promise<(NewTrailEntry & { readonly id: number })[]>;
  rollUpEntries(entries: RolledUpEntries): Promise<void>;
}
