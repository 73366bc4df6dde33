import { MissingKey } from '../accounts/key-format.ts';
import { dollarsOf } from '../contract/money.ts';
import { isClientGone } from '../errors/abort-reasons.ts';
import { overloaded, Refusal } from '../errors/errors.ts';
import { claimOf, IDEMPOTENCY_KEY_LENGTH_MAX, type IdempotentRequest } from '../idempotency/claim.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import { inStep } from '../observability/tracing.ts';
import { reported } from '../problems/problems.ts';
import { answerOfNumbers } from '../questions/question.ts';
import type { IdempotencyClaim } from '../store/idempotency-records.ts';
import type { KeptAnswer } from '../store/kept-answer.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import { admitReplay } from './admit-request.ts';
import {
  type DecisionCall,
  type DecisionOutcome,
  type KnownCaller,
  nothingKnown,
  type OutcomeFacts,
} from './call.ts';
import { authenticateAgain } from './check-request.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';
import { parseDecisionRequest } from './request.ts';
import type { WrittenDecision } from './schemas.ts';

/** The `Retry-After` in seconds for a client that has already waited for the other request. */
const RETRY_AFTER_S = 1;

/** The answer to an earlier call with the same key and body, and what of both was not read. */
interface Replay {
  readonly decision: WrittenDecision;
  readonly unread: {
    readonly ignored_fields: readonly string[];
    readonly record_tokens_left_out: number | null;
  };
}

/** A call with an idempotency key. */
interface KeyedCall {
  readonly claim: IdempotencyClaim;
  readonly body: JsonValue;
  /** The time on the monotonic clock up to which the call waits for another one of its key. */
  readonly waits_until_ms: number;
}

/** The slot of a call in the queue of its idempotency key, until the disposal. */
interface KeySlot extends Disposable {
  /** Null where this call is to run. */
  readonly earlier: Replay | DecisionRefusal | null;
}

/**
 * Answers a call with an idempotency key as an earlier call of the key was answered. Where there was none, `anew`
 * answers, with the claim to answer for later ones too. Never rejects, as `anew` does not.
 */
export async function decideOnce(
  services: DecisionServices,
  call: DecisionCall,
  caller: KnownCaller,
  idempotency_key: string,
  anew: (caller: KnownCaller, claim: IdempotencyClaim | null) => Promise<DecisionOutcome>,
): Promise<DecisionOutcome> {
  const api_key_secret = secretOf(call.key);
  if (api_key_secret === undefined) return await anew(caller, null);
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
    // The wait may have taken as long as a client waits.
    const current = await authenticateAgain(services, call);
    if (current instanceof Refusal) return { ...nothingKnown(caller), result: current };
    if (earlier !== null) return await replay(services, call, current, earlier);
    const outcome = await anew(current, keyed.claim);
    // Where another node was faster, this call waits for its answer.
    if (!isClaimTaken(outcome.result)) return outcome;
  }
}

/** Returns what keys the hashes of an idempotency key, and is stored nowhere; undefined where the call has no such. */
function secretOf(key: DecisionCall['key']): string | undefined {
  if (typeof key === 'string') return key;
  return key instanceof MissingKey ? undefined : key.client_secret;
}

/** Reads the body of a call, and makes the claim of its idempotency key. */
async function keyedCall(
  { clock }: DecisionServices,
  call: DecisionCall,
  { key_id: api_key_id, organization_id }: KnownCaller,
  keys: Pick<IdempotentRequest, 'idempotency_key' | 'api_key_secret'>,
): Promise<KeyedCall | DecisionRefusal> {
  const { endpoint, query_mode } = call;
  const { length } = keys.idempotency_key;
  if (length === 0 || length > IDEMPOTENCY_KEY_LENGTH_MAX) {
    return new DecisionRefusal('invalid_idempotency_key');
  }
  const body = await call.readBody(organization_id);
  if (body instanceof Refusal) return body;
  const sent_body = call.sent_body?.() ?? body;
  const claim = claimOf({ ...keys, api_key_id, endpoint, query_mode, body: sent_body });
  return { claim, body, waits_until_ms: clock.monotonic_ms() + CLIENT_TIMEOUT_MS };
}

/**
 * Waits until no other call of the key runs. A waiting body counts in the same memory as those that wait to be
 * planned. A refusal stores nothing, so that the next attempt runs.
 */
async function enterKeyQueue(
  { idempotency, unplanned_bodies, problems }: DecisionServices,
  { request_id, body_bytes, signal, query_mode }: DecisionCall,
  { organization_id }: KnownCaller,
  { claim, body, waits_until_ms }: KeyedCall,
): Promise<KeySlot> {
  using bytes = unplanned_bodies.reserve(organization_id, body_bytes());
  if (bytes === null) return ended(overloaded('waiting_bodies'));
  try {
    const outcome = await idempotency.enter(claim, { waits_until_ms, signal });
    switch (outcome.state) {
      case 'answered':
        return ended(replayOf(outcome.kept, body, query_mode));
      case 'other_body':
        return ended(new DecisionRefusal('idempotency_key_reused'));
      case 'in_use':
        return ended(refusalOfWait(signal));
      case 'runs':
        return { earlier: null, [Symbol.dispose]: outcome.end };
    }
  } catch (error) {
    const code = 'billing_unavailable';
    return ended(reported(problems, { request_id, step: 'idempotency', code, error }));
  }
}

/** Returns why a call waits no longer: its client has gone, the service stops, or the other call takes too long. */
function refusalOfWait(signal: AbortSignal): DecisionRefusal {
  if (isClientGone(signal)) return new DecisionRefusal('model_unavailable');
  if (signal.aborted) return overloaded('stopping');
  return new DecisionRefusal('idempotency_key_in_use', { retry_after_s: RETRY_AFTER_S });
}

/** Returns a slot without anything to run. */
function ended(earlier: Replay | DecisionRefusal): KeySlot {
  return { earlier, [Symbol.dispose]: () => {} };
}

/** Returns true for the refusal of a call whose key another node was running meanwhile. */
function isClaimTaken(result: unknown): boolean {
  return result instanceof Refusal && result.code === 'idempotency_key_in_use';
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

/** Returns the same decision again, even if the tier allows fewer questions by now. */
function replayOf(kept: KeptAnswer, body: JsonValue, query_mode: string | null): Replay | DecisionRefusal {
  const asked = isJsonObject(body) ? body : new JsonObject<JsonValue>([], []);
  const request = parseDecisionRequest(asked, query_mode, Number.POSITIVE_INFINITY);
  if (request instanceof Refusal) return request;
  const { id, created, model, mode, input_tokens, cost_micros, latency_ms, numbers } = kept;
  const { questions, ignored_fields } = request;
  const { record_tokens_left_out = null } = kept;
  const answers = JsonObject.of(
    questions.map((question, index) => [question.id, answerOfNumbers(question, numbers[index] ?? [])]),
  );
  const usage = {
    input_tokens,
    output_tokens: 0,
    decisions: questions.length,
    cost_usd: dollarsOf(cost_micros),
  } as const;
  return {
    decision: { id, object: 'decision', created, model, mode, answers, usage, latency_ms },
    unread: { ignored_fields, record_tokens_left_out },
  };
}
