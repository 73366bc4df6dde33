import { setImmediate } from 'node:timers/promises';
import { limitsFor, type TierLimits, tierInForce } from '../contract/tiers.ts';
import { sameHash, secretHash } from '../hashing/secret-hash.ts';
import type { ActiveKey, KeyRecords } from '../store/key-records.ts';
import type { Clock } from '../time/clock.ts';

/** The caller of a request: an active key with its project, its organization and the limits. */
export interface Caller {
  readonly key_id: string;
  /** The first of the key's rotations, for which its spend counts; itself for a key that replaced none. */
  readonly first_key_id: string;
  readonly project_id: string;
  readonly organization_id: string;
  readonly tier: number;
  /** The limits in force; null without API access (Tier 0). */
  readonly limits: TierLimits | null;
  /** True where the operator has suspended the organization; its keys are refused. */
  readonly is_suspended?: true;
}

/** The message for a suspended organization, because the usual one of `invalid_api_key` would be untrue. */
export const SUSPENDED_MESSAGE =
  'The organization of this API key is suspended: ask the operator of the service about it.';

/** The time for which a lookup is cached (contract: key lookups are cached for 60 seconds). */
const KEY_CACHE_MS = 60_000;
const CACHE_SIZE_MAX = 10_000;
/** The interval between reads of new keys, while a client tries keys that do not exist. */
const NEW_KEYS_READ_MS = 1_000;
/** The keys of one read, after which other work runs: the first read of a process finds all keys of all years. */
const KEYS_OF_A_READ = 5_000;
/** The hexadecimal characters of a hash that fit in a number. A collision only costs a needless lookup. */
const SHORT_HASH_LENGTH = 12;

/** A key chosen by its id, by a member who may use it; the secret itself is not known. */
export interface KeyReference {
  readonly key_id: string;
  /**
   * A random text that only the member's client has. Hashes are keyed with it where they need the secret. So a call by
   * reference can have an idempotency key; without it, none is used.
   */
  readonly client_secret?: string;
  /** Returns false once the member may not use the key any more; for calls that go on after they were let in. */
  readonly mayStillUse?: () => Promise<boolean>;
}

interface CacheEntry {
  readonly caller: Caller;
  readonly expires_at_ms: number | null;
  readonly read_at_ms: number;
}

/** The directory's access to the stored keys. */
type LookedUpKeys = Pick<KeyRecords, 'findHash' | 'findActive' | 'hashesSince' | 'writeLastUsed'>;

function shortHash(hash: string): number {
  return Number.parseInt(hash.slice(0, SHORT_HASH_LENGTH), 16);
}

/**
 * Finds the caller of an API key. A lookup is kept for 60 seconds, under the key's SHA-256. Unknown keys and
 * keys of organizations that are on Tier 0 or suspended are looked up each time. Therefore a new key, a first
 * payment and the end of a suspension work at once.
 */
export class KeyDirectory {
  /** The entry that was read longest ago is first: a `Map` keeps the order of insertion. */
  readonly #cache = new Map<string, CacheEntry>();
  /** The number of calls of `invalidate`. A lookup that began before the latest call is not cached. */
  #invalidations = 0;
  /** The hash prefixes of all keys read so far, including revoked ones. Numbers take little memory. */
  readonly #short_hashes = new Set<number>();
  #last_row = 0;
  #new_keys_read_at_ms = Number.NEGATIVE_INFINITY;
  /** The read of new keys that is running; all concurrent callers wait for it. */
  #reading_new_keys: Promise<void> | undefined;
  readonly #last_used = new Map<string, number>();
  /** The flush that has not committed yet. It includes the uses noted before its commit. */
  #flushing: Promise<void> | undefined;

  constructor(
    private readonly records: LookedUpKeys,
    private readonly clock: Clock,
    private readonly cache_size_max: number = CACHE_SIZE_MAX,
    private readonly keys_of_a_read: number = KEYS_OF_A_READ,
  ) {}

