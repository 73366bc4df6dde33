import type { DecisionInput, DecisionPlan, TakeTurn } from '../../native/engine.ts';
import type { Clock } from '../clock.ts';
import { JsonObject } from '../json/json-value.ts';
import type { AnsweringModel } from '../models/model-life.ts';
import { answerFrom, type WrittenAnswer } from '../questions/answer.ts';
import type { DecisionRequest } from './request.ts';

/** What the model gave for a request, before it is paid for. */
export interface Decided {
  /** One answer a question, under the question's id. */
  readonly answers: JsonObject<WrittenAnswer>;
  /** Everything that was read: what is billed. */
  readonly input_tokens: number;
  /** Model time, the wait for the model's turn included. */
  readonly latency_ms: number;
}

/** A duration in milliseconds, to the microsecond: usage rows and responses say the same of one request. */
export function roundedLatency(duration_ms: number): number {
  return Math.round(duration_ms * 1_000) / 1_000;
}

/** The request as the engine takes it. */
export function engineInput(request: DecisionRequest): DecisionInput {
  return {
    state: request.state,
    questions: request.questions.map((asked) => asked.question),
    mode: request.mode,
  };
}

/** Asks the model a planned request and turns the scores into answers. Rejects as `AnsweringModel.answer` does. */
export async function answerRequest(
  model: AnsweringModel,
  request: DecisionRequest,
  plan: DecisionPlan,
  options: {
    readonly scope: string;
    readonly signal: AbortSignal;
    /** When each plan is given to the model; at once when undefined. */
    readonly takeTurn?: TakeTurn;
    readonly clock: Clock;
  },
): Promise<Decided> {
  const started_ms = options.clock.monotonic_ms();
  const { scores, input_tokens } = await model.answer(plan, options);
  const latency_ms = roundedLatency(options.clock.monotonic_ms() - started_ms);
  const answers = new JsonObject(
    request.questions.map(({ id }) => id),
    request.questions.map((asked, index) => answerFrom(asked, scores[index] ?? [])),
  );
  return { answers, input_tokens, latency_ms };
}
