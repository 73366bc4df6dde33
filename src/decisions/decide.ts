import type { DecisionPlan } from '../../native/engine.ts';
import type { Caller } from '../accounts/key-directory.ts';
import { MissingKey } from '../accounts/key-format.ts';
import { ERRORS } from '../errors.ts';
import type { IdempotencyClaim } from '../idempotency/claim.ts';
import type { Hold } from '../ledger/hold.ts';
import type { Place } from '../limits/model-turns.ts';
import type { RateStatus } from '../limits/rate-status.ts';
import type { TokenReservation } from '../limits/rate-windows.ts';
import type { ServedModel } from '../models/models.ts';
import { dollarsOf } from '../money.ts';
import { inStep, type RequestSpan } from '../ops/tracing.ts';
import type { UsageRow } from '../usage/usage-row.ts';
import { answerRequest, type Decided, roundedLatency } from './answer-request.ts';
import { admitInTime, notAsked } from './batch/admission.ts';
import {
  type AskedCall,
  authenticate,
  type CheckedRequest,
  checkRequest,
  failed,
  type KnownCaller,
} from './check-request.ts';
import { ServiceStopped } from './cut-requests.ts';
import { decideOnce, keptOf, Replay } from './decide-once.ts';
import { estimatedTokens } from './estimate.ts';
import { holdRefused, rateLimited } from './explained-refusals.ts';
import { ModelDeadline } from './model-deadline.ts';
import { ModelTime } from './model-time.ts';
import { askPatiently, inPlanningTurn, planOrRefusal } from './plan-request.ts';
import type { DecisionServices } from './ports.ts';
import { cost_micros } from './pricing.ts';
import { DecisionRefusal as Refusal } from './refusal.ts';
import type { WrittenDecision } from './schemas.ts';

/** A call of a decision endpoint, as the pipeline needs it. */
export interface DecisionCall extends AskedCall {
  readonly endpoint: '/v1/decisions' | '/v1/systemone' | '/v1/decisions/batch';
  /** Calls with the same key get one decision, which is charged once; null where each call is a new one. */
  readonly idempotency_key: string | null;
  /** Null where the request is not traced. */
  readonly span: RequestSpan | null;
}

/** The outcome of a call. `rate` is known once the rate limits were checked. */
export interface DecisionOutcome {
  readonly result: WrittenDecision | Refusal;
  readonly caller: Caller | null;
  readonly rate: RateStatus | null;
  /** True if the request reached the model (contract: response headers). */
  readonly reached_model: boolean;
  /** The requested model and mode, once the request is checked. */
  readonly asked?: Pick<WrittenDecision, 'model' | 'mode'>;
  /** Present for the answer of an earlier call. */
  readonly is_replayed?: true;
  /** The fields of the checked request that nothing read. */
  readonly ignored_fields?: readonly string[];
  /** As in the plan of a request that reached the model. */
  readonly record_tokens_left_out?: number | null;
  /** The request's time at the model, once it has a hold. */
  readonly model_time?: ModelTime;
}

/** A request that passed the checks, with its caller and its model. */
interface AcceptedRequest extends CheckedRequest {
  readonly call: DecisionCall;
  readonly caller: KnownCaller;
  /** The claim of a call with an idempotency key. */
  readonly claim: IdempotencyClaim | null;
}

/** A request with its model, whose engine stays until the request is answered. */
interface ServedRequest extends AcceptedRequest {
  readonly served: ServedModel;
}

/** A request within its limits, with its plan and its entry in the token window. */
interface AdmittedRequest extends ServedRequest {
  /** The plan, or the refusal of the model. */
  readonly plan: DecisionPlan | Refusal;
  readonly reservation: TokenReservation;
  readonly admitted_at_ms: number;
  readonly rate: RateStatus;
}

/** A request with a hold for its cost. */
interface HeldRequest extends AdmittedRequest {
  readonly hold: Hold;
}

/**
 * Answers one call in six steps (contract: request processing order). Never throws: every failure is a
 * refusal, no refusal is charged, and no hold outlives its call.
 */
