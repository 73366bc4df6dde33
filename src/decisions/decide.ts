import { inStep } from '../observability/tracing.ts';
import type { IdempotencyClaim } from '../store/idempotency-records.ts';
import { admitRequest, refusalOfPlan } from './admit-request.ts';
import { askModel } from './answer-request.ts';
import { charge, placeHold, release } from './bill-request.ts';
import { type DecisionCall, type DecisionOutcome, type KnownCaller, nothingKnown } from './call.ts';
import { authenticate, checkRequest } from './check-request.ts';
import { decideOnce } from './decide-once.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';

/**
 * Answers one call, one step after the other (contract: request processing order). Never throws: every failure is a
 * refusal, no refusal is charged, and no hold outlives its call.
 */
export async function decide(services: DecisionServices, call: DecisionCall): Promise<DecisionOutcome> {
  const known = await inStep(
    call.span,
    'key',
    () => authenticate(services, call),
    ({ result }) => (result instanceof DecisionRefusal ? result : null),
  );
  const caller = known.result;
  if (caller instanceof DecisionRefusal) return { ...nothingKnown(known.caller), result: caller };
  // Here and not with the lookup: the console counts the tokens of a draft, which is no use of the key.
  services.keys.touch(caller.key_id, services.clock.now_ms());
  const anew = (current: KnownCaller, claim: IdempotencyClaim | null) =>
    decideAnew(services, call, current, claim);
  return call.idempotency_key === null
    ? await anew(caller, null)
    : await decideOnce(services, call, caller, call.idempotency_key, anew);
}

/**
 * Runs the steps from `request` on, of a call that is not a replay; the claim is null without an idempotency key.
 */
async function decideAnew(
  services: DecisionServices,
  call: DecisionCall,
  caller: KnownCaller,
  claim: IdempotencyClaim | null,
): Promise<DecisionOutcome> {
  const { span } = call;
  const facts = nothingKnown(caller);
  const checked = await inStep(span, 'request', () => checkRequest(services, call, caller));
  if (checked instanceof DecisionRefusal) return { ...facts, result: checked };

  using served = services.models.for(checked.model);
  facts.asked = { model: checked.model.id, mode: checked.request.mode };
  const accepted = { ...checked, call, caller, claim, served };
  const admitted = await inStep(
    span,
    'admission',
    () => admitRequest(services, accepted, facts),
    refusalOfPlan,
  );
  if (admitted instanceof DecisionRefusal) return { ...facts, result: admitted };

  const held = await inStep(span, 'hold', () => placeHold(services, admitted));
  if (held instanceof DecisionRefusal) return { ...facts, result: held };
  facts.was_held = true;
  facts.ignored_fields = checked.request.ignored_fields;

  const decided = await askModel(services, held, facts);
  const result =
    decided instanceof DecisionRefusal
      ? await inStep(span, 'release', () => release(services, held, decided, facts), expectedRefusal)
      : await inStep(span, 'charge', () => charge(services, held, decided, facts));
  return { ...facts, result };
}

/** Returns null, because the model's refusal is no failure of its release. */
function expectedRefusal(): null {
  return null;
}
