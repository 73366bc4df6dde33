import type { Clock } from '../clock.ts';
import type { KeyRecords } from './key-records.ts';
import { sameHash, secretHash } from './secret-hash.ts';
import { limitsFor, type TierLimits, tierInForce } from './tiers.ts';

/** Who calls: an active key with its project, its organization and what that may use. */
export interface Caller {
  readonly key_id: string;
  readonly project_id: string;
  readonly organization_id: string;
  readonly tier: number;
  /** The limits in force; null without API access (Tier 0). */
  readonly limits: TierLimits | null;
  /** Only where the operator has suspended the organization: its keys answer nothing. */
  readonly is_suspended?: true;
}

/** What a client reads beside `invalid_api_key`, whose own sentence would be untrue. */
export const SUSPENDED_MESSAGE =
  'The organization of this API key is suspended: ask the operator of the service about it.';

/** How long a lookup is believed (contract: key lookups are cached for 60 seconds). */
const KEY_CACHE_MS = 60_000;
const CACHE_SIZE_MAX = 10_000;
/**
 * While somebody tries keys that do not exist, the store is asked at this interval for keys that were made meanwhile.
 */
const NEW_KEYS_READ_MS = 1_000;
/** Hexadecimal characters of a hash that fit in a number; two keys that share them are only looked up for nothing. */
const SHORT_HASH_LENGTH = 12;

/** A key that is chosen by its id, by somebody who may use it: the secret itself is not known any more. */
export interface KeyReference {
  readonly key_id: string;
}

interface CacheEntry {
  readonly caller: Caller;
  readonly read_at_ms: number;
}

/** What the directory reads and writes of the stored keys. */
type LookedUpKeys = Pick<KeyRecords, 'findHash' | 'findActive' | 'hashesSince' | 'writeLastUsed'>;

function shortHash(hash: string): number {
  return Number.parseInt(hash.slice(0, SHORT_HASH_LENGTH), 16);
}

/**
 * Finds the caller of an API key. A lookup is kept for 60 seconds, under the key's SHA-256. Unknown keys and keys of
 * organizations that are on Tier 0 or suspended are looked up each time. So a new key, a first payment and the end of a
 * suspension work at once.
 */
export class KeyDirectory {
  readonly #records: LookedUpKeys;
  readonly #clock: Clock;
  readonly #cacheSizeMax: number;
  /** Oldest read first: a `Map` keeps the order of insertion. */
  readonly #cache = new Map<string, CacheEntry>();
  /** Counts the calls of `invalidate`: the result of a lookup that began before one is not cached. */
  #invalidations = 0;
  /**
   * The hash prefixes of all keys that were read so far, revoked ones too. Numbers, so that many keys take little
   * memory.
   */
  readonly #shortHashes = new Set<number>();
  #last_row = 0;
  #new_keys_read_at_ms = Number.NEGATIVE_INFINITY;
  /** The read of new keys that is still running; all who ask meanwhile wait for it. */
  #readingNewKeys: Promise<void> | undefined;
  readonly #lastUsed = new Map<string, number>();
  /** The flush that has not committed yet. It takes along whatever is noted before its commit. */
  #flushing: Promise<void> | undefined;

  constructor(records: LookedUpKeys, clock: Clock, cacheSizeMax: number = CACHE_SIZE_MAX) {
    this.#records = records;
    this.#clock = clock;
    this.#cacheSizeMax = cacheSizeMax;
  }

  /**
   * The caller of an active key, by its secret or by reference; null when no active key matches (unknown, revoked, or
   * its project archived). Rejects with what the store rejects with.
   */
  async authenticate(key: string | KeyReference): Promise<Caller | null> {
    const secret_sha256 =
      typeof key === 'string' ? secretHash(key) : await this.#records.findHash(key.key_id);
    if (secret_sha256 === undefined) return null;
    const now_ms = this.#clock.monotonic_ms();
    const cached = this.#cache.get(secret_sha256);
    if (cached !== undefined) {
      if (now_ms - cached.read_at_ms < KEY_CACHE_MS) return cached.caller;
      this.#cache.delete(secret_sha256);
    }
    const invalidations = this.#invalidations;
    const row = await this.#records.findActive(secret_sha256);
    if (row === undefined || !sameHash(row.secret_sha256, secret_sha256)) return null;
    const { key_id, project_id, organization_id } = row;
    // The stored tier is not enough: the job that raises tiers with time runs once an hour.
    const tier = tierInForce(row, this.#clock.now_ms());
    const caller = { key_id, project_id, organization_id, tier, limits: limitsFor(tier, row) };
    if (row.suspended_at_ms !== null) return { ...caller, is_suspended: true };
    if (caller.limits !== null && invalidations === this.#invalidations) {
      this.#remember(secret_sha256, { caller, read_at_ms: now_ms });
    }
    return caller;
  }

  /**
   * Whether the key may exist, judged from memory. False is certain, except for keys made in the last second. True also
   * when the store cannot be read; `onFailure` gets that error.
   */
  async mayExist(secret: string, onFailure: (error: unknown) => void): Promise<boolean> {
    const short_hash = shortHash(secretHash(secret));
    if (this.#shortHashes.has(short_hash)) return true;
    const now_ms = this.#clock.monotonic_ms();
    if (now_ms - this.#new_keys_read_at_ms < NEW_KEYS_READ_MS) return false;
    this.#readingNewKeys ??= this.#readNewKeys(now_ms).finally(() => {
      this.#readingNewKeys = undefined;
    });
    try {
      await this.#readingNewKeys;
    } catch (error) {
      onFailure(error);
      return true;
    }
    return this.#shortHashes.has(short_hash);
  }

  /** Notes in memory that a key was used; `flushLastUsed` writes it. */
  touch(key_id: string, at_ms: number): void {
    const known = this.#lastUsed.get(key_id);
    if (known === undefined || known < at_ms) this.#lastUsed.set(key_id, at_ms);
  }

  /**
   * Writes the noted times in the next commit; a stored time never moves back. Rejects with what the store rejects
   * with, and what could not be written is written with the next flush.
   */
  flushLastUsed(): Promise<void> {
    this.#flushing ??= this.#flushLastUsed().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Forgets all lookups, so that what this process just changed applies to the next request. */
  invalidate(): void {
    this.#invalidations += 1;
    this.#cache.clear();
  }

  async #readNewKeys(now_ms: number): Promise<void> {
    for (const { row, hash_start } of await this.#records.hashesSince(this.#last_row, SHORT_HASH_LENGTH)) {
      this.#shortHashes.add(shortHash(hash_start));
      this.#last_row = Math.max(this.#last_row, row);
    }
    this.#new_keys_read_at_ms = now_ms;
  }

  async #flushLastUsed(): Promise<void> {
    const written = await this.#records.writeLastUsed(() =>
      [...this.#lastUsed].map(([key_id, at_ms]) => ({ key_id, at_ms })),
    );
    for (const { key_id, at_ms } of written) {
      if (this.#lastUsed.get(key_id) === at_ms) this.#lastUsed.delete(key_id);
    }
  }

  #remember(secret_sha256: string, entry: CacheEntry): void {
    if (this.#cache.size >= this.#cacheSizeMax) {
      const [oldest] = this.#cache.keys();
      if (oldest !== undefined) this.#cache.delete(oldest);
    }
    this.#cache.set(secret_sha256, entry);
  }
}