  /**
   * Returns the caller of an active key, by its secret or by reference. Null when the key is unknown, expired or
   * revoked, its project archived, or the member who named it may not use it any more. Rejects as the store does.
   */
  async authenticate(key: string | KeyReference): Promise<Caller | null> {
    if (typeof key !== 'string' && (await key.mayStillUse?.()) === false) return null;
    const secret_sha256 = typeof key === 'string' ? secretHash(key) : await this.records.findHash(key.key_id);
    if (secret_sha256 === undefined) return null;
    const now_ms = this.clock.monotonic_ms();
    const cached = this.#cache.get(secret_sha256);
    if (cached !== undefined) {
      if (now_ms - cached.read_at_ms < KEY_CACHE_MS) return this.#isOver(cached) ? null : cached.caller;
      this.#cache.delete(secret_sha256);
    }
    const invalidations = this.#invalidations;
    const row = await this.records.findActive(secret_sha256);
    if (row === undefined || !sameHash(row.secret_sha256, secret_sha256) || this.#isOver(row)) return null;
    const { key_id, project_id, organization_id } = row;
    const first_key_id = row.first_key_id ?? key_id;
    // The stored tier may be old: the job that raises tiers with time runs once an hour.
    const tier = tierInForce(row, this.clock.now_ms());
    const limits = limitsFor(tier, row);
    const caller = { key_id, first_key_id, project_id, organization_id, tier, limits };
    if (row.suspended_at_ms !== null) return { ...caller, is_suspended: true };
    if (caller.limits !== null && invalidations === this.#invalidations) {
      const { expires_at_ms } = row;
      this.#remember(secret_sha256, { caller, expires_at_ms, read_at_ms: now_ms });
    }
    return caller;
  }

  /**
   * Returns false if the key certainly does not exist, by what is in memory; only keys of the last second are
   * missed. Returns true when the store cannot be read, and passes that error to `onFailure`.
   */
  async mayExist(secret: string, onFailure: (error: unknown) => void): Promise<boolean> {
    const short_hash = shortHash(secretHash(secret));
    if (this.#short_hashes.has(short_hash)) return true;
    const now_ms = this.clock.monotonic_ms();
    if (now_ms - this.#new_keys_read_at_ms < NEW_KEYS_READ_MS) return false;
    this.#reading_new_keys ??= this.#readNewKeys(now_ms).finally(() => {
      this.#reading_new_keys = undefined;
    });
    try {
      await this.#reading_new_keys;
    } catch (error) {
      onFailure(error);
      return true;
    }
    return this.#short_hashes.has(short_hash);
  }

  /** Notes in memory that a key was used; `flushLastUsed` writes it. */
  touch(key_id: string, at_ms: number): void {
    const known = this.#last_used.get(key_id);
    if (known === undefined || known < at_ms) this.#last_used.set(key_id, at_ms);
  }

  /**
   * Writes the noted times in the next commit; a stored time never moves back. Rejects as the store does; the
   * next flush writes the times then.
   */
  flushLastUsed(): Promise<void> {
    this.#flushing ??= this.#flushLastUsed().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Forgets all lookups, so that a change of this process applies to the next request. */
  invalidate(): void {
    this.#invalidations += 1;
    this.#cache.clear();
  }

  #isOver({ expires_at_ms }: Pick<ActiveKey, 'expires_at_ms'>): boolean {
    return expires_at_ms !== null && expires_at_ms <= this.clock.now_ms();
  }

  async #readNewKeys(now_ms: number): Promise<void> {
    for (;;) {
      const found = await this.records.hashesSince(this.#last_row, SHORT_HASH_LENGTH, this.keys_of_a_read);
      for (const { row, hash_start } of found) {
        this.#short_hashes.add(shortHash(hash_start));
        this.#last_row = row;
      }
      if (found.length < this.keys_of_a_read) break;
      await setImmediate();
    }
    this.#new_keys_read_at_ms = now_ms;
  }

  async #flushLastUsed(): Promise<void> {
    const written = await this.records.writeLastUsed(() =>
      [...this.#last_used].map(([key_id, at_ms]) => ({ key_id, at_ms })),
    );
    for (const { key_id, at_ms } of written) {
      if (this.#last_used.get(key_id) === at_ms) this.#last_used.delete(key_id);
    }
  }

  #remember(secret_sha256: string, entry: CacheEntry): void {
    if (this.#cache.size >= this.cache_size_max) {
      const [oldest] = this.#cache.keys();
      if (oldest !== undefined) this.#cache.delete(oldest);
    }
    this.#cache.set(secret_sha256, entry);
  }
}
