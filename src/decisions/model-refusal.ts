import { EvaluationTimedOut, PlanRejected } from '../../native/engine.ts';
import { ServiceStopped } from '../errors/abort-reasons.ts';
import { QueueFull, QueueTimedOut } from '../scheduling/model-scheduler.ts';
import { ModelWarmingUp } from '../served-models/model-answerer.ts';
import { ModelRemoved } from '../served-models/tunings.ts';
import type { AskedCall, CheckedRequest } from './call.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';
import type { DecisionRequest } from './request.ts';

/**
 * Returns the client's refusal when the model or its planner fails. It never has the error's own text, which may
 * quote the record.
 */
function modelRefusal(error: unknown, request: DecisionRequest): DecisionRefusal {
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
  if (error instanceof ModelRemoved) return new DecisionRefusal('model_not_found', { param: 'model' });
  if (error instanceof QueueFull || error instanceof QueueTimedOut) {
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
 * Returns true if such a failure is our own fault: neither the client's, nor overload, which has codes
 * of its own.
 */
function isOwnFault(error: unknown): boolean {
  return !isLoad(error) && !(error instanceof PlanRejected) && !(error instanceof ModelRemoved);
}

/** Returns true if such a failure goes away by itself: too much waits, or the model is being loaded. */
export function isLoad(error: unknown): boolean {
  return error instanceof ModelWarmingUp || error instanceof QueueFull || error instanceof QueueTimedOut;
}

/** A checked request of a call. */
export type AskedRequest = CheckedRequest & { readonly call: AskedCall };

/**
 * Returns the refusal for a failure of the model or its planner, and reports it where it is our own fault.
 */
export function refusedByModel(
  { problems, cut_requests }: Pick<DecisionServices, 'problems' | 'cut_requests'>,
  { call: { request_id, endpoint, signal }, request, model }: AskedRequest,
  step: 'plan' | 'model',
  error: unknown,
): DecisionRefusal {
  const refusal = modelRefusal(error, request);
  if (error instanceof ServiceStopped) cut_requests.add(endpoint, request.mode);
  // A request aborted by its client or by a stop is no failure.
  const is_aborted = signal.aborted && error === signal.reason;
  if (isOwnFault(error) && !is_aborted) {
    problems.report({ request_id, step, code: refusal.code, model: model.id, error });
  }
  return refusal;
}
