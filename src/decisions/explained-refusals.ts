import { formatDollars } from '../contract/money.ts';
import { ERRORS, type Refusal } from '../errors/errors.ts';
import type { RateLimits, RateRefusal } from '../limits/rate-status.ts';
import type { CatalogModel } from '../store/catalog-records.ts';
import type { ClaimTaken, HoldRefusal } from '../store/hold.ts';
import { DecisionRefusal } from './refusal.ts';

/** The most models that the message of `model_not_found` names. */
const NAMED_MODELS_MAX = 20;

/** Returns the refusal for an unknown model, which names the decision models. */
export function modelNotFound(live: readonly CatalogModel[]): Refusal<'model_not_found'> {
  const ids = live.filter(({ kind }) => kind === 'decision').map(({ id }) => id);
  const named = ids.slice(0, NAMED_MODELS_MAX).join(', ');
  const more = ids.length > NAMED_MODELS_MAX ? ', …' : '';
  const there_are = ids.length === 0 ? 'There is none now' : `There are: ${named}${more}`;
  return new DecisionRefusal('model_not_found', {
    message: `${ERRORS.model_not_found.message} ${there_are}.`,
    param: 'model',
  });
}

/** Returns the refusal for a reached rate limit; `tokens` are those of the request, where known. */
export function rateLimited(
  { limit, retry_after_s, status }: RateRefusal,
  { requests_per_minute, tokens_per_minute }: RateLimits,
  tokens: number | null,
): DecisionRefusal {
  const reached = 'The organization has reached its limit of';
  if (limit === 'requests') {
    const message = `${reached} ${requests_per_minute} requests per minute.`;
    return new DecisionRefusal('rate_limit_exceeded', { message, retry_after_s });
  }
  const needs =
    tokens === null ? '' : `: this request needs ${tokens}, and ${status.remaining_tokens} are left`;
  // Contract: such a request runs only when the window is empty.
  const above = tokens !== null && tokens > tokens_per_minute ? ' It runs when the window is empty.' : '';
  const message = `${reached} ${tokens_per_minute} input tokens per minute${needs}.${above}`;
  return new DecisionRefusal('rate_limit_exceeded', { message, retry_after_s });
}

/** Returns the refusal for a hold of that amount that was not placed. */
export function holdRefused(why: HoldRefusal | ClaimTaken, amount_micros: number): DecisionRefusal {
  switch (why.refusal) {
    case 'idempotency_key_in_use':
      return new DecisionRefusal(why.refusal);
    case 'insufficient_credit':
      return new DecisionRefusal('insufficient_credit', {
        message: `The credit of the organization does not cover this request: ${formatDollars(why.available_micros)} US dollars are free of holds, and its hold needs ${formatDollars(amount_micros)}.`,
      });
    case 'project_spend_limit':
      return limitReached(why.refusal, `The project "${why.project}"`, why.spend_limit_micros);
    case 'api_key_spend_limit':
      return limitReached(why.refusal, `The API key "${why.api_key}"`, why.monthly_limit_micros);
  }
}

function limitReached(
  code: 'project_spend_limit' | 'api_key_spend_limit',
  who: string,
  limit_micros: number,
): DecisionRefusal {
  const message = `${who} has reached its monthly spend limit of ${formatDollars(limit_micros)} US dollars. It starts anew with the next UTC month.`;
  return new DecisionRefusal(code, { message });
}
