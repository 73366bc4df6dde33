import { EngineOverloaded } from '../../native/evaluator.ts';
import { ModelWarmingUp } from '../../native/lifecycle.ts';
import { PlanRejected } from '../../native/plan/profile.ts';
import { Refusal } from '../errors.ts';
import type { DecisionRequest } from './request.ts';

/** A full queue empties by one request in about this time. */
const OVERLOADED_RETRY_AFTER_S = 1;

/** What the client is told when step 4 fails: never the error's own text, which may quote what it failed on. */
export function modelRefusal(error: unknown, request: DecisionRequest): Refusal {
  if (error instanceof PlanRejected) {
    const asked = error.question === null ? undefined : request.questions[error.question];
    return new Refusal('invalid_request', {
      message: error.message,
      ...(asked === undefined ? {} : { param: `questions.${asked.id}` }),
    });
  }
  if (error instanceof ModelWarmingUp) {
    return new Refusal('model_warming_up', { retry_after_s: error.retry_after_s });
  }
  if (error instanceof EngineOverloaded) {
    return new Refusal('model_unavailable', {
      message: 'Too many requests are waiting for the model.',
      retry_after_s: OVERLOADED_RETRY_AFTER_S,
    });
  }
  return new Refusal('model_unavailable');
}