export async function decide(services: DecisionServices, call: DecisionCall): Promise<DecisionOutcome> {
  const caller = await inStep(call.span, 'key', () => authenticate(services, call));
  if (caller instanceof Refusal) return { result: caller, caller: null, rate: null, reached_model: false };
  const { idempotency_key, key } = call;
  const api_key_secret = secretOf(key);
  if (idempotency_key === null || api_key_secret === undefined) {
    return await decideAnew(services, call, caller, null);
  }
  const { key_id: api_key_id, organization_id } = caller;
  const keyed = { ...call, idempotency_key, api_key_id, api_key_secret, organization_id };
  const outcome = await decideOnce(services, keyed, (claim, body) =>
    decideAnew(services, { ...call, readBody: () => Promise.resolve(body) }, caller, claim),
  );
  if (outcome instanceof Replay) return await replay(services, call, caller, outcome);
  return outcome instanceof Refusal ? { result: outcome, caller, rate: null, reached_model: false } : outcome;
}

/** Returns what keys the hashes of an idempotency key, and is stored nowhere; undefined where the call has no such. */
function secretOf(key: DecisionCall['key']): string | undefined {
  if (typeof key === 'string') return key;
  return key instanceof MissingKey ? undefined : key.client_secret;
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
  const checked = await inStep(span, 'request', () => checkRequest(services, call, caller));
  if (checked instanceof Refusal) return { result: checked, caller, rate: null, reached_model: false };

  using served = services.models.for(checked.model);
  const asked = { model: checked.model.id, mode: checked.request.mode };
  span?.describe(asked);
  const planned = await inStep(
    span,
    'plan',
    () => planInTurn(services, { ...checked, call, caller, claim, served }),
    refusalOfPlan,
  );
  if (planned instanceof Refusal) return { result: planned, caller, rate: null, reached_model: false, asked };
  if (planned.refusal !== null) {
    return { result: planned.refusal, caller, rate: planned.rate, reached_model: false, asked };
  }

  const held = await inStep(span, 'hold', () => placeHold(services, planned.request));
  if (held instanceof Refusal) {
    return { result: held, caller, rate: planned.request.rate, reached_model: false, asked };
  }

  const { plan, rate, request } = held;
  const { ignored_fields } = request;
  if (plan instanceof Refusal) {
    const result = await inStep(
      span,
      'release',
      () => releaseRejected(services, held, plan),
      expectedRefusal,
    );
    return { result, caller, rate, reached_model: true, asked, ignored_fields };
  }
  const { record_tokens_left_out } = plan;
  const model_time = new ModelTime(services.clock, span);
  const decided = await askPatiently(services, held, 'model', () =>
    askModel(services, held, plan, model_time),
  );
  model_time.end(decided instanceof Refusal ? decided : null);
  const result =
    decided instanceof Refusal
      ? await inStep(
          span,
          'release',
          () => releaseUnanswered(services, held, decided, model_time),
          expectedRefusal,
        )
      : await inStep(span, 'charge', () => charge(services, held, plan, decided));
  const about = { caller, rate, reached_model: true, asked, ignored_fields, record_tokens_left_out };
  return { result, ...about, model_time };
}

/** Returns null, because the model's refusal is no failure of its release. */
function expectedRefusal(): null {
  return null;
}

/**
 * Returns the answer of an earlier call, which counts as a request of the minute, without tokens, and costs
 * nothing.
 */
async function replay(
  services: DecisionServices,
  call: DecisionCall,
  caller: KnownCaller,
  { decision, unread }: Replay,
): Promise<DecisionOutcome> {
  const { model, mode } = decision;
  const about = { caller, reached_model: false, asked: { model, mode } };
  const { patience } = call;
  const { organization_id, limits } = caller;
  try {
    const admission =
      patience === null
        ? await services.limiter.admit(organization_id, limits, 0)
        : await services.batch_admission.run(organization_id, () =>
            admitInTime(services, { organization_id, limits, estimated_tokens: 0, patience }),
          );
    if (admission === null) return { ...about, result: notAsked(), rate: null };
    if (admission.admitted) {
      return { ...about, ...unread, result: decision, rate: admission.status, is_replayed: true };
    }
    return { ...about, result: rateLimited(admission, limits, 0), rate: admission.status };
  } catch (error) {
    const result = failed(services, call, 'rate_windows', 'billing_unavailable', error);
    return { ...about, result, rate: null };
  }
}

/** Returns the refusal that ends the request here, or null. */
function refusalOfPlan(planned: Planned | Refusal): Refusal | null {
  if (planned instanceof Refusal) return planned;
  if (planned.refusal !== null) return planned.refusal;
  return planned.request.plan instanceof Refusal ? planned.request.plan : null;
}

