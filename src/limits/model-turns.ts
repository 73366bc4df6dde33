import type { DecoderSize, PlanTurn } from '../../native/engine.ts';
import { CLIENT_TIMEOUT_MS } from '../client-timeout.ts';
import type { Clock } from '../clock.ts';
import { FairQueue, type Waiting } from './fair-queue.ts';

/** The organization has as many requests at the model as it may: one more is refused. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
  /** Whole seconds until there should be a place. */
  constructor(readonly retry_after_s: number) {
    super('Too many requests are waiting for the model.');
  }
}

/** A request at the model, until it is answered. */
export interface Place {
  /**
   * What `work` resolves or rejects with, once its turn has come. Rejects with the signal's reason: at once while it
   * waits, and without the end of the work when that goes on.
   */
  run<Result>(turn: PlanTurn, work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Whole seconds until a request that comes back should find the organization's own ones served. */
  retryAfter_s(): number;
}

/** What is at the model now. */
export interface TurnsLoad {
  /** Requests, waiting or running. */
  readonly requests: number;
  /** Plans that wait for their turn. */
  readonly waiting_plans: number;
  /** Tokens of the plans that were given to the model and are not answered. */
  readonly running_tokens: number;
}

/** The requests of one organization that are at the model. */
interface Guest {
  requests: number;
  /** Refusals less the requests that ended since. Each refused request is told to come back after the one before. */
  refused: number;
}

/** Requests that may be at the model, waiting or running, unless configured. */
export const QUEUE_LIMIT = 512;
/** The measured speed is a moving average, in which the newest piece has this share. */
const NEWEST_SHARE = 0.2;
/** The longest `Retry-After`: clients give up then. */
const RETRY_AFTER_MAX_S = CLIENT_TIMEOUT_MS / 1_000;

/**
 * Who may give work to the model, and when. The model gets only as much at once as keeps it busy. The rest waits here,
 * and organizations are served in turns weighted by tokens. Requests at the model, waiting or running, are bounded in
 * total. An organization may have as many of them as there are free places. One alone gets half of the queue, and the
 * next one still finds room.
 */
export class ModelTurns {
  readonly #queue = new FairQueue<() => void>();
  readonly #guests = new Map<string, Guest>();
  readonly #in_flight = { small: 0, large: 0 };
  #decoder_tokens = 1;
  #requests = 0;
  #ms_per_token = 0;
  /** When a piece last ended: the time until then counts for the pieces before. */
  #ended_ms = 0;

  /** `requests_max` bounds the requests at the model. */
  constructor(
    private requests_max: number,
    private readonly clock: Pick<Clock, 'monotonic_ms'>,
  ) {}

  /** Bounds the requests that come from now on; those at the model stay. */
  setLimit(requests_max: number): void {
    this.requests_max = requests_max;
  }

  /** What `work` resolves or rejects with, which has a place at the model until then. Rejects with `QueueFull`. */
  async enter<Result>(organization_id: string, work: (place: Place) => Promise<Result>): Promise<Result> {
    const guest = this.#guests.get(organization_id) ?? { requests: 0, refused: 0 };
    const free = this.requests_max - this.#requests;
    if (guest.requests >= free) {
      guest.refused += 1;
      throw new QueueFull(this.#retryAfter_s(organization_id, guest.refused / Math.max(1, guest.requests)));
    }
    this.#guests.set(organization_id, guest);
    guest.requests += 1;
    this.#requests += 1;
    try {
      return await work({
        run: (turn, piece, signal) => this.#run(organization_id, turn, piece, signal),
        retryAfter_s: () => this.#retryAfter_s(organization_id, 1),
      });
    } finally {
      guest.requests -= 1;
      guest.refused = Math.max(0, guest.refused - 1);
      this.#requests -= 1;
      if (guest.requests === 0) this.#guests.delete(organization_id);
    }
  }

  load(): TurnsLoad {
    return {
      requests: this.#requests,
      waiting_plans: this.#queue.waitingPieces(),
      running_tokens: this.#in_flight.small + this.#in_flight.large,
    };
  }

  #run<Result>(
    organization_id: string,
    turn: PlanTurn,
    work: () => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    if (signal.aborted) return Promise.reject(signal.reason);
    this.#decoder_tokens = turn.decoder_tokens;
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    let waiting: Waiting<() => void> | undefined;
    let end: (() => void) | undefined;
    const abort = () => {
      if (waiting !== undefined) this.#queue.remove(waiting);
      reject(signal.reason);
      // Only after all pieces of the request have left the queue, so that none takes the place of another.
      queueMicrotask(() => {
        end?.();
        this.#serve();
      });
    };
    const start = () => {
      waiting = undefined;
      const began_ms = this.clock.monotonic_ms();
      end = this.#occupy(turn);
      work()
        .then((result) => {
          this.#measure(turn.tokens, began_ms);
          resolve(result);
        }, reject)
        .finally(end);
    };
    signal.addEventListener('abort', abort, { once: true });
    waiting = this.#queue.add(organization_id, turn.decoder, turn.tokens, start);
    this.#serve();
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  /** Counts the piece as given to the model, until the function that is returned is called. */
  #occupy(turn: PlanTurn): () => void {
    this.#in_flight[turn.decoder] += turn.tokens;
    let is_over = false;
    return () => {
      if (is_over) return;
      is_over = true;
      this.#in_flight[turn.decoder] -= turn.tokens;
      this.#serve();
    };
  }

  #measure(tokens: number, began_ms: number): void {
    const now_ms = this.clock.monotonic_ms();
    const ms_per_token = (now_ms - Math.max(began_ms, this.#ended_ms)) / Math.max(1, tokens);
    this.#ended_ms = now_ms;
    const share = this.#ms_per_token === 0 ? 1 : NEWEST_SHARE;
    this.#ms_per_token += share * (ms_per_token - this.#ms_per_token);
  }

  #serve(): void {
    const hasRoom = (decoder: DecoderSize) => this.#in_flight[decoder] < this.#decoder_tokens;
    for (let next = this.#queue.take(hasRoom); next !== undefined; next = this.#queue.take(hasRoom)) {
      next.piece();
    }
  }

  /**
   * The time in which the model reads that share of what the organization has waiting, all others having their turns.
   */
  #retryAfter_s(organization_id: string, share: number): number {
    const tokens = this.#queue.waitingTokens(organization_id) * share;
    const duration_ms = tokens * this.#ms_per_token * Math.max(1, this.#queue.waitingOrganizations());
    return Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil(duration_ms / 1_000)));
  }
}
