import { type Plan, planPairs, planTokens } from './plan/plan.ts';

/** The speed of an engine on this machine, as it was measured. */
export interface EngineSpeed {
  /** Milliseconds for each token of a plan. */
  readonly ms_per_token: number;
  /** Milliseconds for each pair of a token and one that it attends to, which are most of the time of a long record. */
  readonly ms_per_pair: number;
}

/** A plan, and the milliseconds of its evaluation. */
export interface MeasuredPlan {
  readonly plan: Plan;
  readonly duration_ms: number;
}

/** Pairs that take the time of one token at least: what a much faster attention than ours would need. */
const PAIRS_PER_TOKEN_MAX = 20_000;

/** Returns a plan of so many equal tokens, whose ids every vocabulary has, with one read at its end. */
export function speedProbe(tokens: number): Plan {
  const branch = { tokens: Array<number>(tokens - 1).fill(0), reads: [{ index: tokens - 2, tokens: [0] }] };
  return { prefix: [0], branches: [branch] };
}

/**
 * Returns the speed at which both plans take as long as measured. Other work beside them must not make attention free:
 * then it is taken to be as slow as the rest allows.
 */
export function speedOf(short: MeasuredPlan, long: MeasuredPlan): EngineSpeed {
  const [tokens, pairs] = [planTokens(short.plan), planPairs(short.plan)];
  const [long_tokens, long_pairs] = [planTokens(long.plan), planPairs(long.plan)];
  const fitted =
    (long.duration_ms - (short.duration_ms * long_tokens) / tokens) /
    (long_pairs - (pairs * long_tokens) / tokens);
  const least = long.duration_ms / (long_tokens * PAIRS_PER_TOKEN_MAX + long_pairs);
  const most = long.duration_ms / long_pairs;
  // Two equal plans, of a model that reads no longer ones, say nothing about attention.
  const ms_per_pair = Number.isFinite(fitted) ? Math.min(most, Math.max(least, fitted)) : least;
  return { ms_per_token: (long.duration_ms - ms_per_pair * long_pairs) / long_tokens, ms_per_pair };
}

/** Returns the milliseconds that plans should take alone, without a kept prefix. */
export function expectedDuration_ms(speed: EngineSpeed, plans: readonly Plan[]): number {
  return plans.reduce(
    (sum, plan) => sum + speed.ms_per_token * planTokens(plan) + speed.ms_per_pair * planPairs(plan),
    0,
  );
}
