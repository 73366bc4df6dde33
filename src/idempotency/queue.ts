import { sameHash } from '../hashing/secret-hash.ts';
import type { IdempotencyClaim, IdempotencyRecords, StoredClaim } from '../store/idempotency-records.ts';
import type { KeptAnswer } from '../store/kept-answer.ts';
import type { Clock } from '../time/clock.ts';
import { IDEMPOTENCY_KEPT_MS } from './claim.ts';

/** The first and the longest delay between two checks of a request that runs on another node. */
const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 500;

/** The outcome of `enter` for a request with an idempotency key. */
export type IdempotencyOutcome =
  /** The request may run; it must call `end` at its end. */
  | { readonly state: 'runs'; readonly end: () => void }
  | { readonly state: 'answered'; readonly kept: KeptAnswer }
  /** The key was used with another body. */
  | { readonly state: 'other_body' }
  /** The running request took longer than a client waits, or the signal is aborted. */
  | { readonly state: 'in_use' };

/** The limits of a request's wait for another one of its key. */
export interface KeyWait {
  /** The time on the monotonic clock. */
  readonly waits_until_ms: number;
  /** Aborted when the client goes away, or the service stops. */
  readonly signal: AbortSignal;
}

interface Running {
  readonly body_hash: string;
  readonly ended: Promise<void>;
}

/**
 * Lets one request of each idempotency key run at a time, and gives the others its answer. Between nodes the
 * stored claim decides (`Books.hold`). In each process one request waits for it, and the others wait for that
 * one.
 */
export class IdempotencyQueue {
  readonly #running = new Map<string, Running>();

  constructor(
    private readonly records: Pick<IdempotencyRecords, 'findClaim'>,
    private readonly clock: Clock,
  ) {}

  /** The number of keys with a request that runs here, or checks if it may. */
  get running(): number {
    return this.#running.size;
  }

  /**
   * Resolves when the request may run, or need not. Waits for the running one of its key until the deadline,
   * or until the signal is aborted. Rejects as the store does.
   */
  async enter(claim: IdempotencyClaim, wait: KeyWait): Promise<IdempotencyOutcome> {
    const key = `${claim.api_key_id} ${claim.key_hash}`;
    for (;;) {
      const other = this.#running.get(key);
      if (other === undefined) return await this.#enterAlone(key, claim, wait);
      if (!sameHash(other.body_hash, claim.body_hash)) return { state: 'other_body' };
      if (this.#isOver(wait)) return { state: 'in_use' };
      await endOf(other.ended, wait.waits_until_ms - this.clock.monotonic_ms(), wait.signal);
    }
  }

  /** Does as `enter`, for the only request of its key in this process. */
  async #enterAlone(key: string, claim: IdempotencyClaim, wait: KeyWait): Promise<IdempotencyOutcome> {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(key, { body_hash: claim.body_hash, ended });
    const end = () => {
      this.#running.delete(key);
      resolve();
    };
    let outcome: IdempotencyOutcome | undefined;
    try {
      outcome = await this.#look(claim, wait, end);
      return outcome;
    } finally {
      if (outcome?.state !== 'runs') end();
    }
  }

  async #look(claim: IdempotencyClaim, wait: KeyWait, end: () => void): Promise<IdempotencyOutcome> {
    for (let wait_ms = FIRST_LOOK_MS; ; wait_ms = Math.min(2 * wait_ms, LONGEST_LOOK_MS)) {
      const stored = await this.#find(claim);
      if (stored === undefined) return { state: 'runs', end };
      if (!sameHash(stored.body_hash, claim.body_hash)) return { state: 'other_body' };
      if (stored.kept !== null) return { state: 'answered', kept: stored.kept };
      if (this.#isOver(wait)) return { state: 'in_use' };
      await endOf(null, wait_ms, wait.signal);
    }
  }

  #isOver({ waits_until_ms, signal }: KeyWait): boolean {
    return signal.aborted || this.clock.monotonic_ms() >= waits_until_ms;
  }

  #find(claim: IdempotencyClaim): Promise<StoredClaim | undefined> {
    return this.records.findClaim(claim, this.clock.now_ms() - IDEMPOTENCY_KEPT_MS);
  }
}

/** Resolves when the work ends, after that time, or when the signal is aborted. Never rejects. */
function endOf(work: Promise<void> | null, limit_ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, limit_ms);
    signal.addEventListener('abort', done, { once: true });
    void work?.then(done);
  });
}
