import { isDeepStrictEqual } from 'node:util';
import { QueueFull } from '../scheduling/model-scheduler.ts';
import {
  type LifecycleStatus,
  ModelUnavailable,
  ModelWarmingUp,
  modelClosed,
  type ObservedUpstream,
} from '../served-models/model-answerer.ts';
import { UPSTREAM_WEIGHT, type UpstreamPool } from '../store/catalog-records.ts';
import { HOUR_MS } from '../time/clock.ts';
import { unlessAborted } from '../time/pause.ts';
import type { Schedule } from '../time/schedule.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { CredentialFiles, type Credentials } from './credentials.ts';
import { callUpstream, type HttpCall, type UpstreamResponse } from './http-call.ts';
import { NO_FACTS, type ServerFacts, serverFacts } from './server-facts.ts';
import { MODELS_PATH } from './systemone.ts';
import { UpstreamFailed } from './upstream-failed.ts';
import { WrongAnswer } from './wrong-answer.ts';

/** One call to a member. */
export interface PoolCall<Answer> {
  /** The likely number of tokens, which counts as outstanding at the member. */
  readonly tokens: number;
  readonly path: string;
  /** Returns the body when it is sent: waiting calls of a request share one copy of the record. */
  readonly body: () => string;
  /** Parses the answer. Throws `WrongAnswer`. */
  readonly read: (response: UpstreamResponse) => Answer;
}

/** A member's answer, with the member. */
export interface Answered<Answer> {
  readonly answer: Answer;
  /** The member for the next call of the request, as `preferred` of `ask`. */
  readonly member: AskedMember;
  /** The facts from its list of models before the call; null where the list could not be read. */
  readonly facts: ServerFacts | null;
}

/** A member that has answered. */
export interface AskedMember {
  readonly address: string;
}

/** The health probe of a member before it gets requests. */
export interface Trial {
  readonly call: PoolCall<unknown>;
  /** The requirement that is reported where the member refuses the call; empty for none. */
  readonly needs: string;
  /** The context that the list must report, if any: the tokens of a prompt and its answer; 0 for any. */
  readonly context_tokens: number;
}

export interface PoolOptions {
  readonly now_ms: () => number;
  readonly schedule: Schedule;
  /** The time for a member's answer where the pool has no setting; a second member is asked after it. */
  readonly answer_ms: number;
  /** The time for the answer to a health probe. */
  readonly trial_ms: number;
  /** Reports failures that appear in no response to a client. */
  readonly onProblem: (error: unknown) => void;
}

/** One server of a pool. */
interface Member extends AskedMember {
  readonly breaker: CircuitBreaker;
  /** Null for no token. */
  readonly token_file: string | null;
  readonly answer_ms: number;
  readonly weight: number;
  /** The last content of its files. */
  credentials: Credentials;
  /**
   * The amount by which it is behind its share among equally loaded members; the largest gets the next call.
   */
  behind: number;
  /** The tokens of calls that it has not answered. */
  outstanding_tokens: number;
  is_draining: boolean;
  /**
   * The end of the rest that it asked for. `NO_REST_MS` where it asked for none, or a later trial did not.
   */
  resting_until_ms: number;
  /** True if it rests because it loads its model. */
  is_loading: boolean;
  /** The time of the last report that its limit may be reached. */
  limit_reported_at_ms: number;
  /** The running trial, which resolves with true if it succeeds; null for none. */
  trial: Promise<boolean> | null;
  /** True from a failed trial to one that succeeds. */
  has_failed_trial: boolean;
  /** The time and result of the last check of the list of models. */
  checked_at_ms: number;
  facts: ServerFacts | null;
  /** As in `ObservedUpstream`. */
  requests: number;
  failures: number;
  failure: UpstreamFailed | null;
}

/**
 * The average limit of a member's outstanding tokens, except for one larger call: enough to keep a server
 * busy.
 */
