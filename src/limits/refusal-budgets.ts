import { type HashKey, halfSipHash } from '../hashing/half-siphash.ts';
import { MINUTE_MS } from '../time/clock.ts';

/**
 * The requests without a valid key per minute that are answered with an ordinary refusal, for each address. A
 * client with a wrong key stops after a few (contract: a 401 is not retried with the same key). An address
 * may be that of a whole office.
 */
export const ADDRESS_REFUSALS_PER_MINUTE = 1_200;
/**
 * The refused requests of a key per minute: at least this, and at least twice its organization's request
 * limit.
 */
const KEY_REFUSALS_PER_MINUTE_MIN = 3_000;
const KEY_REFUSALS_PER_REQUEST = 2;
/** The bytes of a needlessly read body that count as one more refusal. */
const BYTES_PER_REFUSAL = 16_384;

/** The slots for addresses: a power of two, in one megabyte. */
const ADDRESS_SLOTS = 65_536;

/** The used part of a key's budget at a time. */
interface KeyDebt {
  owed: number;
  at_ms: number;
  per_minute: number;
}

/** Returns the refusals that a key may have in a minute, given its organization's requests per minute. */
export function keyRefusalsPerMinute(requests_per_minute: number): number {
  return Math.max(KEY_REFUSALS_PER_MINUTE_MIN, KEY_REFUSALS_PER_REQUEST * requests_per_minute);
}

/**
 * Token buckets for refusals, which nobody pays for: one for each client address (no key, or an unknown one)
 * and one for each key. A bucket holds a minute's refusals and fills evenly. Pure: the caller gives the time,
 * from a clock that never goes back, and a random key of the hash.
 *
 * Addresses share a fixed number of slots by a keyed hash. Nothing is ever evicted, so no number of addresses
 * resets a budget. The key keeps an attacker from choosing an address that shares another's slot.
 */
export class RefusalBudgets {
  readonly #address_owed = new Float64Array(ADDRESS_SLOTS);
  readonly #address_at_ms = new Float64Array(ADDRESS_SLOTS);
  readonly #keys = new Map<string, KeyDebt>();
  #unanswered = 0;

  constructor(private readonly key: HashKey) {}

  /** Returns whole seconds until the address has budget; 0 when it has. */
  addressWait_s(address: string, now_ms: number): number {
    return wait_s(this.#addressOwed(this.#slotOf(address), now_ms), ADDRESS_REFUSALS_PER_MINUTE);
  }

  /** Counts a refusal of a request without a valid key. */
  spendOfAddress(address: string, now_ms: number): void {
    const slot = this.#slotOf(address);
    const owed = this.#addressOwed(slot, now_ms) + 1;
    this.#address_owed[slot] = Math.min(owed, 2 * ADDRESS_REFUSALS_PER_MINUTE);
    this.#address_at_ms[slot] = now_ms;
  }

  /** Returns whole seconds until the key has budget; 0 when it has. */
  keyWait_s(key_id: string, now_ms: number): number {
    const debt = this.#keys.get(key_id);
    return debt === undefined ? 0 : wait_s(keyOwed(debt, now_ms), debt.per_minute);
  }

  /**
   * Counts a refused request of a key: `refusals` (0 where another limit refused it), and the bytes read of
   * its body.
   */
  spendOfKey(
    key_id: string,
    requests_per_minute: number,
    spent: { readonly refusals: 0 | 1; readonly body_bytes: number },
    now_ms: number,
  ): void {
    const per_minute = keyRefusalsPerMinute(requests_per_minute);
    const debt = this.#keys.get(key_id);
    const before = debt === undefined ? 0 : keyOwed(debt, now_ms);
    const owed = before + spent.refusals + Math.floor(spent.body_bytes / BYTES_PER_REFUSAL);
    if (owed === 0) return;
    this.#keys.set(key_id, { owed: Math.min(owed, 2 * per_minute), at_ms: now_ms, per_minute });
  }

  /** Notes a request that was not processed, because a budget was spent. */
  noteUnanswered(): void {
    this.#unanswered += 1;
  }

  /** Returns the number of requests noted since the last call. */
  takeUnanswered(): number {
    const count = this.#unanswered;
    this.#unanswered = 0;
    return count;
  }

  /** Drops the keys with a full budget. */
  forgetIdle(now_ms: number): void {
    for (const [key_id, debt] of this.#keys) {
      if (keyOwed(debt, now_ms) === 0) this.#keys.delete(key_id);
    }
  }

  #slotOf(address: string): number {
    return halfSipHash(address, this.key) & (ADDRESS_SLOTS - 1);
  }

  #addressOwed(slot: number, now_ms: number): number {
    const [owed = 0, at_ms = 0] = [this.#address_owed[slot], this.#address_at_ms[slot]];
    return left(owed, now_ms - at_ms, ADDRESS_REFUSALS_PER_MINUTE);
  }
}

function keyOwed({ owed, at_ms, per_minute }: KeyDebt, now_ms: number): number {
  return left(owed, now_ms - at_ms, per_minute);
}

/** Returns the used part of a budget after some time. */
function left(owed: number, elapsed_ms: number, per_minute: number): number {
  return Math.max(0, owed - (elapsed_ms * per_minute) / MINUTE_MS);
}

/** Returns whole seconds until one more refusal fits in a bucket of one minute. */
function wait_s(owed: number, per_minute: number): number {
  const missing = owed + 1 - per_minute;
  return missing <= 0 ? 0 : Math.max(1, Math.ceil((missing / per_minute) * (MINUTE_MS / 1_000)));
}
