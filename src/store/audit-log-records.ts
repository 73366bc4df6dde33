/** Names, roles, amounts and limits as they were: metadata only (contract: records are never kept). */
export type AuditLogDetail = Readonly<Record<string, string | number | boolean | null>>;

/** One act of a person, as stored. */
export interface NewAuditLogEntry {
  /** Null for acts on the service, or on an account. */
  readonly organization_id: string | null;
  /** Null for the operator at the command line. */
  readonly user_id: string | null;
  readonly action: string;
  readonly object_kind: string;
  readonly object_id: string | null;
  readonly detail: AuditLogDetail;
  readonly created_at_ms: number;
}

/** A stored act, with the present names of its user and its object. */
export interface StoredAuditLogEntry extends NewAuditLogEntry {
  readonly id: number;
  readonly user_name: string | null;
  readonly user_email: string | null;
  /**
   * The present name of the object, or the address of an invitation; null where it has no name, or is gone.
   */
  readonly object_name: string | null;
}

/** The changes of a roll-up: the kept entries stand for the removed ones. */
export interface RolledUpEntries {
  readonly kept: readonly (Pick<NewAuditLogEntry, 'object_id' | 'detail'> & { readonly id: number })[];
  readonly removed: readonly number[];
}

/** The stored audit log. Entries are only added, except that the roll-up merges old ones. */
export interface AuditLogRecords {
  insertEntry(entry: NewAuditLogEntry): Promise<void>;
  /**
   * Returns entries of an organization (null: of the service), newest first, older than the entry
   * `before_id`.
   */
  listEntries(filter: {
    readonly organization_id: string | null;
    readonly before_id: number | null;
    /** Null for every action. */
    readonly action: string | null;
    readonly limit: number;
  }): Promise<StoredAuditLogEntry[]>;
  /**
   * Returns the time of the entry that has `newer` newer ones in the organization; undefined where there is
   * none.
   */
  timeOfEntry_ms(organization_id: string, newer: number): Promise<number | undefined>;
  /** Returns the first entries after the entry `after_id`, of everything, in the order of their ids. */
  entriesAfter(after_id: number, limit: number): Promise<(NewAuditLogEntry & { readonly id: number })[]>;
  rollUpEntries(entries: RolledUpEntries): Promise<void>;
}