const OUTSTANDING_TOKENS_MAX = 16_384;
/** The most calls for one answer. */
const ATTEMPTS_MAX = 2;
/** The interval at which due trials and checks are started. */
const LOOK_MS = 1_000;
const CHECK_INTERVAL_MS = 5_000;
const CHECK_TIMEOUT_MS = 5_000;
/** The rest of a member that does not give a time. */
const BUSY_REST_S = 1;
const LOADING_REST_S = 2;
/** The rest of a member for which no trial could be made, because retrying costs nothing. */
const UNTRIED_REST_MS = 1_000;
/** A lasting limit meets every call in flight, and the first one after each rest. */
const LIMIT_REPORT_INTERVAL_MS = HOUR_MS;
/** Stands for the end of the rest of a member that asked for none. */
const NO_REST_MS = Number.NEGATIVE_INFINITY;
const NO_CREDENTIALS: Credentials = { token: null, certificates: null };
/** Statuses of a healthy server without a list of models. */
const NO_LIST: readonly (number | null)[] = [404, 405, 501];

/**
 * The servers of one model. Calls go to members that passed a trial: each to the one with the fewest
 * outstanding tokens for its weight. A call without any answer is repeated at another member, once; at the same
 * one where there is no other and the connection ended.
 */
export class Pool {
  readonly #settings: UpstreamPool;
  readonly #options: PoolOptions;
  readonly #members: readonly Member[];
  readonly #trial: () => Promise<Trial>;
  readonly #closed = new AbortController();
  readonly #files: CredentialFiles;
  #cancelLook: (() => void) | undefined;
  #has_started = false;

