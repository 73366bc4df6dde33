import type { DecisionPlan } from '../../native/engine.ts';
import { overloaded } from '../errors/errors.ts';
import type { Admitted } from '../limits/rate-windows.ts';
import { reported } from '../problems/problems.ts';
import type { ServedModel } from '../served-models/models.ts';
import { askPatiently, engineInput } from './answer-request.ts';
import { admitInTime } from './batch/admission.ts';
import type {
  AcceptedRequest,
  AdmittedRequest,
  AskedCall,
  CheckedRequest,
  DecisionCall,
  KnownCaller,
  OutcomeFacts,
} from './call.ts';
import { authenticateAgain } from './check-request.ts';
import { rateLimited } from './explained-refusals.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';

/**
 * Added to the exact count for the token window: the estimate is deliberately high (contract: rate limits).
 */
const MARGIN_TOKENS = 16;

/** A checked request of a call, with its model. */
interface PlannableRequest extends CheckedRequest {
  readonly call: AskedCall;
  readonly served: Pick<ServedModel, 'readyToPlan' | 'plan'>;
}

/** A request's slot to be planned, until the disposal. */
interface PlanningSlot extends Disposable {
  /** Returns the plan, or a refusal: the model rejects the request, or cannot plan at present. */
  plan(): Promise<DecisionPlan | DecisionRefusal>;
}

/**
 * Runs the step `admission`: the plan, and requests and tokens per minute, in the organization's slot. A
 * request counts once it is planned; without slots, a whole burst would be planned before any of it counts.
 * Unreachable windows admit no request.
 */
export async function admitRequest(
  services: DecisionServices,
  accepted: AcceptedRequest,
  facts: OutcomeFacts,
): Promise<AdmittedRequest | DecisionRefusal> {
  const { call, caller } = accepted;
  using slot = await planningSlot(services, accepted, caller);
  if (slot === null) return overloaded('waiting_bodies');
  if (call.patience?.aborted === true) return overloaded('ended_batch');
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
    const plan = await slot.plan();
    const estimated_tokens = mostTokensOf(plan) + MARGIN_TOKENS;
    const admission = await admitTokens(services, call, caller, estimated_tokens, facts);
    if (admission instanceof DecisionRefusal) return admission;
    const { reservation } = admission;
    return { ...accepted, plan, reservation, admitted_at_ms: services.clock.now_ms() };
  } catch (error) {
    return windowsFailed(services, call, error);
  }
}

/**
 * Waits for the model's vocabulary, and takes the organization's slot to be planned. Who waits for a vocabulary has no
 * slot, so that requests to other models pass. Null where too many bytes of the organization wait. The lines of its
 * batches have a slot of their own, because one that waits for the rate windows keeps it.
 */
export async function planningSlot(
  services: Pick<
    DecisionServices,
    'planning' | 'batch_planning' | 'unplanned_bodies' | 'problems' | 'cut_requests' | 'pause'
  >,
  checked: PlannableRequest,
  { organization_id }: Pick<KnownCaller, 'organization_id'>,
): Promise<PlanningSlot | null> {
  const { planning, batch_planning, unplanned_bodies } = services;
  const { call, request, served } = checked;
  using taken = new DisposableStack();
  if (call.patience === null) {
    const bytes = unplanned_bodies.reserve(organization_id, call.body_bytes());
    if (bytes === null) return null;
    taken.use(bytes);
  }
  const ask = <Answer>(work: () => Promise<Answer>) => askPatiently(services, checked, 'plan', work);
  const ready = request.rejection ?? (await ask(() => served.readyToPlan(call.signal)));
  taken.use(await (call.patience === null ? planning : batch_planning).take(organization_id));
  const slot = taken.move();
  return {
    plan: async () =>
      ready instanceof DecisionRefusal
        ? ready
        : await ask(() => served.plan(engineInput(request), call.signal)),
    [Symbol.dispose]: () => slot.dispose(),
  };
}

/** Counts the replay of an answer as a request of the minute, without tokens. Returns the refusal, or null. */
export async function admitReplay(
  services: DecisionServices,
  call: DecisionCall,
  caller: KnownCaller,
  facts: OutcomeFacts,
): Promise<DecisionRefusal | null> {
  try {
    const admission = await admitTokens(services, call, caller, 0, facts);
    return admission instanceof DecisionRefusal ? admission : null;
  } catch (error) {
    return windowsFailed(services, call, error);
  }
}

/** Reports that the rate windows cannot be reached, which admits no request. */
function windowsFailed(
  { problems }: Pick<DecisionServices, 'problems'>,
  { request_id }: Pick<AskedCall, 'request_id'>,
  error: unknown,
): DecisionRefusal {
  return reported(problems, { request_id, step: 'rate_windows', code: 'billing_unavailable', error });
}

/** Asks the rate windows for so many tokens; a line of a batch waits for them. Rejects as the windows do. */
async function admitTokens(
  services: DecisionServices,
  call: DecisionCall,
  { organization_id, limits }: KnownCaller,
  estimated_tokens: number,
  facts: OutcomeFacts,
): Promise<Admitted | DecisionRefusal> {
  const { patience } = call;
  using _slot = patience === null ? null : await services.batch_admission.take(organization_id);
  const limitsNow = async () => {
    const current = await authenticateAgain(services, call);
    return current instanceof DecisionRefusal ? current : current.limits;
  };
  const admission =
    patience === null
      ? await services.limiter.admit(organization_id, limits, estimated_tokens)
      : await admitInTime(services, { limitsNow, organization_id, estimated_tokens, patience });
  if (admission === null) return overloaded('ended_batch');
  if (admission instanceof DecisionRefusal) return admission;
  facts.rate = admission.status;
  return admission.admitted ? admission : rateLimited(admission, limits, estimated_tokens);
}

/**
 * Returns the most tokens that a request can be billed; 1, the smallest number, for a request without a plan.
 */
export function mostTokensOf(plan: DecisionPlan | DecisionRefusal): number {
  return plan instanceof DecisionRefusal ? 1 : plan.input_tokens;
}

/** Returns the refusal that ends the request at its admission, or at the model for want of a plan; else null. */
export function refusalOfPlan(admitted: AdmittedRequest | DecisionRefusal): DecisionRefusal | null {
  if (admitted instanceof DecisionRefusal) return admitted;
  return admitted.plan instanceof DecisionRefusal ? admitted.plan : null;
}
