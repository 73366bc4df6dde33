import {
  type DecisionInput,
  type DecisionPlan,
  type EvaluateOptions,
  PlanRejected,
  type TakeTurn,
} from '../../native/engine.ts';
import type { UpstreamModelEntry } from '../catalog/catalog.ts';
import { CLIENT_TIMEOUT_MS } from '../client-timeout.ts';
import { writeJson } from '../json/write-json.ts';
import { QueueFull } from '../limits/model-turns.ts';
import { type LifecycleStatus, ModelWarmingUp, modelClosed, scheduleByTimer } from '../models/lifecycle.ts';
import type { AnsweringModel, ModelAnswer, UpstreamLife } from '../models/model-life.ts';
import { smallInput } from '../models/small-question.ts';
import type { Mode } from '../questions/question.ts';
import { estimateTokens, type TokenEstimate } from './estimate.ts';
import { Pool, type PoolCall, type PoolOptions } from './pool.ts';
import { combinedScores, type Reading, readingsOf } from './readings.ts';
import { readAnswer, requestBody, type SystemOneAnswer } from './systemone.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** Half of what a client waits: a second member can still answer in time. */
const ANSWER_MS = CLIENT_TIMEOUT_MS / 2;
const TRIAL_MS = 30_000;

/** The bounds of a pool have usual values. */
export type UpstreamOptions = Pick<PoolOptions, 'now_ms' | 'onProblem'> &
  Partial<Pick<PoolOptions, 'schedule' | 'answer_ms' | 'trial_ms'>>;

const atOnce: TakeTurn = (_, work) => work();

/** A model of the catalog that a pool of upstreams answers for. */
export class UpstreamModel implements UpstreamLife {
  readonly #row: UpstreamModelEntry;
  readonly #onProblem: UpstreamOptions['onProblem'];
  readonly #pool: Pool;
  readonly #closed = new AbortController();

  /** Opens nothing before the first use. */
  constructor(row: UpstreamModelEntry, options: UpstreamOptions) {
    this.#row = row;
    this.#onProblem = options.onProblem;
    const { state, questions } = smallInput('fast');
    const trial = this.#call(writeJson(state), { questions, is_billed: true });
    this.#pool = new Pool(row.upstreams, trial.call, {
      schedule: scheduleByTimer,
      answer_ms: ANSWER_MS,
      trial_ms: TRIAL_MS,
      ...options,
    });
  }

  /** The most that the request is billed for. The servers make their own plans, so there are none. */
  plan(input: DecisionInput): Promise<DecisionPlan> {
    const state_bytes = Buffer.byteLength(writeJson(input.state));
    const input_tokens = readingsOf(input)
      .filter(({ is_billed }) => is_billed)
      .reduce((sum, { questions }) => sum + this.#estimate(state_bytes, questions).most, 0);
    return Promise.resolve({ input, plans: [], input_tokens });
  }

  async use<Result>(
    _mode: Mode,
    work: (model: AnsweringModel, signal: AbortSignal) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    await this.#pool.ready(signal);
    const closed = this.#closed.signal;
    const given_up = signal === undefined ? closed : AbortSignal.any([closed, signal]);
    return await work({ answer: (plan, options) => this.#answer(plan, options) }, given_up);
  }

  status(): LifecycleStatus {
    return this.#pool.status();
  }

  counts(): undefined {
    return undefined;
  }

  load(): Promise<void> {
    return this.#pool.ready();
  }

  setDraining(addresses: readonly string[]): void {
    this.#pool.setDraining(addresses);
  }

  close(): Promise<void> {
    this.#closed.abort(modelClosed());
    this.#pool.close();
    return Promise.resolve();
  }

  async #answer(
    { input }: DecisionPlan,
    { signal: client, takeTurn = atOnce }: EvaluateOptions,
  ): Promise<ModelAnswer> {
    // A request that has lost one call has no answer: its other calls are given up.
    const failure = new AbortController();
    const signal = AbortSignal.any([failure.signal, ...(client === undefined ? [] : [client])]);
    const state = writeJson(input.state);
    const readings = readingsOf(input);
    const asked = readings.map((reading) => {
      const { call, estimate } = this.#call(state, reading);
      const turn = {
        tokens: call.tokens,
        decoder: 'small',
        decoder_tokens: this.#pool.capacity_tokens,
      } as const;
      const answered = takeTurn(turn, () => this.#pool.ask(call, signal), signal);
      return answered.then(
        (answer) => ({ answer, input_tokens: reading.is_billed ? this.#billed(answer, estimate) : 0 }),
        (error: unknown) => {
          failure.abort(error);
          throw error;
        },
      );
    });
    try {
      const answered = await Promise.all(asked);
      return {
        scores: combinedScores(
          input,
          answered.map(({ answer }) => answer.scores),
        ),
        input_tokens: answered.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
      };
    } catch (error) {
      await Promise.allSettled(asked);
      throw told(error);
    }
  }

  #call(
    state: string,
    { questions }: Reading,
  ): { readonly call: PoolCall; readonly estimate: TokenEstimate } {
    const estimate = this.#estimate(Buffer.byteLength(state), questions);
    const { model } = this.#row.upstreams;
    return {
      estimate,
      call: {
        tokens: estimate.likely,
        body: () => requestBody(state, questions, model),
        read: (text) => readAnswer(text, questions),
      },
    };
  }

  #estimate(state_bytes: number, questions: DecisionInput['questions']): TokenEstimate {
    return estimateTokens(state_bytes, questions, this.#row.context_tokens);
  }

  /** Never more than was held. */
  #billed({ input_tokens }: SystemOneAnswer, { most, likely }: TokenEstimate): number {
    if (input_tokens === null) return likely;
    if (input_tokens <= most) return input_tokens;
    const message = `An upstream read ${input_tokens} tokens where at most ${most} were held: the rest is not charged.`;
    this.#onProblem(new UpstreamFailed('bad_answer', message));
    return most;
  }
}

/** The failure as a model has it: what the client is told depends on it. */
function told(error: unknown): unknown {
  if (!(error instanceof UpstreamFailed)) return error;
  const { failure, retry_after_s } = error;
  switch (failure) {
    case 'rejected':
      return new PlanRejected(
        'The model does not take this request: it may be too long, or have too many options.',
        null,
      );
    case 'busy':
      return new QueueFull(retry_after_s ?? 1);
    case 'loading':
      return new ModelWarmingUp(retry_after_s ?? 1);
    default:
      return error;
  }
}