  /** `trial` returns a health probe. */
  constructor(settings: UpstreamPool, trial: () => Promise<Trial>, options: PoolOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#trial = trial;
    this.#files = new CredentialFiles(settings.ca_file, options.onProblem);
    this.#members = settings.addresses.map((address) => ({
      address,
      breaker: new CircuitBreaker(),
      token_file: settings.members?.[address]?.token_file ?? settings.token_file,
      answer_ms: settings.members?.[address]?.answer_ms ?? settings.answer_ms ?? options.answer_ms,
      weight: settings.members?.[address]?.weight ?? UPSTREAM_WEIGHT,
      credentials: NO_CREDENTIALS,
      behind: 0,
      outstanding_tokens: 0,
      is_draining: settings.draining.includes(address),
      resting_until_ms: NO_REST_MS,
      is_loading: false,
      limit_reported_at_ms: Number.NEGATIVE_INFINITY,
      trial: null,
      has_failed_trial: false,
      checked_at_ms: Number.NEGATIVE_INFINITY,
      facts: null,
      requests: 0,
      failures: 0,
      failure: null,
    }));
  }

  /** Returns the most outstanding tokens of all members that can get calls now. */
  get capacity_tokens(): number {
    const usable = this.#members.filter((member) => this.#isUsable(member)).length;
    return Math.max(1, usable) * OUTSTANDING_TOKENS_MAX;
  }

  /**
   * Sets the draining members. A member whose drain ends gets a trial first, because it may have been
   * replaced.
   */
  setDraining(addresses: readonly string[]): void {
    for (const member of this.#members) {
      const was_draining = member.is_draining;
      member.is_draining = addresses.includes(member.address);
      if (!was_draining || member.is_draining) continue;
      member.breaker.distrust();
      if (this.#has_started) this.#tryOut(member);
    }
  }

  /** Returns the state of each member. */
  members(): readonly ObservedUpstream[] {
    return this.#members.map(({ address, breaker, outstanding_tokens, requests, failures }) => ({
      address,
      breaker: breaker.state,
      outstanding_tokens,
      requests,
      failures,
    }));
  }

  /**
   * Returns the pool's status. A busy member counts as ready, as an engine with a full queue does; one that
   * was never tried counts as loading. One that failed keeps its error while it is on trial again. The trial of a
   * server that hangs takes as long as the rest before it.
   */
  status(): LifecycleStatus {
    const members = this.#members.filter(({ is_draining }) => !is_draining);
    if (members.some(({ breaker }) => breaker.state === 'closed'))
      return { state: 'ready', load_error: undefined };
    if (!this.#has_started) return { state: 'cold', load_error: undefined };
    const on_trial = members.filter(({ trial }) => trial !== null);
    const is_first = on_trial.some(({ has_failed_trial }) => !has_failed_trial);
    if (is_first || members.some(({ resting_until_ms }) => resting_until_ms > NO_REST_MS)) {
      return { state: 'loading', load_error: undefined };
    }
    const failure = members.find((member) => member.failure !== null)?.failure;
    const load_error = failure?.message ?? 'No upstream gets requests.';
    return { state: on_trial.length > 0 ? 'loading' : 'cold', load_error };
  }

  /**
   * Resolves when a member can be asked; the first call starts the trials and checks. Rejects with the
   * signal's reason, with `ModelWarmingUp` where a member loads, with `QueueFull` where one is busy, and with
   * `ModelUnavailable`.
   */
  async ready(signal?: AbortSignal): Promise<void> {
    await this.#takeMember(0, new Set(), signal);
  }

  /**
   * Returns the checked answer of one member. `preferred`, which has read the beginning already, is asked if
   * it is usable. Rejects as `ready`, and with `UpstreamFailed`.
   */
  async ask<Answer>(
    call: PoolCall<Answer>,
    signal: AbortSignal,
    preferred?: AskedMember,
  ): Promise<Answered<Answer>> {
    const tried = new Set<Member>();
    for (let attempt = 1; ; attempt++) {
      const member = await this.#takeMember(call.tokens, tried, signal, preferred);
      member.requests += 1;
      // A trial that begins meanwhile forgets them, and may ask another process.
      const { facts } = member;
      try {
        const sending = {
          timeout_ms: member.answer_ms,
          needs_slot: true,
          needs_new_connection: attempt > 1,
        };
        const answer = await this.#askMember(member, call, sending, signal);
        member.breaker.succeeded();
        return { answer, member, facts };
      } catch (error) {
        // After one failed call, a request aborts its other calls with the same failure, which is not theirs.
        if (signal.aborted || !(error instanceof UpstreamFailed)) throw error;
        tried.add(member);
        const hasNext = () => this.#members.some((other) => !tried.has(other) && this.#isUsable(other));
        // Servers end idle connections, also in the moment of a call: that alone says nothing about the member.
        const is_again = error.failure === 'cut_off' && attempt < ATTEMPTS_MAX && !hasNext();
        if (is_again) {
          member.failures += 1;
          tried.delete(member);
        } else this.#noteFailure(member, error);
        if (!error.is_unanswered || attempt === ATTEMPTS_MAX || !hasNext()) throw error;
        if (error.is_fault) this.#options.onProblem(error);
      } finally {
        member.outstanding_tokens -= call.tokens;
      }
    }
  }

  /** Ends all calls, and makes no more. */
  close(): void {
    this.#cancelLook?.();
    this.#closed.abort(modelClosed());
  }

  #isUsable({ breaker, is_draining, resting_until_ms }: Member): boolean {
    return breaker.state === 'closed' && !is_draining && resting_until_ms <= this.#options.now_ms();
  }

  /**
   * Returns the least loaded untried member. The tokens count as its own at once, so that concurrent callers
   * see them. Waits for running trials, but only for one of each member: of two that hang in turns, one is
   * always on trial.
   */
  async #takeMember(
    tokens: number,
    tried: ReadonlySet<Member>,
    signal: AbortSignal | undefined,
    preferred?: AskedMember,
  ): Promise<Member> {
    this.#closed.signal.throwIfAborted();
    this.#start();
    const awaited = new Set(tried);
    for (;;) {
      signal?.throwIfAborted();
      const member =
        this.#members.find((other) => other === preferred && !tried.has(other) && this.#isUsable(other)) ??
        this.#leastLoaded(tokens, tried);
      if (member !== undefined) {
        member.outstanding_tokens += tokens;
        return member;
      }
      const trials: Promise<boolean>[] = [];
      for (const other of this.#members) {
        if (other.is_draining || awaited.has(other)) continue;
        // A trial may be due since the last look. A client that returns at the promised time comes before the
        // next look.
        this.#tryOut(other);
        if (other.trial === null) continue;
        awaited.add(other);
        trials.push(other.trial);
      }
      if (trials.length === 0) throw this.#whyNone();
      await unlessAborted(anyTrue(trials), signal);
    }
  }

  /**
   * Returns the member with the fewest outstanding tokens for its weight; equal ones take turns by weight, if
   * there are tokens.
   */
  #leastLoaded(tokens: number, tried: ReadonlySet<Member>): Member | undefined {
    const usable = this.#members.filter((member) => !tried.has(member) && this.#isUsable(member));
    const least = Math.min(...usable.map(load));
    const equals = usable.filter((member) => load(member) === least);
    if (tokens === 0 || equals.length < 2) return equals[0];
    for (const member of equals) member.behind += member.weight;
    const next = equals.reduce((first, other) => (other.behind > first.behind ? other : first));
    next.behind -= equals.reduce((sum, { weight }) => sum + weight, 0);
    return next;
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

  async #askMember<Answer>(
    member: Member,
    { path, body, read }: PoolCall<Answer>,
    sending: Pick<HttpCall, 'timeout_ms' | 'needs_slot' | 'needs_new_connection'>,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { address, credentials } = member;
    try {
      return read(
        await callUpstream({
          address,
          path,
          body,
          credentials,
          ...sending,
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
    if (error.failure === 'busy') this.#rest(member, error);
    // It has restarted, and may have another model than the tried one.
    if (error.failure === 'loading') {
      member.breaker.distrust(this.#options.now_ms() + this.#rest(member, error));
    }
    if (!error.is_fault) return;
    member.failures += 1;
    member.failure = error;
    member.breaker.failed();
    this.#tryOut(member);
  }

  /**
   * Gives the member the rest that it asks for, and returns its length. Reports a limit that may be reached, at
   * most once an hour for each member.
   */
  #rest(member: Member, error: UpstreamFailed): number {
    const { failure, retry_after_s } = error;
    const now_ms = this.#options.now_ms();
    // Load goes away by itself; a limit may stay until the operator raises it.
    if (error.is_limited && now_ms - member.limit_reported_at_ms >= LIMIT_REPORT_INTERVAL_MS) {
      member.limit_reported_at_ms = now_ms;
      this.#options.onProblem(error);
    }
    member.is_loading = failure === 'loading';
    const rest_ms = (retry_after_s ?? (member.is_loading ? LOADING_REST_S : BUSY_REST_S)) * 1_000;
    member.resting_until_ms = now_ms + rest_ms;
    return rest_ms;
  }

  #start(): void {
    if (this.#has_started) return;
    this.#has_started = true;
    this.#lookAtAll();
  }

  #lookAtAll(): void {
    for (const member of this.#members) {
      if (member.is_draining) continue;
      this.#tryOut(member);
      if (this.#isUsable(member)) void this.#check(member);
    }
    this.#cancelLook = this.#options.schedule(() => this.#lookAtAll(), LOOK_MS);
  }

  /** Sends the member a health probe if its breaker says that one is due and it is not draining. */
  #tryOut(member: Member): void {
    if (this.#closed.signal.aborted || member.is_draining) return;
    if (!member.breaker.beginTrial(this.#options.now_ms())) return;
    member.trial = this.#answersTrial(member).finally(() => {
      member.trial = null;
    });
  }

  async #answersTrial(member: Member): Promise<boolean> {
    const { breaker } = member;
    try {
      const trial = await this.#trial();
      member.credentials = await this.#files.read(member.token_file);
      await this.#sendHealthProbe(member, trial);
    } catch (error) {
      const is_told = error instanceof UpstreamFailed && !error.is_fault && error.failure !== 'rejected';
      const is_untried = error instanceof ModelUnavailable;
      const rest_ms = is_told ? this.#rest(member, error) : is_untried ? UNTRIED_REST_MS : undefined;
      breaker.trialFailed(this.#options.now_ms(), rest_ms);
      if (is_told || this.#closed.signal.aborted) return false;
      member.is_loading = false;
      member.has_failed_trial = true;
      // A failed member has no valid rest, whatever it asked for before.
      member.resting_until_ms = NO_REST_MS;
      if (is_untried) {
        // No trial could be made, which is not the member's fault; the cause is already reported.
        member.failure = new UpstreamFailed('refused', error.message);
        return false;
      }
      member.failures += 1;
      member.failure = error instanceof UpstreamFailed ? error : null;
      this.#options.onProblem(error);
      return false;
    }
    breaker.trialSucceeded();
    member.has_failed_trial = false;
    member.failure = null;
    member.is_loading = false;
    member.resting_until_ms = NO_REST_MS;
    member.checked_at_ms = this.#options.now_ms();
    return true;
  }

  async #sendHealthProbe(member: Member, trial: Trial): Promise<void> {
    const { address } = member;
    const { call, context_tokens } = trial;
    // The process may not be the one that gave those facts.
    member.facts = null;
    try {
      // Calls that are never answered must not keep the probe away.
      const sending = { timeout_ms: this.#options.trial_ms, needs_slot: false, needs_new_connection: false };
      await this.#askMember(member, call, sending, this.#closed.signal);
    } catch (error) {
      throw error instanceof UpstreamFailed ? explained(error, trial, member) : error;
    }
    // An unreadable list is no reason to refuse a server that answers: the checks go on reading it.
    const facts = await this.#listModels(member).catch(() => null);
    member.facts = facts;
    const most = facts?.context_tokens ?? null;
    if (most === null || most >= context_tokens) return;
    throw new UpstreamFailed(
      'refused',
      `${address} reads at most ${most} tokens, and a plan with its answer has up to ${context_tokens}: start it with more, or add the model with --context ${most - 1}.`,
    );
  }

  /**
   * Reads the member's list of models at intervals, so that a dead member is found before a request is. A
   * changed list means that it was replaced, so it gets a trial as a new one.
   */
  async #check(member: Member): Promise<void> {
    const now_ms = this.#options.now_ms();
    if (now_ms - member.checked_at_ms < CHECK_INTERVAL_MS) return;
    member.checked_at_ms = now_ms;
    try {
      member.credentials = await this.#files.read(member.token_file);
      const facts = await this.#listModels(member);
      const { facts: before, breaker } = member;
      member.facts = facts;
      if (before === null || isDeepStrictEqual(before, facts)) return;
      breaker.distrust();
      this.#tryOut(member);
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      if (error instanceof UpstreamFailed) this.#noteFailure(member, error);
      else this.#options.onProblem(error);
    }
  }

  /** Reads the list of models. Rejects as `callUpstream`; a server without such a list is healthy. */
  async #listModels({ address, credentials }: Member): Promise<ServerFacts> {
    const { signal } = this.#closed;
    try {
      const { text } = await callUpstream({
        address,
        path: MODELS_PATH,
        body: null,
        credentials,
        needs_slot: false,
        needs_new_connection: false,
        timeout_ms: CHECK_TIMEOUT_MS,
        signal,
      });
      return serverFacts(text, this.#settings.model);
    } catch (error) {
      if (error instanceof UpstreamFailed && NO_LIST.includes(error.status)) return NO_FACTS;
      throw error;
    }
  }
}

function load({ outstanding_tokens, weight }: Member): number {
  return outstanding_tokens / weight;
}

/** Returns the failure of a trial, with the meaning of its status for the person who adds the server. */
function explained(
  error: UpstreamFailed,
  { call, needs }: Trial,
  { token_file }: Pick<Member, 'token_file'>,
): UpstreamFailed {
  const { failure, message, status } = error;
  if (failure === 'rejected')
    return needs === '' ? error : new UpstreamFailed('rejected', `${message} ${needs}`);
  // vLLM answers 404 for both, and 501 where it cannot ask its model that way.
  const meaning =
    status === 404
      ? `It has no ${call.path}, or no model of the name that it is asked for: see --upstream-model.`
      : status === 501
        ? `It does not answer ${call.path} for its model.`
        : status === 402
          ? 'The account that it is asked with has no credit there.'
          : error.is_token_refused
            ? tokenAdvice(token_file)
            : null;
  return meaning === null ? error : new UpstreamFailed('refused', `${message} ${meaning}`, null, status);
}

function tokenAdvice(token_file: string | null): string {
  return token_file === null
    ? 'It asks for a token: give the file with it by --token-file, or for this server alone by ",token-file=PATH" behind its address.'
    : `It does not take the token in ${token_file}: see --token-file, or ",token-file=PATH" behind the address of one server.`;
}

/** Resolves when one resolves with true, or all with false. */
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
