import {
  type DecisionInput,
  type DecisionPlan,
  type PlanLogits,
  planTokens,
  type RequestPlan,
  type ScoringPlanner,
  SetupError,
} from '../../native/engine.ts';
import { healthProbeInput } from '../served-models/health-probe.ts';
import { ModelUnavailable, ModelWarmingUp, modelClosed } from '../served-models/model-answerer.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import { unlessAborted } from '../time/pause.ts';
import type { Schedule } from '../time/schedule.ts';
import type { Asking, PoolAccess, Source, SourcedAnswer } from './asking.ts';
import type { AskedMember, PoolCall, Trial } from './pool.ts';
import type { TokenAnswer, TokenProtocol, TokenQuestion, WantedToken } from './token-protocol.ts';

/** The scope of a trial, which is no organization's. */
const TRIAL_SCOPE = '';
/** The delay after which a failed read of a vocabulary is retried, because it may be large. */
const RETRY_MS = 10_000;
/** The `Retry-After` of a request when reading the vocabulary takes too long. */
const OPENING_RETRY_S = 10;
/** One position more than a plan has, for the answer. */
const ANSWER_TOKENS = 1;

export interface TokenAskingOptions {
  readonly protocol: TokenProtocol;
  /** The servers' name of the model; null where requests name none. */
  readonly model: string | null;
  readonly profile: string;
  /** Reads the vocabulary. */
  readonly openPlanner: () => Promise<ScoringPlanner>;
  readonly now_ms: () => number;
  readonly schedule: Schedule;
  readonly onProblem: (error: unknown) => void;
}

/** One call for a read of a plan: the tokens before it, and all or some of the tokens wanted there. */
interface ReadCall {
  readonly branch: number;
  readonly read: number;
  /** The read's tokens in this call; the first of the read is always among them. */
  readonly wanted: readonly number[];
  readonly prompt: () => readonly number[];
  /** The tokens of the prompt that the server has not read for the previous call. */
  readonly new_tokens: number;
}

/**
 * The protocols `llama-server` and `openai`: plans are made here, and the servers return probabilities of
 * tokens.
 */
export class TokenAsking implements Asking {
  #planner: Promise<ScoringPlanner> | undefined;
  #open_planner: ScoringPlanner | undefined;
  #is_closed = false;
  #failed: { readonly at_ms: number; readonly error: ModelUnavailable } | undefined;

  constructor(private readonly options: TokenAskingOptions) {}

  get profile(): string {
    return this.options.profile;
  }

