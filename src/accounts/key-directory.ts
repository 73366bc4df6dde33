import { timingSafeEqual } from 'node:crypto';
import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import type { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { apiKeys, organizations, projects } from '../../db/sqlite/schema.ts';
import type { Clock } from '../clock.ts';
import { keyHash } from './key-format.ts';
import { limitsFor, type TierLimits, tierInForce } from './tiers.ts';

/** Who calls: an active key with its project, its organization and what that may use. */
export interface Caller {
  readonly key_id: string;
  readonly project_id: string;
  readonly organization_id: string;
  readonly tier: number;
  /** The limits in force; null without API access (Tier 0). */
  readonly limits: TierLimits | null;
}

/** How long a lookup is believed (spec, "Lookup cache"). */
export const KEY_CACHE_MS = 60_000;
const CACHE_SIZE_MAX = 10_000;
/** How often keys that were made meanwhile are looked for, while somebody tries keys that do not exist. */
const NEW_KEYS_READ_MS = 1_000;
/** Hexadecimal characters of a hash that fit in a number; two keys that share them are only looked up for nothing. */
const SHORT_HASH_LENGTH = 12;

interface CacheEntry {
  readonly caller: Caller;
  readonly read_at_ms: number;
}

function prepareLookup(db: Db) {
  return db
    .select({
      key_id: apiKeys.id,
      secret_sha256: apiKeys.secret_sha256,
      project_id: projects.id,
      organization_id: organizations.id,
      tier: organizations.tier,
      minimum_tier: organizations.minimum_tier,
      paid_micros: organizations.paid_micros,
      first_paid_at_ms: organizations.first_paid_at_ms,
      requests_per_minute: organizations.requests_per_minute,
      tokens_per_minute: organizations.tokens_per_minute,
      questions_per_request: organizations.questions_per_request,
    })
    .from(apiKeys)
    .innerJoin(projects, eq(projects.id, apiKeys.project_id))
    .innerJoin(organizations, eq(organizations.id, projects.organization_id))
    .where(
      and(
        eq(apiKeys.secret_sha256, sql.placeholder('secret_sha256')),
        isNull(apiKeys.revoked_at_ms),
        isNull(projects.archived_at_ms),
      ),
    )
    .prepare();
}

/** The short hashes of the keys that were made after a row, of all keys for row 0. */
function prepareNewKeys(db: Db) {
  return db
    .select({
      row: sql<number>`rowid`,
      short_hash: sql<string>`substr(${apiKeys.secret_sha256}, 1, ${sql.raw(String(SHORT_HASH_LENGTH))})`,
    })
    .from(apiKeys)
    .where(sql`rowid > ${sql.placeholder('row')}`)
    .prepare();
}

function prepareLastUsed(db: Db) {
  return db
    .update(apiKeys)
    .set({ last_used_at_ms: sql`max(coalesce(${apiKeys.last_used_at_ms}, 0), ${sql.placeholder('at_ms')})` })
    .where(eq(apiKeys.id, sql.placeholder('key_id')))
    .prepare();
}

function shortHash(hash: string): number {
  return Number.parseInt(hash.slice(0, SHORT_HASH_LENGTH), 16);
}

/** Equal or not, in a time that does not tell where two hashes differ. */
function sameHash(left: string, right: string): boolean {
  const leftBytes = Buffer.from(left);
  const rightBytes = Buffer.from(right);
  return leftBytes.length === rightBytes.length && timingSafeEqual(leftBytes, rightBytes);
}

/**
 * Finds the caller of an API key. A lookup is kept for 60 seconds, under the key's SHA-256. Unknown keys and keys of
 * organizations on Tier 0 are looked up each time, so that a new key and a first payment work at once.
 */
export class KeyDirectory {
  readonly #clock: Clock;
  readonly #commits: Pick<GroupCommit, 'run'>;
  readonly #cacheSizeMax: number;
  readonly #lookup: ReturnType<typeof prepareLookup>;
  readonly #writeLastUsed: ReturnType<typeof prepareLastUsed>;
  /** Oldest read first: a `Map` keeps the order of insertion. */
  readonly #cache = new Map<string, CacheEntry>();
  /** Of every key that was ever made, as far as they were read. Numbers, so that many keys take little memory. */
  readonly #shortHashes = new Set<number>();
  readonly #newKeys: ReturnType<typeof prepareNewKeys>;
  #last_row = 0;
  #new_keys_read_at_ms = Number.NEGATIVE_INFINITY;
  readonly #lastUsed = new Map<string, number>();
  /** The flush that has not committed yet: all that is noted until its commit goes with it. */
  #flushing: Promise<void> | undefined;

  /** Last-used times are written through `commits`, the service's own, so that they share a request's commit. */
  constructor(
    db: Db,
    clock: Clock,
    commits: Pick<GroupCommit, 'run'>,
    cacheSizeMax: number = CACHE_SIZE_MAX,
  ) {
    this.#clock = clock;
    this.#commits = commits;
    this.#cacheSizeMax = cacheSizeMax;
    this.#lookup = prepareLookup(db);
    this.#writeLastUsed = prepareLastUsed(db);
    this.#newKeys = prepareNewKeys(db);
  }

  /**
   * The caller of an active key; null when no active key matches (unknown, revoked, or its project archived). Throws
   * what the database throws.
   */
  authenticate(secret: string): Caller | null {
    const secret_sha256 = keyHash(secret);
    const now_ms = this.#clock.monotonic_ms();
    const cached = this.#cache.get(secret_sha256);
    if (cached !== undefined) {
      if (now_ms - cached.read_at_ms < KEY_CACHE_MS) return cached.caller;
      this.#cache.delete(secret_sha256);
    }
    const row = this.#lookup.get({ secret_sha256 });
    if (row === undefined || !sameHash(row.secret_sha256, secret_sha256)) return null;
    const { key_id, project_id, organization_id } = row;
    // Not the stored tier alone: the job that writes down what time has earned may lag by an hour.
    const tier = tierInForce(row, this.#clock.now_ms());
    const caller = { key_id, project_id, organization_id, tier, limits: limitsFor(tier, row) };
    if (caller.limits !== null) this.#remember(secret_sha256, { caller, read_at_ms: now_ms });
    return caller;
  }

  /**
   * Whether the key can be one that was ever made, told from memory: false is certain but for keys of the last second.
   * True also when the database cannot be read, which `authenticate` then says.
   */
  mayExist(secret: string): boolean {
    const short_hash = shortHash(keyHash(secret));
    if (this.#shortHashes.has(short_hash)) return true;
    const now_ms = this.#clock.monotonic_ms();
    if (now_ms - this.#new_keys_read_at_ms < NEW_KEYS_READ_MS) return false;
    try {
      for (const { row, short_hash: text } of this.#newKeys.all({ row: this.#last_row })) {
        this.#shortHashes.add(shortHash(text));
        this.#last_row = Math.max(this.#last_row, row);
      }
    } catch {
      return true;
    }
    this.#new_keys_read_at_ms = now_ms;
    return this.#shortHashes.has(short_hash);
  }

  /** Notes in memory that a key was used; `flushLastUsed` writes it. */
  touch(key_id: string, at_ms: number): void {
    const known = this.#lastUsed.get(key_id);
    if (known === undefined || known < at_ms) this.#lastUsed.set(key_id, at_ms);
  }

  /**
   * Writes the noted times in the next commit; a stored time never moves back. Rejects with what SQLite throws, and
   * what could not be written is written with the next flush.
   */
  flushLastUsed(): Promise<void> {
    this.#flushing ??= this.#flushLastUsed().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Forgets all lookups, so that what this process just changed applies to the next request. */
  invalidate(): void {
    this.#cache.clear();
  }

  async #flushLastUsed(): Promise<void> {
    const written = await this.#commits.run(() => {
      const noted = [...this.#lastUsed];
      for (const [key_id, at_ms] of noted) this.#writeLastUsed.run({ key_id, at_ms });
      return noted;
    });
    for (const [key_id, at_ms] of written) {
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
