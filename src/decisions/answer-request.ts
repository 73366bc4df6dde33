import type { DecisionInput, DecisionPlan, TakeTurn } from '../../native/engine.ts';
import type { Clock } from '../clock.ts';
import { JsonObject } from '../json/json-value.ts';
import type { AnsweringModel } from '../models/model-life.ts';
import { answerFrom, type WrittenAnswer } from '../questions/answer.ts';
import type { DecisionRequest } from './request.ts';

/** The model's answers to a request, before the charge. */
export interface Decided {
  /** One answer for each question, under the question's id. */
  readonly answers: JsonObject<WrittenAnswer>;
  /** The tokens that were read and are billed. */
  readonly input_tokens: number;
  /** The time at the model, including the wait in its queue. */
  readonly latency_ms: number;
}

/** Returns a duration in milliseconds, rounded to the microsecond, so that usage rows and responses agree. */
export function roundedLatency(duration_ms: number): number {
  return Math.round(duration_ms * 1_000) / 1_000;
}

/** Returns the request in the engine's form. */
export function engineInput(request: DecisionRequest): DecisionInput {
  return {
    state: request.state,
    questions: request.questions.map((asked) => asked.question),
    mode: request.mode,
  };
}

/**
 * Sends the model a planned request and turns the scores into answers. Rejects as `AnsweringModel.answer`
 * does.
 */
export async function answerRequest(
  model: AnsweringModel,
  request: DecisionRequest,
  plan: DecisionPlan,
  options: {
    readonly scope: string;
    readonly signal: AbortSignal;
    /** Schedules each plan; at once when undefined. */
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
