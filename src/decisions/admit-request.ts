import type { DecisionPlan } from '../../native/engine.ts';
import type { Admission } from '../limits/rate-windows.ts';
import { reported } from '../problems/problems.ts';
import type { ServedModel } from '../served-models/models.ts';
import { askPatiently, engineInput } from './answer-request.ts';
import { admitInTime, notAsked } from './batch/admission.ts';
import type {
  AcceptedRequest,
  AdmittedRequest,
  AskedCall,
  CheckedRequest,
  DecisionCall,
  KnownCaller,
  OutcomeFacts,
} from './call.ts';
import { noRoom, rateLimited } from './explained-refusals.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal as Refusal } from './refusal.ts';

/**
 * Added to the exact count for the token window: the estimate is deliberately high (contract: rate limits).
 */
const MARGIN_TOKENS = 16;

type AdmittedCall = Admission & { readonly admitted: true };

/** A checked request of a call, with its model. */
interface PlannableRequest extends CheckedRequest {
  readonly call: AskedCall;
  readonly served: Pick<ServedModel, 'plan'>;
}

/**
 * Runs step 2, second half: the plan, and requests and tokens per minute, in the organization's slot. A
 * request counts once it is planned; without slots, a whole burst would be planned before any of it counts.
 * Unreachable windows admit no request.
 */
export async function admitRequest(
  services: DecisionServices,
  accepted: AcceptedRequest,
  facts: OutcomeFacts,
): Promise<AdmittedRequest | Refusal> {
  const { call, caller } = accepted;
  using slot = await planningSlot(services, call, caller);
  if (slot === null) return noRoom();
  if (call.patience?.aborted === true) return notAsked();
  try {
    // Planning is the expensive part of the estimate, so a request that cannot be admitted anyway is refused
    // first.
    const { organization_id, limits } = caller;
    const exhausted =
      call.patience === null ? await services.limiter.exhausted(organization_id, limits) : null;
    if (exhausted !== null) {
      facts.rate = exhausted.status;
      return rateLimited(exhausted, limits, null);
    }
    const plan = await planOrRefusal(services, accepted);
    const estimated_tokens = mostTokensOf(plan) + MARGIN_TOKENS;
    const admission = await admitTokens(services, call, caller, estimated_tokens, facts);
    if (admission instanceof Refusal) return admission;
    const { reservation } = admission;
    return { ...accepted, plan, reservation, admitted_at_ms: services.clock.now_ms() };
  } catch (error) {
    const { request_id } = call;
    return reported(services.problems, {
      request_id,
      step: 'rate_windows',
      code: 'billing_unavailable',
      error,
    });
  }
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

/** Returns the plan, or a refusal: the model rejects the request, or cannot plan at present. */
export async function planOrRefusal(
  services: Pick<DecisionServices, 'problems' | 'cut_requests' | 'pause'>,
  checked: PlannableRequest,
): Promise<DecisionPlan | Refusal> {
  const { request, served } = checked;
  if (request.rejection !== null) return request.rejection;
  return await askPatiently(services, checked, 'plan', () =>
    served.plan(engineInput(request), checked.call.signal),
  );
}

/** Counts the replay of an answer as a request of the minute, without tokens. Returns the refusal, or null. */
export async function admitReplay(
  services: DecisionServices,
  call: DecisionCall,
  caller: KnownCaller,
  facts: OutcomeFacts,
): Promise<Refusal | null> {
  try {
    const admission = await admitTokens(services, call, caller, 0, facts);
    return admission instanceof Refusal ? admission : null;
  } catch (error) {
    const { request_id } = call;
    return reported(services.problems, {
      request_id,
      step: 'rate_windows',
      code: 'billing_unavailable',
      error,
    });
  }
}

/** Asks the rate windows for so many tokens; a line of a batch waits for them. Rejects as the windows do. */
async function admitTokens(
  services: DecisionServices,
  { patience }: DecisionCall,
  { organization_id, limits }: KnownCaller,
  estimated_tokens: number,
  facts: OutcomeFacts,
): Promise<AdmittedCall | Refusal> {
  using _slot = patience === null ? null : await services.batch_admission.take(organization_id);
  const admission =
    patience === null
      ? await services.limiter.admit(organization_id, limits, estimated_tokens)
      : await admitInTime(services, { organization_id, limits, estimated_tokens, patience });
  if (admission === null) return notAsked();
  facts.rate = admission.status;
  return admission.admitted ? admission : rateLimited(admission, limits, estimated_tokens);
}

/**
 * Returns the most tokens that a request can be billed; 1, the smallest number, for a request without a plan.
 */
export function mostTokensOf(plan: DecisionPlan | Refusal): number {
  return plan instanceof Refusal ? 1 : plan.input_tokens;
}

/** Returns the refusal that ends the request at its admission, or at the model for want of a plan; else null. */
export function refusalOfPlan(admitted: AdmittedRequest | Refusal): Refusal | null {
  if (admitted instanceof Refusal) return admitted;
  return admitted.plan instanceof Refusal ? admitted.plan : null;
}
