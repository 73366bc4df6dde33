import { sameHash } from '../accounts/secret-hash.ts';
import type { Clock } from '../clock.ts';
import { IDEMPOTENCY_KEPT_MS, type IdempotencyClaim } from './claim.ts';
import type { IdempotencyRecords, StoredClaim } from './idempotency-records.ts';
import type { KeptAnswer } from './kept-answer.ts';

/** Between two looks at a request that runs on another node, at first and at last. */
const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 500;

/** What a request with an idempotency key comes to. */
export type IdempotencyTurn =
  /** It is the one that runs, until it calls `end`. */
  | { readonly state: 'runs'; readonly end: () => void }
  | { readonly state: 'answered'; readonly kept: KeptAnswer }
  /** Its key came with another body before. */
  | { readonly state: 'other_body' }
  /** The one that runs took longer than a client waits, or the client has gone. */
  | { readonly state: 'in_use' };

/** How long a request waits for another one of its key. */
export interface Patience {
  /** On the clock that only goes forward. */
  readonly waits_until_ms: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

interface Running {
  readonly body_hash: string;
  readonly ended: Promise<void>;
}

/**
 * Lets one request of each idempotency key run at a time, and gives the others its answer. Between the nodes of a
 * database the stored claim decides (`Books.hold`); here one of a process waits for it, and the others for that one.
 */
export class IdempotencyTurns {
  readonly #running = new Map<string, Running>();

  constructor(
    private readonly records: Pick<IdempotencyRecords, 'findClaim'>,
    private readonly clock: Clock,
  ) {}

  /** How many keys have a request here that runs, or looks whether it may. */
  get running(): number {
    return this.#running.size;
  }

  /**
   * Resolves when the request may run, or need not. Waits for one that runs, at most until that time, and until the
   * client has gone. Rejects with what the store rejects with.
   */
  async enter(claim: IdempotencyClaim, patience: Patience): Promise<IdempotencyTurn> {
    const key = `${claim.api_key_id} ${claim.key_hash}`;
    for (;;) {
      const other = this.#running.get(key);
      if (other === undefined) return await this.#enterAlone(key, claim, patience);
      if (!sameHash(other.body_hash, claim.body_hash)) return { state: 'other_body' };
      if (this.#isOver(patience)) return { state: 'in_use' };
      await endOf(other.ended, patience.waits_until_ms - this.clock.monotonic_ms(), patience.signal);
    }
  }

  /** As `enter`, for the only one of its key in this process. */
  async #enterAlone(key: string, claim: IdempotencyClaim, patience: Patience): Promise<IdempotencyTurn> {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(key, { body_hash: claim.body_hash, ended });
    const end = () => {
      this.#running.delete(key);
      resolve();
    };
    let turn: IdempotencyTurn | undefined;
    try {
      turn = await this.#look(claim, patience, end);
      return turn;
    } finally {
      if (turn?.state !== 'runs') end();
    }
  }

  async #look(claim: IdempotencyClaim, patience: Patience, end: () => void): Promise<IdempotencyTurn> {
    for (let wait_ms = FIRST_LOOK_MS; ; wait_ms = Math.min(2 * wait_ms, LONGEST_LOOK_MS)) {
      const stored = await this.#find(claim);
      if (stored === undefined) return { state: 'runs', end };
      if (!sameHash(stored.body_hash, claim.body_hash)) return { state: 'other_body' };
      if (stored.kept !== null) return { state: 'answered', kept: stored.kept };
      if (this.#isOver(patience)) return { state: 'in_use' };
      await endOf(null, wait_ms, patience.signal);
    }
  }

  #isOver({ waits_until_ms, signal }: Patience): boolean {
    return signal.aborted || this.clock.monotonic_ms() >= waits_until_ms;
  }

  #find(claim: IdempotencyClaim): Promise<StoredClaim | undefined> {
    return this.records.findClaim(claim, this.clock.now_ms() - IDEMPOTENCY_KEPT_MS);
  }
}

/** Resolves at the end of the work, if there is any, after that time, or when the signal is aborted. Never rejects. */
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
