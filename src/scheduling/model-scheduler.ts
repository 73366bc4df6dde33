import type { DecoderSize, ScheduledPlan } from '../../native/engine.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import type { Clock } from '../time/clock.ts';
import { untilAborted } from '../time/pause.ts';
import { FairQueue, type Waiting } from './fair-queue.ts';

/** The refusal of a request because the organization has all the requests at the model that it may have. */
export class QueueFull extends Error {
  override readonly name = 'QueueFull';
  /** Whole seconds until a slot should be free. */
  constructor(readonly retry_after_s: number) {
    super('Too many requests are waiting for the model.');
  }
}

/** A request has waited too long in the queue of the model. */
export class QueueTimedOut extends Error {
  override readonly name = 'QueueTimedOut';
  /** Whole seconds until the earlier requests should be served. */
  constructor(readonly retry_after_s: number) {
    super('The model was busy for too long.');
  }
}

/** A request's slot at the model, until the disposal. */
export interface ModelSlot extends Disposable {
  /**
   * Runs `work` when the plan is scheduled, and resolves and rejects as it does. Rejects at once with the signal's
   * reason, without waiting for work that goes on.
   */
  run<Result>(plan: ScheduledPlan, work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
  /** Returns whole seconds until the organization's present requests should be served. */
  retryAfter_s(): number;
}

/** The present load of the model. */
export interface SchedulerLoad {
  /** The number of requests, waiting or running. */
  readonly requests: number;
  /** The number of plans in the queue. */
  readonly waiting_plans: number;
  /** The tokens of the plans that the model has and has not answered. */
  readonly running_tokens: number;
}

/** The requests of one organization at the model: its single ones, or the lines of its batches. */
interface Guest {
  /** Its name in the fair queue. The lines of batches wait beside the organization's single requests. */
  readonly flow: string;
  readonly is_batch: boolean;
  /** The tokens that one of its tokens counts for in the fair queue. */
  readonly token_weight: number;
  requests: number;
  /** The milliseconds that its waiting plans should take, as far as that is known. */
  waiting_ms: number;
  /**
   * The number of refusals less the requests that ended since. Each refused request gets a later time than
   * the one before.
   */
  refused: number;
}

/** The most requests at the model, waiting or running, unless configured. */
export const QUEUE_LIMIT = 512;
/** The weight of a token of a batch: while both wait, its lines get a quarter of what single requests get. */
const BATCH_TOKEN_WEIGHT = 4;
/** The share of the slots that lines of batches may have. */
const BATCH_SHARE = 0.5;
/** The share of the newest piece in the moving average of the measured speed. */
const NEWEST_SHARE = 0.2;
/** The longest `Retry-After`: clients give up then. */
const RETRY_AFTER_MAX_S = CLIENT_TIMEOUT_MS / 1_000;

/**
 * Schedules work for the model, which gets only as much at once as keeps it busy. The rest waits here, and
 * organizations are served one after the other, weighted by tokens. The requests at the model, waiting or running, are
 * bounded in total. An organization may have as many of them as there are free slots. One alone gets half of
 * the queue, and the next one still finds room.
 *
 * Lines of batches have a lower weight than single requests, and wait for a slot where those are refused.
 */
export class ModelScheduler {
  readonly #queue = new FairQueue<() => void>();
  readonly #guests = new Map<string, Guest>();
  readonly #in_flight = { small: 0, large: 0 };
  #decoder_tokens = 1;
  #requests = 0;
  #batch_requests = 0;
  /** Resolves when the next slot becomes free. */
  #slot_freed = Promise.withResolvers<void>();
  #ms_per_token = 0;
  /** The time at which a piece last ended; the time until then counts for earlier pieces. */
  #ended_ms = 0;

  /** `requests_max` bounds the requests at the model. */
  constructor(
    private requests_max: number,
    private readonly clock: Pick<Clock, 'monotonic_ms'>,
  ) {}

  /** Bounds later requests; those at the model stay. */
  setLimit(requests_max: number): void {
    this.requests_max = requests_max;
    this.#tellFreeSlot();
  }

  /**
   * Takes a slot at the model. Rejects with `QueueFull`. A line of a batch waits for its slot until `patience` is
   * aborted.
   */
  async take(organization_id: string, patience: AbortSignal | null = null): Promise<ModelSlot> {
    const guest = await this.#takeSlot(organization_id, patience);
    return {
      run: (plan, work, signal) => this.#run(guest, plan, work, signal),
      retryAfter_s: () => this.#retryAfter_s(guest, 1),
      [Symbol.dispose]: () => this.#giveSlot(guest),
    };
  }

