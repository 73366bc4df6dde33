import type { UpstreamPool } from '../catalog/catalog-records.ts';
import { QueueFull } from '../limits/model-turns.ts';
import {
  type LifecycleStatus,
  ModelUnavailable,
  ModelWarmingUp,
  modelClosed,
  type Schedule,
  unlessAborted,
} from '../models/lifecycle.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { type Credentials, readCredentials } from './credentials.ts';
import { callUpstream } from './http-call.ts';
import { DECISION_PATH, MODELS_PATH, type SystemOneAnswer, WrongAnswer } from './systemone.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** What is asked in one call. */
export interface PoolCall {
  /** What it is likely to read: what a member has outstanding. */
  readonly tokens: number;
  /** Written when it is sent: a request's calls wait for their turns with one copy of the record. */
  readonly body: () => string;
  /** Throws `WrongAnswer`. */
  readonly read: (text: string) => SystemOneAnswer;
}

export interface PoolOptions {
  readonly now_ms: () => number;
  readonly schedule: Schedule;
  /** For an answer; a second member is asked after that, and both together take no longer than a client waits. */
  readonly answer_ms: number;
  /** For the answer to a small question. */
  readonly trial_ms: number;
  /** Takes what no client is told of. */
  readonly onProblem: (error: unknown) => void;
}

/** One server of a pool. */
interface Member {
  readonly address: string;
  readonly breaker: CircuitBreaker;
  /** Of calls that it has not answered. */
  outstanding_tokens: number;
  is_draining: boolean;
  /** Until then it has asked for none. */
  resting_until_ms: number;
  /** Whether it rests because it loads its model. */
  is_loading: boolean;
  /** Whether it answers a small question, while that is being found out. */
  trial: Promise<boolean> | null;
  /** Of the list of models; the time of the last one. */
  checked_at_ms: number;
  failure: UpstreamFailed | null;
}

/** What one member has outstanding at most, but for one call that is larger: as much as keeps a server busy. */
const OUTSTANDING_TOKENS_MAX = 16_384;
/** Members that are asked for one answer. */
const ATTEMPTS_MAX = 2;
/** How often it is looked whether a trial or a check is due. */
const LOOK_MS = 1_000;
const CHECK_INTERVAL_MS = 5_000;
const CHECK_TIMEOUT_MS = 5_000;
/** How long a member rests that does not say so itself. */
const BUSY_REST_S = 1;
const LOADING_REST_S = 2;
/** Statuses of a server that is well and has no list of models. */
const NO_LIST: readonly (number | null)[] = [404, 405, 501];

/**
 * The servers that answer for one model. Those that have proven themselves get the calls, each the one with the fewest
 * tokens outstanding. A call that was not answered at all goes to another member, once.
 */
export class Pool {
  readonly #settings: UpstreamPool;
  readonly #options: PoolOptions;
  readonly #members: readonly Member[];
  readonly #trial: PoolCall;
  readonly #closed = new AbortController();
  #credentials: Credentials = { token: null, certificates: null };
  #cancelLook: (() => void) | undefined;
  #has_started = false;
  /** Where the search for the next member begins: of equals, each has its turn. */
  #turn = 0;

