import type { Caller } from '../accounts/key-directory.ts';
import { inStep } from '../observability/tracing.ts';
import type { IdempotencyClaim } from '../store/idempotency-records.ts';
import { admitReplay, admitRequest, refusalOfPlan } from './admit-request.ts';
import { askModel } from './answer-request.ts';
import { charge, placeHold, release } from './bill-request.ts';
import type { DecisionCall, DecisionOutcome, KnownCaller, OutcomeFacts } from './call.ts';
import { authenticate, checkRequest } from './check-request.ts';
import { enterKeyQueue, isClaimTaken, keyedCall, type Replay, secretOf } from './decide-once.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal as Refusal } from './refusal.ts';

/**
 * Answers one call in six steps (contract: request processing order). Never throws: every failure is a
 * refusal, no refusal is charged, and no hold outlives its call.
 */
export async function decide(services: DecisionServices, call: DecisionCall): Promise<DecisionOutcome> {
  const known = await inStep(
    call.span,
    'key',
    () => authenticate(services, call),
    ({ result }) => (result instanceof Refusal ? result : null),
  );
  const caller = known.result;
  if (caller instanceof Refusal) return { ...nothingKnown(known.caller), result: caller };
  // Here and not with the lookup: the console counts the tokens of a draft, which is no use of the key.
  services.keys.touch(caller.key_id, services.clock.now_ms());
  const { idempotency_key } = call;
  const api_key_secret = secretOf(call.key);
  if (idempotency_key === null || api_key_secret === undefined) {
    return await decideAnew(services, call, caller, null);
  }
  const keyed = await keyedCall(services, call, caller, { idempotency_key, api_key_secret });
  if (keyed instanceof Refusal) return { ...nothingKnown(caller), result: keyed };
  for (;;) {
    using slot = await inStep(
      call.span,
      'idempotency',
      () => enterKeyQueue(services, call, caller, keyed),
      ({ earlier }) => (earlier instanceof Refusal ? earlier : null),
    );
    const { earlier } = slot;
    if (earlier instanceof Refusal) return { ...nothingKnown(caller), result: earlier };
    if (earlier !== null) return await replay(services, call, caller, earlier);
    const outcome = await decideAnew(services, call, caller, keyed.claim);
    // Where another node was faster, this call waits for its answer.
    if (!isClaimTaken(outcome.result)) return outcome;
  }
}

/**
 * Runs steps 2 to 6 of a call that is not a replay; the claim is null for a call without an idempotency key.
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
  if (checked instanceof Refusal) return { ...facts, result: checked };

  using served = services.models.for(checked.model);
  facts.asked = { model: checked.model.id, mode: checked.request.mode };
  span?.describe(facts.asked);
  const accepted = { ...checked, call, caller, claim, served };
  const admitted = await inStep(span, 'plan', () => admitRequest(services, accepted, facts), refusalOfPlan);
  if (admitted instanceof Refusal) return { ...facts, result: admitted };

  const held = await inStep(span, 'hold', () => placeHold(services, admitted));
  if (held instanceof Refusal) return { ...facts, result: held };
  facts.reached_model = true;
  facts.ignored_fields = checked.request.ignored_fields;

  const decided = await askModel(services, held, facts);
  const result =
    decided instanceof Refusal
      ? await inStep(span, 'release', () => release(services, held, decided, facts), expectedRefusal)
      : await inStep(span, 'charge', () => charge(services, held, decided, facts));
  return { ...facts, result };
}

/** Returns the facts before the request is checked. */
function nothingKnown(caller: Caller | null): OutcomeFacts {
  return { caller, rate: null, reached_model: false };
}

/** Returns null, because the model's refusal is no failure of its release. */
function expectedRefusal(): null {
  return null;
}

/** Returns the answer of an earlier call once the rate limits let this one in; it costs nothing. */
async function replay(
  services: DecisionServices,
  call: DecisionCall,
  caller: KnownCaller,
  { decision, unread }: Replay,
): Promise<DecisionOutcome> {
  const { model, mode } = decision;
  const facts: OutcomeFacts = { ...nothingKnown(caller), asked: { model, mode } };
  const refusal = await admitReplay(services, call, caller, facts);
  if (refusal !== null) return { ...facts, result: refusal };
  return { ...facts, ...unread, result: decision, is_replayed: true };
}
