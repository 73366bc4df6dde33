import { CLIENT_TIMEOUT_MS } from '../client-timeout.ts';
import { Refusal } from '../errors.ts';
import { claimOf, IDEMPOTENCY_KEY_LENGTH_MAX, type IdempotencyClaim } from '../idempotency/claim.ts';
import type { KeptAnswer } from '../idempotency/kept-answer.ts';
import type { IdempotencyTurn } from '../idempotency/turns.ts';
import { isJsonObject, JsonObject, type JsonValue } from '../json/json-value.ts';
import { dollarsOf } from '../money.ts';
import { inStep, type RequestSpan } from '../ops/tracing.ts';
import { answerOfNumbers, numbersOf } from '../questions/answer.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';
import { parseDecisionRequest } from './request.ts';
import type { WrittenDecision } from './schemas.ts';

/** A call with an idempotency key. */
export interface KeyedCall {
  readonly request_id: string;
  readonly endpoint: string;
  readonly query_mode: string | null;
  readonly idempotency_key: string;
  readonly api_key_id: string;
  readonly api_key_secret: string;
  readonly organization_id: string;
  readonly readBody: (organization_id: string) => Promise<JsonValue | DecisionRefusal>;
  readonly body_bytes: () => number;
  readonly signal: AbortSignal;
  readonly span: RequestSpan | null;
}

/** The answer to an earlier request with the same key and body, and what of both was not read. */
export class Replay {
  constructor(
    readonly decision: WrittenDecision,
    readonly unread: {
      readonly ignored_fields: readonly string[];
      readonly record_tokens_left_out: number | null;
    },
  ) {}
}

/** The `Retry-After` in seconds for a client that has already waited for the other request. */
const RETRY_AFTER_S = 1;

/**
 * Lets one call of each idempotency key run at a time, with its claim and its body. Resolves with its
 * outcome, with the earlier answer, or with a refusal. A refusal stores nothing, so that the next attempt
 * runs.
 */
export async function decideOnce<Outcome extends { readonly result: unknown }>(
  services: DecisionServices,
  call: KeyedCall,
  run: (claim: IdempotencyClaim, body: JsonValue) => Promise<Outcome>,
): Promise<Outcome | Replay | DecisionRefusal> {
  const { length } = call.idempotency_key;
  if (length === 0 || length > IDEMPOTENCY_KEY_LENGTH_MAX) {
    return new DecisionRefusal('invalid_idempotency_key');
  }
  const body = await call.readBody(call.organization_id);
  if (body instanceof Refusal) return body;
  const claim = claimOf({ ...call, body });
  const waits_until_ms = services.clock.monotonic_ms() + CLIENT_TIMEOUT_MS;
  for (;;) {
    const turn = await inStep(call.span, 'idempotency', () =>
      enterWithinBudget(services, call, claim, waits_until_ms),
    );
    if (turn instanceof Refusal) return turn;
    switch (turn.state) {
      case 'answered':
        return replayOf(turn.kept, body, call.query_mode);
      case 'other_body':
        return new DecisionRefusal('idempotency_key_reused');
      case 'in_use':
        return new DecisionRefusal('idempotency_key_in_use', { retry_after_s: RETRY_AFTER_S });
      case 'runs': {
        const outcome = await run(claim, body).finally(turn.end);
        // Another node was faster, so this call waits for its answer.
        if (!isClaimTaken(outcome.result)) return outcome;
      }
    }
  }
}

/** Enters the queue of the key. A waiting body counts in the same memory as those that wait to be planned. */
async function enterWithinBudget(
  { idempotency, unplanned_bodies, problems }: DecisionServices,
  { request_id, organization_id, body_bytes, signal }: KeyedCall,
  claim: IdempotencyClaim,
  waits_until_ms: number,
): Promise<IdempotencyTurn | DecisionRefusal> {
  const bytes = body_bytes();
  if (!unplanned_bodies.take(organization_id, bytes)) {
    return new DecisionRefusal('overloaded', {
      message: 'Too many large requests of the organization are waiting.',
      retry_after_s: RETRY_AFTER_S,
    });
  }
  try {
    return await idempotency.enter(claim, { waits_until_ms, signal });
  } catch (error) {
    const code = 'billing_unavailable';
    problems.report({ request_id, step: 'idempotency', code, error });
    return new DecisionRefusal(code);
  } finally {
    unplanned_bodies.give(organization_id, bytes);
  }
}

function isClaimTaken(result: unknown): boolean {
  return result instanceof Refusal && result.code === 'idempotency_key_in_use';
}

/** Returns the stored part of a decision: everything that the repeated request does not contain. */
export function keptOf(
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

/** Returns the same decision again, even if the tier allows fewer questions by now. */
function replayOf(kept: KeptAnswer, body: JsonValue, query_mode: string | null): Replay | DecisionRefusal {
  const asked = isJsonObject(body) ? body : new JsonObject<JsonValue>([], []);
  const request = parseDecisionRequest(asked, query_mode, Number.POSITIVE_INFINITY);
  if (request instanceof Refusal) return request;
  const { id, created, model, mode, input_tokens, cost_micros, latency_ms, numbers } = kept;
  const { questions, ignored_fields } = request;
  const { record_tokens_left_out = null } = kept;
  const answers = new JsonObject(
    questions.map((question) => question.id),
    questions.map((question, index) => answerOfNumbers(question, numbers[index] ?? [])),
  );
  const usage = {
    input_tokens,
    output_tokens: 0,
    decisions: questions.length,
    cost_usd: dollarsOf(cost_micros),
  } as const;
  return new Replay(
    { id, object: 'decision', created, model, mode, answers, usage, latency_ms },
    { ignored_fields, record_tokens_left_out },
  );
}