  /** `trial` asks a small question about nobody's record. */
  constructor(settings: UpstreamPool, trial: PoolCall, options: PoolOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#trial = trial;
    this.#members = settings.addresses.map((address) => ({
      address,
      breaker: new CircuitBreaker(),
      outstanding_tokens: 0,
      is_draining: settings.draining.includes(address),
      resting_until_ms: Number.NEGATIVE_INFINITY,
      is_loading: false,
      trial: null,
      checked_at_ms: Number.NEGATIVE_INFINITY,
      failure: null,
    }));
  }

  /** Tokens that may be outstanding at all members that get calls now. */
  get capacity_tokens(): number {
    const usable = this.#members.filter((member) => this.#isUsable(member)).length;
    return Math.max(1, usable) * OUTSTANDING_TOKENS_MAX;
  }

  setDraining(addresses: readonly string[]): void {
    for (const member of this.#members) member.is_draining = addresses.includes(member.address);
  }

  status(): LifecycleStatus {
    if (this.#members.some((member) => this.#isUsable(member)))
      return { state: 'ready', load_error: undefined };
    const others = this.#members.filter(({ is_draining }) => !is_draining);
    if (!this.#has_started) return { state: 'cold', load_error: undefined };
    if (others.some(({ trial, is_loading }) => trial !== null || is_loading)) {
      return { state: 'loading', load_error: undefined };
    }
    const failure = others.find((member) => member.failure !== null)?.failure;
    return { state: 'cold', load_error: failure?.message ?? 'No upstream gets requests.' };
  }

  /**
   * Resolves when a member can be asked; begins to look after the members at the first call. Rejects with the signal's
   * reason, with `ModelWarmingUp` where one loads, with `QueueFull` where one is busy, and with `ModelUnavailable`.
   */
  async ready(signal?: AbortSignal): Promise<void> {
    await this.#take(0, new Set(), signal);
  }

  /**
   * The checked answer of one member. Rejects as `ready`, and with `UpstreamFailed`.
   */
  async ask(call: PoolCall, signal: AbortSignal): Promise<SystemOneAnswer> {
    const tried = new Set<Member>();
    for (;;) {
      const member = await this.#take(call.tokens, tried, signal);
      try {
        const answer = await this.#askMember(member, call, this.#options.answer_ms, signal);
        member.breaker.succeeded();
        return answer;
      } catch (error) {
        if (!(error instanceof UpstreamFailed)) throw error;
        this.#noteFailure(member, error);
        tried.add(member);
        const has_next = this.#members.some((other) => !tried.has(other) && this.#isUsable(other));
        if (!error.is_unanswered || tried.size === ATTEMPTS_MAX || !has_next) throw error;
        if (error.is_fault) this.#options.onProblem(error);
      } finally {
        member.outstanding_tokens -= call.tokens;
      }
    }
  }

  /** Asks no member any more; what they are asked is given up. */
  close(): void {
    this.#cancelLook?.();
    this.#closed.abort(modelClosed());
  }

  #isUsable({ breaker, is_draining, resting_until_ms }: Member): boolean {
    return breaker.state === 'closed' && !is_draining && resting_until_ms <= this.#options.now_ms();
  }

  /**
   * The member that has the fewest tokens outstanding, of those that were not tried. The tokens count as its own at
   * once, so that another caller in the same moment sees them. Waits for running trials.
   */
  async #take(tokens: number, tried: ReadonlySet<Member>, signal: AbortSignal | undefined): Promise<Member> {
    this.#closed.signal.throwIfAborted();
    this.#start();
    for (;;) {
      signal?.throwIfAborted();
      const member = this.#leastLoaded(tried);
      if (member !== undefined) {
        member.outstanding_tokens += tokens;
        if (tokens > 0) this.#turn += 1;
        return member;
      }
      const trials = this.#members.flatMap((other) =>
        tried.has(other) || other.is_draining || other.trial === null ? [] : [other.trial],
      );
      if (trials.length === 0) throw this.#whyNone();
      await unlessAborted(anyTrue(trials), signal);
    }
  }

  #leastLoaded(tried: ReadonlySet<Member>): Member | undefined {
    const count = this.#members.length;
    let least: Member | undefined;
    for (let index = 0; index < count; index++) {
      const member = this.#members[(this.#turn + index) % count];
      if (member === undefined || tried.has(member) || !this.#isUsable(member)) continue;
      if (least === undefined || member.outstanding_tokens < least.outstanding_tokens) least = member;
    }
    return least;
  }

  #whyNone(): Error {
    const now_ms = this.#options.now_ms();
    const members = this.#members.filter(({ is_draining }) => !is_draining);
    const resting = members.filter(({ resting_until_ms }) => resting_until_ms > now_ms);
    const until_ms = Math.min(...resting.map(({ resting_until_ms }) => resting_until_ms));
    const retry_after_s = Math.max(1, Math.ceil((until_ms - now_ms) / 1_000));
    if (resting.some(({ is_loading }) => is_loading)) return new ModelWarmingUp(retry_after_s);
    if (resting.length > 0) return new QueueFull(retry_after_s);
    const cause = members.find(({ failure }) => failure !== null)?.failure;
    return new ModelUnavailable('No upstream answers.', { cause });
  }

  async #askMember(
    member: Member,
    { body, read }: PoolCall,
    timeout_ms: number,
    signal: AbortSignal,
  ): Promise<SystemOneAnswer> {
    const { address } = member;
    try {
      const credentials = this.#credentials;
      return read(
        await callUpstream({
          address,
          path: DECISION_PATH,
          body: body(),
          credentials,
          timeout_ms,
          signal,
        }),
      );
    } catch (error) {
      if (error instanceof WrongAnswer)
        throw new UpstreamFailed('bad_answer', `${address}: ${error.message}`);
      throw error;
    }
  }

  #noteFailure(member: Member, error: UpstreamFailed): void {
    if (error.failure === 'busy' || error.failure === 'loading') this.#rest(member, error);
    if (!error.is_fault) return;
    member.failure = error;
    member.breaker.failed();
    this.#tryOut(member);
  }

  /** Gives the member the rest that it asks for, and says how long that is. */
  #rest(member: Member, { failure, retry_after_s }: UpstreamFailed): number {
    member.is_loading = failure === 'loading';
    const rest_ms = (retry_after_s ?? (member.is_loading ? LOADING_REST_S : BUSY_REST_S)) * 1_000;
    member.resting_until_ms = this.#options.now_ms() + rest_ms;
    return rest_ms;
  }

  #start(): void {
    if (this.#has_started) return;
    this.#has_started = true;
    this.#look();
  }

  #look(): void {
    for (const member of this.#members) {
      if (member.is_draining) continue;
      this.#tryOut(member);
      if (this.#isUsable(member)) this.#check(member);
    }
    this.#cancelLook = this.#options.schedule(() => this.#look(), LOOK_MS);
  }

  /** Asks the member a small question where its breaker says that it is time. */
  #tryOut(member: Member): void {
    if (this.#closed.signal.aborted || !member.breaker.beginTrial(this.#options.now_ms())) return;
    member.trial = this.#answersTrial(member).finally(() => {
      member.trial = null;
    });
  }

  async #answersTrial(member: Member): Promise<boolean> {
    const { breaker } = member;
    try {
      this.#credentials = await readCredentials(this.#settings);
      await this.#askMember(member, this.#trial, this.#options.trial_ms, this.#closed.signal);
    } catch (error) {
      const is_told = error instanceof UpstreamFailed && !error.is_fault && error.failure !== 'rejected';
      breaker.trialFailed(this.#options.now_ms(), is_told ? this.#rest(member, error) : undefined);
      if (is_told || this.#closed.signal.aborted) return false;
      member.is_loading = false;
      member.failure = error instanceof UpstreamFailed ? error : null;
      this.#options.onProblem(error);
      return false;
    }
    breaker.trialSucceeded();
    member.failure = null;
    member.is_loading = false;
    member.resting_until_ms = Number.NEGATIVE_INFINITY;
    member.checked_at_ms = this.#options.now_ms();
    return true;
  }

  /** Asks the member for its list of models now and then, so that a dead one is found before a request is. */
  #check(member: Member): void {
    const now_ms = this.#options.now_ms();
    if (now_ms - member.checked_at_ms < CHECK_INTERVAL_MS) return;
    member.checked_at_ms = now_ms;
    this.#listModels(member).catch((error: unknown) => {
      if (this.#closed.signal.aborted) return;
      if (!(error instanceof UpstreamFailed)) this.#options.onProblem(error);
      else if (!NO_LIST.includes(error.status)) this.#noteFailure(member, error);
    });
  }

  async #listModels({ address }: Member): Promise<void> {
    const credentials = await readCredentials(this.#settings);
    this.#credentials = credentials;
    const { signal } = this.#closed;
    await callUpstream({
      address,
      path: MODELS_PATH,
      body: null,
      credentials,
      timeout_ms: CHECK_TIMEOUT_MS,
      signal,
    });
  }
}

/** Resolves at the first that is true, or when all are not. */
async function anyTrue(promises: readonly Promise<boolean>[]): Promise<void> {
  const found = Promise.withResolvers<void>();
  await Promise.race([
    found.promise,
    Promise.all(
      promises.map(async (promise) => {
        if (await promise) found.resolve();
      }),
    ),
  ]);
}
