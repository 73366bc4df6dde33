import type { DecisionPlan } from '../../native/engine.ts';
import { MS_PER_S } from '../clock.ts';
import type { ServedModel } from '../models/models.ts';
import { engineInput } from './answer-request.ts';
import { notAsked } from './batch/admission.ts';
import type { AskedCall, CheckedRequest, KnownCaller } from './check-request.ts';
import { ServiceStopped } from './cut-requests.ts';
import { isLoad, isOwnFault, modelRefusal } from './model-refusal.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal as Refusal } from './refusal.ts';

/** A checked request of a call, with its model. */
interface PlannableRequest extends CheckedRequest {
  readonly call: AskedCall;
  readonly served: Pick<ServedModel, 'plan'>;
}

type RefusingServices = Pick<DecisionServices, 'problems' | 'cut_requests'>;
type AskingServices = RefusingServices & Pick<DecisionServices, 'pause'>;

/**
 * Runs `work` in the organization's turn to be planned. Refuses with `overloaded` where too many bytes of the
 * organization wait. Rejects as `work` does. The lines of its batches have a turn of their own, because one that waits
 * for the rate windows keeps it.
 */
export async function inPlanningTurn<Result>(
  {
    planning,
    batch_planning,
    unplanned_bodies,
  }: Pick<DecisionServices, 'planning' | 'batch_planning' | 'unplanned_bodies'>,
  call: Pick<AskedCall, 'body_bytes' | 'patience'>,
  { organization_id }: Pick<KnownCaller, 'organization_id'>,
  work: () => Promise<Result>,
): Promise<Result | Refusal> {
  if (call.patience !== null) return await batch_planning.run(organization_id, work);
  const bytes = call.body_bytes();
  if (!unplanned_bodies.take(organization_id, bytes)) {
    return new Refusal('overloaded', {
      message: 'Too many large requests of the organization are waiting.',
      retry_after_s: 1,
    });
  }
  try {
    return await planning.run(organization_id, work);
  } finally {
    unplanned_bodies.give(organization_id, bytes);
  }
}

/** Returns the plan, or a refusal: the model rejects the request, or cannot plan at present. */
export async function planOrRefusal(
  services: AskingServices,
  checked: PlannableRequest,
): Promise<DecisionPlan | Refusal> {
  const { request, served } = checked;
  if (request.rejection !== null) return request.rejection;
  return await askPatiently(services, checked, 'plan', () =>
    served.plan(engineInput(request), checked.call.signal),
  );
}

/** Returns the model's answer, or its refusal. A line of a batch asks again for as long as the reason is load. */
export async function askPatiently<Answer>(
  services: AskingServices,
  checked: Pick<PlannableRequest, 'call' | 'request' | 'model'>,
  step: 'plan' | 'model',
  ask: () => Promise<Answer>,
): Promise<Answer | Refusal> {
  const { patience } = checked.call;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const refusal = refusedByModel(services, checked, step, error);
      if (patience === null || !isLoad(error)) return refusal;
      await services.pause((refusal.retry_after_s ?? 1) * MS_PER_S, patience);
      if (patience.aborted) return notAsked();
    }
  }
}

/**
 * Returns the refusal for a failure of the model or its planner, and reports it where it is our own fault.
 */
function refusedByModel(
  { problems, cut_requests }: RefusingServices,
  {
    call: { request_id, endpoint, signal },
    request,
    model,
  }: Pick<PlannableRequest, 'call' | 'request' | 'model'>,
  step: 'plan' | 'model',
  error: unknown,
): Refusal {
  const refusal = modelRefusal(error, request);
  if (error instanceof ServiceStopped) cut_requests.add(endpoint, request.mode);
  // A request aborted by its client or by a stop is no failure.
  const is_abandoned = signal.aborted && error === signal.reason;
  if (isOwnFault(error) && !is_abandoned) {
    problems.report({ request_id, step, code: refusal.code, model: model.id, error });
  }
  return refusal;
}
