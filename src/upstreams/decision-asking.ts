import type { DecisionInput, DecisionPlan } from '../../native/engine.ts';
import { LEFT_OUT_HEADER } from '../contract/left-out-header.ts';
import { writeJson } from '../json/write-json.ts';
import { healthProbeInput } from '../served-models/health-probe.ts';
import type { Asking, PoolAccess, SourcedAnswer } from './asking.ts';
import { estimateTokens, type TokenEstimate } from './estimate.ts';
import type { PoolCall, Trial } from './pool.ts';
import { combinedScores, type Reading, readingsOf } from './readings.ts';
import { factsNamed } from './server-facts.ts';
import { DECISION_PATH, readAnswer, readLeftOut, requestBody, type SystemOneAnswer } from './systemone.ts';
import { UpstreamFailed } from './upstream-failed.ts';

/** The facts about a model that its calls need. */
export interface DecisionAskingOptions {
  /** The servers' name of the model; null where requests name none. */
  readonly model: string | null;
  readonly context_tokens: number;
  readonly onProblem: (error: unknown) => void;
}

/** An answer with the tokens of the record that the server says it did not read. */
type DecidedAnswer = SystemOneAnswer & { readonly record_tokens_left_out: number };

/** The protocol `systemone`: the servers decide, and make their own plans. */
export class DecisionAsking implements Asking {
  readonly profile = 'systemone';

  constructor(private readonly options: DecisionAskingOptions) {}

  /** Resolves at once, because an estimate needs no vocabulary. */
  readyToPlan(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Returns the most tokens that the request can be billed. The servers make their own plans, so there are
   * none.
   */
  plan(input: DecisionInput): Promise<DecisionPlan> {
    const state_bytes = Buffer.byteLength(writeJson(input.state));
    const input_tokens = readingsOf(input)
      .filter(({ is_billed }) => is_billed)
      .reduce((sum, { questions }) => sum + this.#estimate(state_bytes, questions).most, 0);
    return Promise.resolve({ input, plans: [], input_tokens, record_tokens_left_out: null });
  }

  async answer({ input }: DecisionPlan, pool: PoolAccess): Promise<SourcedAnswer> {
    const state = writeJson(input.state);
    const answered = await Promise.all(
      readingsOf(input).map(async (reading) => {
        const { call, estimate } = this.#call(state, reading);
        const { answer, facts } = await pool.schedule(call.tokens, () => pool.ask(call));
        return { answer, facts, input_tokens: reading.is_billed ? this.#billed(answer, estimate) : 0 };
      }),
    );
    return {
      scores: combinedScores(
        input,
        answered.map(({ answer }) => answer.scores),
      ),
      input_tokens: answered.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
      record_tokens_left_out: Math.max(...answered.map(({ answer }) => answer.record_tokens_left_out)),
      sources: answered.map(({ answer, facts }) => ({
        facts: facts === null ? null : factsNamed(facts, answer.model),
        of_answer: '',
      })),
    };
  }

  trial(): Promise<Trial> {
    const { state, questions } = healthProbeInput('fast');
    const { call } = this.#call(writeJson(state), { questions, is_billed: true });
    return Promise.resolve({ call, needs: '', context_tokens: 0 });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #call(
    state: string,
    { questions }: Reading,
  ): { readonly call: PoolCall<DecidedAnswer>; readonly estimate: TokenEstimate } {
    const estimate = this.#estimate(Buffer.byteLength(state), questions);
    return {
      estimate,
      call: {
        tokens: estimate.likely,
        path: DECISION_PATH,
        body: () => requestBody(state, questions, this.options.model),
        read: ({ text, headers }) => ({
          ...readAnswer(text, questions),
          record_tokens_left_out: readLeftOut(headers.get(LEFT_OUT_HEADER)),
        }),
      },
    };
  }

  #estimate(state_bytes: number, questions: DecisionInput['questions']): TokenEstimate {
    return estimateTokens(state_bytes, questions, this.options.context_tokens);
  }

  /** Returns the billed tokens, at most those held. */
  #billed({ input_tokens }: SystemOneAnswer, { most, likely }: TokenEstimate): number {
    if (input_tokens === null) return likely;
    if (input_tokens <= most) return input_tokens;
    const message = `An upstream read ${input_tokens} tokens where at most ${most} were held: the rest is not charged.`;
    this.options.onProblem(new UpstreamFailed('bad_answer', message));
    return most;
  }
}
