import { EvaluationTimedOut, PlanRejected } from '../../native/engine.ts';
import { QueueFull } from '../limits/model-turns.ts';
import { ModelWarmingUp } from '../models/lifecycle.ts';
import { ServiceStopped } from './cut-requests.ts';
import { TurnTimedOut } from './model-deadline.ts';
import { DecisionRefusal } from './refusal.ts';
import type { DecisionRequest } from './request.ts';

/**
 * Returns the client's refusal when step 4 fails. It never has the error's own text, which may quote the
 * record.
 */
export function modelRefusal(error: unknown, request: DecisionRequest): DecisionRefusal {
  if (error instanceof PlanRejected) {
    const asked = error.question === null ? undefined : request.questions[error.question];
    return new DecisionRefusal('invalid_request', {
      message: error.message,
      ...(asked === undefined ? {} : { param: `questions.${asked.id}` }),
    });
  }
  if (error instanceof ModelWarmingUp) {
    return new DecisionRefusal('model_warming_up', { retry_after_s: error.retry_after_s });
  }
  if (error instanceof QueueFull || error instanceof TurnTimedOut) {
    return new DecisionRefusal('model_unavailable', {
      message: error.message,
      retry_after_s: error.retry_after_s,
    });
  }
  if (error instanceof EvaluationTimedOut || error instanceof ServiceStopped) {
    return new DecisionRefusal('model_unavailable', { message: error.message });
  }
  return new DecisionRefusal('model_unavailable');
}

/**
 * Returns true if a failure of step 4 is our own fault: neither the client's, nor overload, which has codes
 * of its own.
 */
export function isOwnFault(error: unknown): boolean {
  return !isLoad(error) && !(error instanceof PlanRejected);
}

/** Returns true if a failure of step 4 goes away by itself: too much waits, or the model is being loaded. */
export function isLoad(error: unknown): boolean {
  return error instanceof ModelWarmingUp || error instanceof QueueFull || error instanceof TurnTimedOut;
}