type Planned =
  | { readonly refusal: null; readonly request: AdmittedRequest }
  | { readonly refusal: Refusal; readonly rate: RateStatus };

/**
 * Runs step 2, second half, in the organization's turn. A request counts once it is planned; without turns, a
 * whole burst would be planned before any of it counts.
 */
function planInTurn(services: DecisionServices, served: ServedRequest): Promise<Planned | Refusal> {
  const { call, caller } = served;
  return inPlanningTurn(services, call, caller, () => planWithinLimits(services, served));
}

/** Runs step 2, second half: requests and tokens per minute. Unreachable windows admit no request. */
async function planWithinLimits(
  services: DecisionServices,
  checked: ServedRequest,
): Promise<Planned | Refusal> {
  const { organization_id, limits } = checked.caller;
  const { patience } = checked.call;
  if (patience?.aborted === true) return notAsked();
  try {
    // Planning is the expensive part of the estimate, so a request that cannot be admitted anyway is refused
    // first.
    const exhausted = patience === null ? await services.limiter.exhausted(organization_id, limits) : null;
    if (exhausted !== null) {
      return { refusal: rateLimited(exhausted, limits, null), rate: exhausted.status };
    }
    const plan = await planOrRefusal(services, checked);
    const tokens = estimatedTokens(tokensOf(plan));
    const admission =
      patience === null
        ? await services.limiter.admit(organization_id, limits, tokens)
        : await services.batch_admission.run(organization_id, () =>
            admitInTime(services, { organization_id, limits, estimated_tokens: tokens, patience }),
          );
    if (admission === null) return notAsked();
    if (!admission.admitted) {
      return { refusal: rateLimited(admission, limits, tokens), rate: admission.status };
    }
    const { reservation, status: rate } = admission;
    const admitted_at_ms = services.clock.now_ms();
    return { refusal: null, request: { ...checked, plan, reservation, admitted_at_ms, rate } };
  } catch (error) {
    return failed(services, checked.call, 'rate_windows', 'billing_unavailable', error);
  }
}

/**
 * Returns the most tokens that the request can be billed; 1, the smallest number, for a request without a
 * plan.
 */
function tokensOf(plan: DecisionPlan | Refusal): number {
  return plan instanceof Refusal ? 1 : plan.input_tokens;
}

/** Returns the hold of the request: its largest possible cost, by the plan's most tokens. */
function largestCost({ caller, model, plan, admitted_at_ms }: AdmittedRequest) {
  return {
    organization_id: caller.organization_id,
    project_id: caller.project_id,
    amount_micros: cost_micros(tokensOf(plan), model.input_price_micros_per_million_tokens),
    at_ms: admitted_at_ms,
  };
}

/** Runs step 3: reserves the largest cost, within the credit and the project's monthly limit. */
async function placeHold(
  services: DecisionServices,
  admitted: AdmittedRequest,
): Promise<HeldRequest | Refusal> {
  const refuse = (refusal: Refusal): Refusal => {
    void admitted.reservation.settle(0);
    return refusal;
  };
  if (services.books.shares_commits) {
    // The flush is independent of the hold; a later request repeats a failed one.
    services.keys.flushLastUsed().catch((error: unknown) => {
      services.problems.report({ request_id: null, step: 'last_used', code: null, error });
    });
  }
  try {
    const { request_id } = admitted.call;
    const { claim } = admitted;
    const asked = { ...largestCost(admitted), request_id, ...(claim === null ? {} : { claim }) };
    const result = await services.books.hold(asked);
    return result.held
      ? { ...admitted, hold: result.hold }
      : refuse(holdRefused(result, asked.amount_micros));
  } catch (error) {
    return refuse(failed(services, admitted.call, 'hold', 'billing_unavailable', error));
  }
}

/** Runs step 4: returns the model's answers. Rejects as the model, its queue and its deadline do. */
async function askModel(
  services: DecisionServices,
  { request, caller, call, served }: HeldRequest,
  plan: DecisionPlan,
  time: ModelTime,
): Promise<Decided> {
  const deadline = new ModelDeadline(call.signal, services.model_time);
  const ask = (place: Place) =>
    served.use(
      request.mode,
      async (model, signal) => {
        deadline.wait(() => place.retryAfter_s());
        return await answerRequest(model, request, plan, {
          scope: caller.organization_id,
          signal,
          takeTurn: (turn, work, given_up) => {
            const begin = () => {
              deadline.begin();
              time.begin();
              return work();
            };
            return place.run(turn, begin, given_up);
          },
          clock: services.clock,
        });
      },
      deadline.signal,
    );
  try {
    return await served.turns.enter(caller.organization_id, ask, call.patience);
  } finally {
    deadline.end();
  }
}

