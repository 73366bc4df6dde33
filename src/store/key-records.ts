import type { DedicatedLimits, TierStanding } from '../contract/tiers.ts';

/** A new key, whose secret is stored only as a hash. */
export interface NewKey {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  /** 64 hexadecimal characters. */
  readonly secret_sha256: string;
  readonly display_prefix: string;
  readonly created_by_user_id: string | null;
  readonly created_at_ms: number;
  /** The time from which the key is refused; null for a key without an end. */
  readonly expires_at_ms: number | null;
  /** The first of the rotations that made the key; null for one that replaced none. */
  readonly first_key_id: string | null;
  /** The limit of a first key, in micro-dollars a UTC month; null for none, and for a later key. */
  readonly monthly_limit_micros: number | null;
}

/** A listed key. */
export interface ListedKey {
  readonly id: string;
  readonly name: string;
  /** The first 12 characters of the secret. */
  readonly display_prefix: string;
  readonly organization_id: string;
  readonly organization_name: string;
  readonly project_id: string;
  readonly project_name: string;
  /** Both null for a key that the operator made. */
  readonly created_by_user_id: string | null;
  readonly created_by_name: string | null;
  readonly created_at_ms: number;
  readonly last_used_at_ms: number | null;
  readonly revoked_at_ms: number | null;
  /** In the past for a key that has expired, until the hourly run counts it among the revoked ones. */
  readonly expires_at_ms: number | null;
  /** The most that the key may spend in a UTC month, with those of its rotations; null for no limit. */
  readonly monthly_limit_micros: number | null;
  /** The spend that counts against the limit, of the UTC month that was asked for. */
  readonly spent_this_month_micros: number;
}

/** A filter for keys. */
export interface KeyFilter {
  /** Lists only those of organizations with this user as a member. */
  readonly member_user_id?: string | undefined;
  readonly organization_id?: string | undefined;
  readonly project_id?: string | undefined;
  readonly revoked: boolean;
  /** The UTC month whose spend is listed. */
  readonly month: string;
}

/** The facts that decide who may change a key. */
export interface KeyOwner
  extends Pick<
    ListedKey,
    | 'organization_id'
    | 'project_id'
    | 'name'
    | 'created_by_user_id'
    | 'revoked_at_ms'
    | 'expires_at_ms'
    | 'monthly_limit_micros'
  > {
  /** The first of its rotations, whose limit applies; itself for a key that replaced none. */
  readonly first_key_id: string;
}

/** An active key of an active project, with its organization's tier and dedicated limits. */
export interface ActiveKey extends TierStanding, DedicatedLimits {
  readonly key_id: string;
  /** Null for a key that replaced none. */
  readonly first_key_id: string | null;
  readonly secret_sha256: string;
  readonly project_id: string;
  readonly organization_id: string;
  /** The time since which the organization is suspended; null where it is not. */
  readonly suspended_at_ms: number | null;
  /** The time from which the key is refused, which may be past; null where it has no end. */
  readonly expires_at_ms: number | null;
}

/** The start of a key's hash, with the number of the key's row. */
export interface KeyHashStart {
  readonly row: number;
  readonly hash_start: string;
}

/** A use of a key. */
export interface KeyUse {
  readonly key_id: string;
  readonly at_ms: number;
}

/** The stored API keys. */
export interface KeyRecords {
  insertKey(key: NewKey): Promise<void>;
  /** Returns keys, oldest first. */
  listKeys(filter: KeyFilter): Promise<ListedKey[]>;
  /**
   * Returns at most `limit` revoked keys of an organization, last revoked first; with an id, those after that
   * key.
   */
  revokedKeysOf(
    organization_id: string,
    after_key_id: string | null,
    limit: number,
    month: string,
  ): Promise<ListedKey[]>;
  /** Returns the number of an organization's active keys, over all its projects. */
  countActive(organization_id: string): Promise<number>;
  /**
   * Returns the ids of at most `limit` active keys of that name, of one organization or of any, in any order.
   */
  activeKeysNamed(
    name: string,
    organization_id: string | undefined,
    limit: number,
  ): Promise<{ readonly id: string }[]>;
  /**
   * Returns the time at which an organization's first key was made, revoked or not; undefined when there was
   * none.
   */
  firstCreated_ms(organization_id: string): Promise<number | undefined>;
  findOwner(key_id: string): Promise<KeyOwner | undefined>;
  revokeKey(key_id: string, revoked_at_ms: number): Promise<void>;
  setExpiry(key_id: string, expires_at_ms: number | null): Promise<void>;
  /** Writes the limit of a first key, which applies from the next hold on. */
  setMonthlyLimit(first_key_id: string, monthly_limit_micros: number | null): Promise<void>;
  /** Revokes every active key that has expired by that time, as of its expiry. Resolves with their number. */
  revokeExpired(now_ms: number): Promise<number>;
  /** Revokes every active key of a project. */
  revokeKeysOf(project_id: string, revoked_at_ms: number): Promise<void>;

  /** Returns the SHA-256 of a key's secret; undefined when there is no such key. */
  findHash(key_id: string): Promise<string | undefined>;
  findActive(secret_sha256: string): Promise<ActiveKey | undefined>;
  /**
   * Returns the first characters of the hashes of keys made after a row, revoked ones too. There are at most `limit`, in
   * the order of their rows; those of the first keys for row 0.
   */
  hashesSince(row: number, length: number, limit: number): Promise<KeyHashStart[]>;
  /**
   * Writes when keys were used; a stored time never moves back. Calls `noted` when the commit begins, so that
   * later uses are included. Resolves with the written uses, once they are on disk.
   */
  writeLastUsed(noted: () => readonly KeyUse[]): Promise<readonly KeyUse[]>;
}