  load(): SchedulerLoad {
    return {
      requests: this.#requests,
      waiting_plans: this.#queue.waitingPieces(),
      running_tokens: this.#in_flight.small + this.#in_flight.large,
    };
  }

  async #takeSlot(organization_id: string, patience: AbortSignal | null): Promise<Guest> {
    const is_batch = patience !== null;
    const flow = is_batch ? `${organization_id} batches` : organization_id;
    for (;;) {
      const guest = this.#guests.get(flow) ?? {
        flow,
        is_batch,
        token_weight: is_batch ? BATCH_TOKEN_WEIGHT : 1,
        requests: 0,
        waiting_ms: 0,
        refused: 0,
      };
      if (this.#hasSlotFor(guest)) {
        this.#guests.set(flow, guest);
        guest.requests += 1;
        this.#requests += 1;
        if (is_batch) this.#batch_requests += 1;
        return guest;
      }
      if (patience === null || patience.aborted) {
        guest.refused += 1;
        throw new QueueFull(this.#retryAfter_s(guest, guest.refused / Math.max(1, guest.requests)));
      }
      await untilAborted(this.#slot_freed.promise, patience);
    }
  }

  #giveSlot(guest: Guest): void {
    guest.requests -= 1;
    guest.refused = Math.max(0, guest.refused - 1);
    this.#requests -= 1;
    if (guest.is_batch) this.#batch_requests -= 1;
    if (guest.requests === 0) this.#guests.delete(guest.flow);
    this.#tellFreeSlot();
  }

  #hasSlotFor({ is_batch, requests }: Guest): boolean {
    const of_batches = Math.max(1, Math.floor(this.requests_max * BATCH_SHARE));
    const is_free = requests < this.requests_max - this.#requests;
    return is_free && (!is_batch || this.#batch_requests < of_batches);
  }

  #tellFreeSlot(): void {
    this.#slot_freed.resolve();
    this.#slot_freed = Promise.withResolvers();
  }

  #run<Result>(
    guest: Guest,
    plan: ScheduledPlan,
    work: () => Promise<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const { flow, token_weight } = guest;
    const expected_ms = plan.expected_ms ?? 0;
    this.#decoder_tokens = plan.decoder_tokens;
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    let waiting: Waiting<() => void> | undefined;
    let end: (() => void) | undefined;
    const abort = () => {
      if (waiting !== undefined) {
        this.#queue.remove(waiting);
        guest.waiting_ms -= expected_ms;
      }
      reject(signal.reason);
      // The microtask runs after all pieces of the request have left the queue, so that none takes the slot
      // of another.
      queueMicrotask(() => {
        end?.();
        this.#serve();
      });
    };
    const start = () => {
      waiting = undefined;
      guest.waiting_ms -= expected_ms;
      const began_ms = this.clock.monotonic_ms();
      end = this.#occupy(plan);
      work()
        .then((result) => {
          this.#measure(plan.tokens, began_ms);
          resolve(result);
        }, reject)
        .finally(end);
    };
    signal.addEventListener('abort', abort, { once: true });
    waiting = this.#queue.add(flow, plan.decoder, plan.tokens * token_weight, start);
    guest.waiting_ms += expected_ms;
    this.#serve();
    return promise.finally(() => signal.removeEventListener('abort', abort));
  }

  /** Counts the piece as given to the model until the returned function is called. */
  #occupy(plan: ScheduledPlan): () => void {
    this.#in_flight[plan.decoder] += plan.tokens;
    let is_over = false;
    return () => {
      if (is_over) return;
      is_over = true;
      this.#in_flight[plan.decoder] -= plan.tokens;
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
   * Returns the time until the model has read that share of the guest's waiting plans. Meanwhile it reads as much of
   * each other guest's, by weight, or all that waits.
   */
  #retryAfter_s(guest: Guest, share: number): number {
    const own_ms = this.#waiting_ms(guest) * share;
    let duration_ms = own_ms;
    for (const other of this.#guests.values()) {
      if (other === guest) continue;
      const fair_ms = (own_ms * guest.token_weight) / other.token_weight;
      duration_ms += Math.min(fair_ms, this.#waiting_ms(other));
    }
    return Math.min(RETRY_AFTER_MAX_S, Math.max(1, Math.ceil(duration_ms / 1_000)));
  }

  /**
   * Returns the time that the guest's waiting plans take alone. The longer of two times counts. Long plans take more
   * for each token than the last ones did, and beside other work all take more than expected.
   */
  #waiting_ms({ flow, waiting_ms, token_weight }: Guest): number {
    const tokens = this.#queue.waitingTokens(flow) / token_weight;
    return Math.max(tokens * this.#ms_per_token, waiting_ms);
  }
}