/**
 * Runs step 5 after a failure: releases the hold without a charge, with the usage row. A client that went
 * away has no row, because its request was aborted. Its tokens stay in the window, so that leaving early
 * gives no free work.
 */
async function releaseHold(
  services: DecisionServices,
  held: HeldRequest,
  refusal: Refusal,
  latency_ms: number,
  keeps_row = true,
): Promise<Refusal> {
  const { signal } = held.call;
  // A client of a request that a stop aborted is still there, and gets the error.
  const is_abandoned = signal.aborted && !(signal.reason instanceof ServiceStopped);
  if (!is_abandoned) void held.reservation.settle(0);
  const row = usageRow(held, {
    ...FAILED,
    status: refusal.status,
    latency_ms: roundedLatency(latency_ms),
  });
  await services.books.release(held.hold, is_abandoned || !keeps_row ? null : row);
  return refusal;
}

/** Runs step 5 for a request without an answer. A line that was not asked leaves no row, because it is sent again. */
function releaseUnanswered(
  services: DecisionServices,
  held: HeldRequest,
  refusal: Refusal,
  { queue_ms, model_ms }: ModelTime,
): Promise<Refusal> {
  return releaseHold(services, held, refusal, queue_ms + model_ms, refusal.code !== 'overloaded');
}

/**
 * Runs step 4 of a request without a plan, which the model rejects before it starts. Its usage row is stored
 * only within the organization's budget, because neither credit nor the model's time bounds their number.
 */
function releaseRejected(
  services: DecisionServices,
  held: HeldRequest,
  rejection: Refusal,
): Promise<Refusal> {
  const { organization_id } = held.caller;
  const keeps_row = services.rejected_rows.take(organization_id, services.clock.monotonic_ms());
  return releaseHold(services, held, rejection, 0, keeps_row);
}

/** Runs steps 5 and 6: deducts the exact cost, and only then returns the answer. */
async function charge(
  services: DecisionServices,
  held: HeldRequest,
  { record_tokens_left_out }: DecisionPlan,
  decided: Decided,
): Promise<WrittenDecision | Refusal> {
  const { answers, input_tokens, latency_ms } = decided;
  const questions = held.request.questions.length;
  const cost = cost_micros(input_tokens, held.model.input_price_micros_per_million_tokens);
  const charged = usageRow(held, { status: 200, questions, input_tokens, cost, latency_ms });
  const released = usageRow(held, { ...FAILED, status: ERRORS.billing_unavailable.status, latency_ms });
  const decision: WrittenDecision = {
    id: services.identifiers.id('decision'),
    object: 'decision',
    created: Math.floor(held.admitted_at_ms / 1_000),
    model: held.model.id,
    mode: held.request.mode,
    answers,
    usage: { input_tokens, output_tokens: 0, decisions: questions, cost_usd: dollarsOf(cost) },
    latency_ms,
  };
  const kept = held.claim === null ? null : keptOf(decision, { cost_micros: cost, record_tokens_left_out });
  try {
    await services.books.charge(held.hold, cost, charged, released, kept);
  } catch (error) {
    void held.reservation.settle(0);
    return failed(services, held.call, 'charge', 'billing_unavailable', error);
  }
  void held.reservation.settle(input_tokens);
  return decision;
}

interface Ending {
  readonly status: number;
  readonly questions: number;
  readonly input_tokens: number;
  readonly cost: number;
  readonly latency_ms: number;
}

/** The values of a failed request, which answered nothing and costs nothing. */
const FAILED = { questions: 0, input_tokens: 0, cost: 0 };

function usageRow(held: HeldRequest, ending: Ending): UsageRow {
  const { call, caller, model } = held;
  return {
    request_id: call.request_id,
    time_ms: held.admitted_at_ms,
    organization_id: caller.organization_id,
    project_id: caller.project_id,
    api_key_id: caller.key_id,
    model: model.id,
    mode: held.request.mode,
    endpoint: call.endpoint,
    status: ending.status,
    questions: ending.questions,
    input_tokens: ending.input_tokens,
    cost_micros: ending.cost,
    latency_ms: ending.latency_ms,
  };
}
