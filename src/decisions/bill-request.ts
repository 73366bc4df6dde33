import { dollarsOf, inputCost_micros } from '../contract/money.ts';
import { isClientGone } from '../errors/abort-reasons.ts';
import { ERRORS } from '../errors/errors.ts';
import { inBackground, reported } from '../problems/problems.ts';
import { numbersOf } from '../questions/question.ts';
import type { KeptAnswer } from '../store/kept-answer.ts';
import type { UsageRow } from '../store/usage-row.ts';
import { mostTokensOf } from './admit-request.ts';
import type { AdmittedRequest, Decided, HeldRequest, OutcomeFacts } from './call.ts';
import { holdRefused } from './explained-refusals.ts';
import type { DecisionServices } from './ports.ts';
import type { DecisionRefusal } from './refusal.ts';
import type { WrittenDecision } from './schemas.ts';

/** Returns the hold of the request: its largest possible cost, by the plan's most tokens. */
function largestCost({ caller, model, plan, admitted_at_ms }: AdmittedRequest) {
  return {
    organization_id: caller.organization_id,
    project_id: caller.project_id,
    api_key_id: caller.first_key_id,
    amount_micros: inputCost_micros(model, mostTokensOf(plan)),
    at_ms: admitted_at_ms,
  };
}

/** Runs the step `hold`: reserves the largest cost, within the credit and the monthly limits of project and key. */
export async function placeHold(
  services: DecisionServices,
  admitted: AdmittedRequest,
): Promise<HeldRequest | DecisionRefusal> {
  const refuse = (refusal: DecisionRefusal): DecisionRefusal => {
    void admitted.reservation.settle(0);
    return refusal;
  };
  if (services.books.shares_commits) {
    // The flush is independent of the hold; a later request repeats a failed one.
    services.keys.flushLastUsed().catch((error: unknown) => {
      services.problems.report(inBackground('last_used', error));
    });
  }
  try {
    const { request_id } = admitted.call;
    const { claim } = admitted;
    const asked = { ...largestCost(admitted), request_id, ...(claim === null ? {} : { claim }) };
    const result = await services.books.hold(asked);
    if (result.held) return { ...admitted, hold: result.hold };
    const { project_id, api_key_id, amount_micros } = asked;
    const { limit_refusals } = services;
    if (result.refusal === 'project_spend_limit') limit_refusals.note(project_id, amount_micros);
    if (result.refusal === 'api_key_spend_limit') limit_refusals.note(api_key_id, amount_micros);
    return refuse(holdRefused(result, amount_micros));
  } catch (error) {
    const { request_id } = admitted.call;
    return refuse(
      reported(services.problems, { request_id, step: 'hold', code: 'billing_unavailable', error }),
    );
  }
}

/**
 * Runs the step `release`: frees the hold without a charge, with the usage row. A client that went away has no row,
 * because its request was aborted. Its tokens stay in the window, so that leaving early gives no free work.
 */
export async function release(
  services: DecisionServices,
  held: HeldRequest,
  refusal: DecisionRefusal,
  { model_time }: Pick<OutcomeFacts, 'model_time'>,
): Promise<DecisionRefusal> {
  const is_client_gone = isClientGone(held.call.signal);
  if (!is_client_gone) void held.reservation.settle(0);
  const row = usageRow(held, { ...FAILED, status: refusal.status, latency_ms: model_time?.latency_ms ?? 0 });
  const keeps_row =
    model_time === undefined ? keepsRejectedRow(services, held) : refusal.code !== 'overloaded';
  await services.books.release(held.hold, is_client_gone || !keeps_row ? null : row);
  return refusal;
}

/**
 * Returns true if the usage row of a request that the model rejected is stored. The organization has a budget
 * of them, because neither credit nor the model's time bounds their number.
 */
function keepsRejectedRow({ rejected_rows, clock }: DecisionServices, { caller }: HeldRequest): boolean {
  return rejected_rows.take(caller.organization_id, clock.monotonic_ms());
}

/** Runs the step `charge`: deducts the exact cost, and only then returns the answer. */
export async function charge(
  services: DecisionServices,
  held: HeldRequest,
  decided: Decided,
  { record_tokens_left_out = null }: Pick<OutcomeFacts, 'record_tokens_left_out'>,
): Promise<WrittenDecision | DecisionRefusal> {
  const { answers, input_tokens, latency_ms } = decided;
  const questions = held.request.questions.length;
  const cost_micros = inputCost_micros(held.model, input_tokens);
  const charged = usageRow(held, { status: 200, questions, input_tokens, cost_micros, latency_ms });
  const released = usageRow(held, { ...FAILED, status: ERRORS.billing_unavailable.status, latency_ms });
  const decision: WrittenDecision = {
    id: services.identifiers.id('decision'),
    object: 'decision',
    created: Math.floor(held.admitted_at_ms / 1_000),
    model: held.model.id,
    mode: held.request.mode,
    answers,
    usage: { input_tokens, output_tokens: 0, decisions: questions, cost_usd: dollarsOf(cost_micros) },
    latency_ms,
  };
  const kept = held.claim === null ? null : keptOf(decision, { cost_micros, record_tokens_left_out });
  try {
    await services.books.charge(held.hold, cost_micros, charged, released, kept);
  } catch (error) {
    void held.reservation.settle(0);
    const { request_id } = held.call;
    return reported(services.problems, { request_id, step: 'charge', code: 'billing_unavailable', error });
  }
  void held.reservation.settle(input_tokens);
  return decision;
}

/** Returns the stored part of a decision: everything that the repeated request does not contain. */
function keptOf(
  { answers, usage, ...decision }: WrittenDecision,
  {
    cost_micros,
    record_tokens_left_out,
  }: { readonly cost_micros: number; readonly record_tokens_left_out: number | null },
): KeptAnswer {
  const { id, created, model, mode, latency_ms } = decision;
  const { input_tokens } = usage;
  const numbers = answers.values.map(numbersOf);
  return {
    ...{ id, created, model, mode, input_tokens, cost_micros, latency_ms },
    record_tokens_left_out,
    numbers,
  };
}

type Ending = Pick<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros' | 'latency_ms'>;

/** The values of a failed request, which answered nothing and costs nothing. */
const FAILED = { questions: 0, input_tokens: 0, cost_micros: 0 };

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
    ...ending,
  };
}