  async readyToPlan(signal?: AbortSignal): Promise<void> {
    await unlessAborted(this.#openedInTime(), signal);
  }

  async plan(input: DecisionInput, signal?: AbortSignal): Promise<DecisionPlan> {
    return await (await unlessAborted(this.#openedInTime(), signal)).plan(input);
  }

  async answer(plan: DecisionPlan, pool: PoolAccess): Promise<SourcedAnswer> {
    const planner = await this.#opened();
    const answered = await Promise.all(
      plan.plans.map((part) => pool.schedule(planTokens(part), () => this.#answerPart(part, planner, pool))),
    );
    return {
      scores: planner.scores(
        plan,
        answered.map(({ logits }) => logits),
      ),
      input_tokens: plan.input_tokens,
      sources: answered.flatMap(({ sources }) => sources),
    };
  }

  /**
   * Returns the health probe. It also asks for its own words, which are unlikely to come next and show if the
   * vocabulary fits.
   */
  async trial(): Promise<Trial> {
    const planner = await this.#opened();
    const { plans } = await planner.plan(healthProbeInput('fast'));
    const [part] = plans;
    const [call] = part === undefined ? [] : callsOf(part, Number.MAX_SAFE_INTEGER);
    if (call === undefined) throw new Error('The health probe has no plan.');
    const { protocol, model } = this.options;
    const prompt = call.prompt();
    const labels = call.wanted.map((id) => ({ id, word: planner.wordOf(id) }));
    const by_word = labels.every(({ word }) => word !== null);
    const words = new Map(labels.map((label) => [label.word ?? label.id, label]));
    for (const id of prompt) {
      const word = planner.wordOf(id);
      if (word !== null && !words.has(word)) words.set(word, { id, word });
    }
    const wanted = [...words.values()].slice(0, protocol.wanted_max);
    const question = { prompt, wanted, model, scope: TRIAL_SCOPE, by_word };
    return {
      call: this.#poolCall(prompt.length, () => question),
      needs: protocol.needs,
      context_tokens: planner.context_tokens + ANSWER_TOKENS,
    };
  }

  /** Closes the vocabulary; one that is still being read is closed when it is open. */
  async close(): Promise<void> {
    this.#is_closed = true;
    await this.#open_planner?.close();
  }

  /** Does as `#opened`. Rejects with `ModelWarmingUp` after a client's timeout. */
  async #openedInTime(): Promise<ScoringPlanner> {
    const late = Promise.withResolvers<never>();
    const cancel = this.options.schedule(
      () => late.reject(new ModelWarmingUp(OPENING_RETRY_S)),
      CLIENT_TIMEOUT_MS,
    );
    try {
      return await Promise.race([this.#opened(), late.promise]);
    } finally {
      cancel();
    }
  }

  /** Opens the planner. Rejects with `ModelUnavailable`, which is reported after each failed read. */
  async #opened(): Promise<ScoringPlanner> {
    if (this.#is_closed) throw modelClosed();
    const { now_ms, openPlanner, onProblem } = this.options;
    const failed = this.#failed;
    if (failed !== undefined && now_ms() - failed.at_ms < RETRY_MS) throw failed.error;
    this.#failed = undefined;
    this.#planner ??= openPlanner().then(
      async (planner) => {
        if (this.#is_closed) {
          await planner.close();
          throw modelClosed();
        }
        this.#open_planner = planner;
        return planner;
      },
      (error: unknown) => {
        if (this.#is_closed) throw modelClosed();
        this.#planner = undefined;
        const message = error instanceof SetupError ? error.message : 'The vocabulary cannot be read.';
        const unavailable = new ModelUnavailable(message, { cause: error });
        this.#failed = { at_ms: now_ms(), error: unavailable };
        onProblem(unavailable);
        throw unavailable;
      },
    );
    return await this.#planner;
  }

  /**
   * Answers one plan. The first call reads the prefix; the others go to the same member, which need not read
   * it again.
   */
  async #answerPart(
    part: RequestPlan,
    planner: ScoringPlanner,
    pool: PoolAccess,
  ): Promise<{ readonly logits: PlanLogits; readonly sources: readonly Source[] }> {
    const { protocol } = this.options;
    const calls = callsOf(part, protocol.wanted_max);
    let member: AskedMember | undefined;
    const ask = async (call: ReadCall) => {
      const asked = this.#poolCall(call.new_tokens, () => this.#question(call, planner, pool.scope));
      const answered = await pool.ask(asked, member);
      member = answered.member;
      const { logits, fingerprint } = answered.answer;
      return { call, logits, source: { facts: answered.facts, of_answer: fingerprint } };
    };
    const [first, ...others] = calls;
    const answered = first === undefined ? [] : [await ask(first)];
    if (protocol.is_parallel) answered.push(...(await Promise.all(others.map(ask))));
    else for (const call of others) answered.push(await ask(call));
    return { logits: logitsOf(part, answered), sources: answered.map(({ source }) => source) };
  }

  #question(call: ReadCall, planner: ScoringPlanner, scope: string): TokenQuestion {
    const wanted = call.wanted.map((id): WantedToken => ({ id, word: planner.wordOf(id) }));
    return { prompt: call.prompt(), wanted, model: this.options.model, scope, by_word: false };
  }

  #poolCall(tokens: number, makeQuestion: () => TokenQuestion): PoolCall<TokenAnswer> {
    const { protocol } = this.options;
    return {
      tokens,
      path: protocol.path,
      body: () => protocol.body(makeQuestion()),
      read: ({ text }) => protocol.read(text, makeQuestion()),
    };
  }
}

/**
 * Returns the calls for all reads of a plan. If a read wants more tokens than a call allows, each of its
 * calls includes the read's first token, by which they are compared.
 */
function callsOf({ prefix, branches }: RequestPlan, wanted_max: number): readonly ReadCall[] {
  let is_first = true;
  return branches.flatMap(({ tokens, reads }, branch) => {
    let read_before = 0;
    return reads.flatMap(({ index, tokens: labels }, read) => {
      const [anchor, ...others] = labels;
      if (anchor === undefined) return [];
      const size = wanted_max - 1;
      const groups = Array.from({ length: Math.max(1, Math.ceil(others.length / size)) }, (_, group) =>
        others.slice(group * size, (group + 1) * size),
      );
      return groups.map((group): ReadCall => {
        const new_tokens = Math.max(1, index + 1 - read_before) + (is_first ? prefix.length : 0);
        is_first = false;
        read_before = index + 1;
        return {
          branch,
          read,
          wanted: [anchor, ...group],
          prompt: () => [...prefix, ...tokens.slice(0, index + 1)],
          new_tokens,
        };
      });
    });
  });
}

/** Returns the logits of a plan in its own order, each less that of its read's first token. */
function logitsOf(
  { branches }: RequestPlan,
  answered: readonly { readonly call: ReadCall; readonly logits: readonly number[] }[],
): PlanLogits {
  return branches.map(({ reads }, branch) =>
    reads.map((_, read) => {
      const parts = answered.filter(({ call }) => call.branch === branch && call.read === read);
      const others = parts.flatMap(({ logits: [anchor = Number.NaN, ...rest] }) =>
        rest.map((logit) => logit - anchor),
      );
      return [0, ...others];
    }),
  );
}
