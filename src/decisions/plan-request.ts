import type { DecisionPlan } from '../../native/engine.ts';
import { Refusal } from '../errors/errors.ts';
import type { ServedModel } from '../served-models/models.ts';
import { engineInput } from './answer-request.ts';
import type { AskedCall, CheckedRequest, KnownCaller } from './call.ts';
import { askPatiently } from './model-refusal.ts';
import type { DecisionServices } from './ports.ts';
import type { DecisionRefusal } from './refusal.ts';

/** A checked request of a call, with its model. */
interface PlannableRequest extends CheckedRequest {
  readonly call: AskedCall;
  readonly served: Pick<ServedModel, 'plan'>;
}

/**
 * Takes the organization's slot to be planned, until the disposal. Null where too many bytes of the
 * organization wait. The lines of its batches have a slot of their own, because one that waits for the rate
 * windows keeps it.
 */
export async function planningSlot(
  {
    planning,
    batch_planning,
    unplanned_bodies,
  }: Pick<DecisionServices, 'planning' | 'batch_planning' | 'unplanned_bodies'>,
  call: Pick<AskedCall, 'body_bytes' | 'patience'>,
  { organization_id }: Pick<KnownCaller, 'organization_id'>,
): Promise<Disposable | null> {
  if (call.patience !== null) return await batch_planning.take(organization_id);
  const bytes = unplanned_bodies.reserve(organization_id, call.body_bytes());
  if (bytes === null) return null;
  const slot = new DisposableStack();
  slot.use(bytes);
  slot.use(await planning.take(organization_id));
  return slot;
}

/** Returns the refusal where too many bytes of the organization wait. */
export function noRoom(): Refusal<'overloaded'> {
  return new Refusal('overloaded', {
    message: 'Too many large requests of the organization are waiting.',
    retry_after_s: 1,
  });
}

/** Returns the plan, or a refusal: the model rejects the request, or cannot plan at present. */
export async function planOrRefusal(
  services: Pick<DecisionServices, 'problems' | 'cut_requests' | 'pause'>,
  checked: PlannableRequest,
): Promise<DecisionPlan | DecisionRefusal> {
  const { request, served } = checked;
  if (request.rejection !== null) return request.rejection;
  return await askPatiently(services, checked, 'plan', () =>
    served.plan(engineInput(request), checked.call.signal),
  );
}
