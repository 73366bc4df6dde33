import { planTokens } from '../../native/engine.ts';
import type { Caller } from '../accounts/key-directory.ts';
import { dollarsOf, inputCost_micros } from '../contract/money.ts';
import { overloaded } from '../errors/errors.ts';
import { planningSlot } from './admit-request.ts';
import type { AskedCall } from './call.ts';
import { authenticate, checkRequest } from './check-request.ts';
import type { DecisionServices } from './ports.ts';
import { DecisionRefusal } from './refusal.ts';
import type { TokenCount } from './schemas.ts';

/** The outcome of a call that asks for the number of its request's tokens. */
export interface TokenCountOutcome {
  readonly result: TokenCount | DecisionRefusal;
  readonly caller: Caller | null;
  /** The requested model and mode, once the request is checked. */
  readonly asked?: Pick<TokenCount, 'model' | 'mode'>;
  /** The fields of the checked request that nothing read. */
  readonly ignored_fields?: readonly string[];
}

/**
 * Counts the tokens and the cost of a request, by the steps of a decision up to its plan. It is refused as a
 * decision is refused there, but never for a rate limit. Nothing is held, charged or recorded. Never throws.
 */
export async function countTokens(services: DecisionServices, call: AskedCall): Promise<TokenCountOutcome> {
  const known = await authenticate(services, call);
  const caller = known.result;
  if (caller instanceof DecisionRefusal) return { result: caller, caller: known.caller };
  const checked = await checkRequest(services, call, caller);
  if (checked instanceof DecisionRefusal) return { result: checked, caller };
  const { model, request } = checked;
  const { mode, ignored_fields } = request;
  const about = { caller, asked: { model: model.id, mode }, ignored_fields };
  using served = services.models.for(model);
  using slot = await planningSlot(services, { ...checked, call, served }, caller);
  if (slot === null) return { result: overloaded('waiting_bodies'), ...about };
  const plan = await slot.plan();
  if (plan instanceof DecisionRefusal) return { result: plan, ...about };
  const { input_tokens, record_tokens_left_out, plans } = plan;
  // An upstream of decisions makes its own plans, and its own report of tokens is billed.
  const exact = plans.length > 0;
  const result: TokenCount = {
    object: 'token_count',
    model: model.id,
    mode,
    input_tokens,
    read_tokens: exact ? plans.reduce((sum, part) => sum + planTokens(part), 0) : null,
    cost_usd: dollarsOf(inputCost_micros(model, input_tokens)),
    exact,
    record_tokens_left_out,
  };
  return { result, ...about };
}
