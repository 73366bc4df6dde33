import { planTokens } from '../../native/engine.ts';
import type { Caller } from '../accounts/key-directory.ts';
import { dollarsOf } from '../money.ts';
import { type AskedCall, authenticate, checkRequest } from './check-request.ts';
import { inPlanningTurn, planOrRefusal } from './plan-request.ts';
import type { DecisionServices } from './ports.ts';
import { cost_micros } from './pricing.ts';
import { DecisionRefusal as Refusal } from './refusal.ts';
import type { TokenCount } from './schemas.ts';

/** What became of a call that asks how many tokens its request has. */
export interface TokenCountOutcome {
  readonly result: TokenCount | Refusal;
  readonly caller: Caller | null;
  /** Which model would be asked in which mode, once the request is checked. */
  readonly asked?: Pick<TokenCount, 'model' | 'mode'>;
  /** Fields of the checked request that nothing read. */
  readonly ignored_fields?: readonly string[];
}

/**
 * Counts what a request would read and cost, by the steps of a decision up to its plan. It is refused for what a
 * decision is refused for there, but never for a rate limit. Nothing is held, charged or recorded. Never throws.
 */
export async function countTokens(services: DecisionServices, call: AskedCall): Promise<TokenCountOutcome> {
  const caller = await authenticate(services, call);
  if (caller instanceof Refusal) return { result: caller, caller: null };
  const checked = await checkRequest(services, call, caller);
  if (checked instanceof Refusal) return { result: checked, caller };
  const { model, request } = checked;
  const { mode, ignored_fields } = request;
  const about = { caller, asked: { model: model.id, mode }, ignored_fields };
  using served = services.models.for(model);
  const plan = await inPlanningTurn(services, call, caller, () =>
    planOrRefusal(services, { ...checked, call, served }),
  );
  if (plan instanceof Refusal) return { result: plan, ...about };
  const { input_tokens, record_tokens_left_out, plans } = plan;
  // An upstream of decisions makes its own plans, and bills what it says that it read.
  const exact = plans.length > 0;
  const result: TokenCount = {
    object: 'token_count',
    model: model.id,
    mode,
    input_tokens,
    read_tokens: exact ? plans.reduce((sum, part) => sum + planTokens(part), 0) : null,
    cost_usd: dollarsOf(cost_micros(input_tokens, model.input_price_micros_per_million_tokens)),
    exact,
    record_tokens_left_out,
  };
  return { result, ...about };
}
