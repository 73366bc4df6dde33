import { DAY_MS } from '../time/clock.ts';
import { MICROS_PER_DOLLAR } from './money.ts';

/** The limits of a tier (contract: rate limits); null where there is no API access. */
export interface TierLimits {
  readonly requests_per_minute: number;
  readonly tokens_per_minute: number;
  readonly questions_per_request: number;
}

export interface Tier {
  readonly tier: number;
  /** The total payments, and the days since the first one, that the tier requires. */
  readonly paid_micros: number;
  readonly days: number;
  readonly limits: TierLimits | null;
  readonly top_up_max_micros: number;
}

/** The highest number of questions in one request of any tier; an organization's own limit may be higher. */
const QUESTIONS_MAX = 64;

/** The smallest top-up, on every tier. */
export const TOP_UP_MIN_MICROS = 5 * MICROS_PER_DOLLAR;

/**
 * Returns a row of the table: what the tier requires (dollars paid, days since the first payment), then its limits.
 * Each request a minute brings 1,000 tokens a minute. The largest top-up is in dollars.
 */
function tier(
  number: number,
  paid: number,
  days: number,
  requests_per_minute: number,
  questions_per_request: number,
  top_up_max: number,
): Tier {
  return {
    tier: number,
    paid_micros: paid * MICROS_PER_DOLLAR,
    days,
    limits:
      requests_per_minute === 0
        ? null
        : { requests_per_minute, tokens_per_minute: requests_per_minute * 1_000, questions_per_request },
    top_up_max_micros: top_up_max * MICROS_PER_DOLLAR,
  };
}

/** The contract's table of tiers, lowest first; a tier's number is its index. */
export const TIERS: readonly Tier[] = [
  tier(0, 0, 0, 0, 0, 25),
  tier(1, 5, 0, 300, 32, 25),
  tier(2, 50, 7, 700, QUESTIONS_MAX, 100),
  tier(3, 250, 14, 1_500, QUESTIONS_MAX, 300),
  tier(4, 1_000, 30, 2_500, QUESTIONS_MAX, 500),
  tier(5, 2_500, 60, 5_000, QUESTIONS_MAX, 1_000),
];

/** Returns the tier that total payments less refunds, and the time since the first one, have reached. */
function tierFor(paid_micros: number, first_paid_at_ms: number | null, now_ms: number): number {
  const days = first_paid_at_ms === null ? 0 : (now_ms - first_paid_at_ms) / DAY_MS;
  const reached = TIERS.findLast(
    (candidate) => paid_micros >= candidate.paid_micros && days >= candidate.days,
  );
  return reached?.tier ?? 0;
}

/** The facts that decide the tier of an organization. */
export interface TierStanding {
  /** The tier that was last stored. */
  readonly tier: number;
  /** The operator's minimum tier, if any. */
  readonly minimum_tier: number | null;
  readonly paid_micros: number;
  readonly first_paid_at_ms: number | null;
}

/** Returns the tier that payments, time and the operator's minimum give now. */
export function tierReached(standing: TierStanding, now_ms: number): number {
  const { paid_micros, first_paid_at_ms, minimum_tier } = standing;
  return Math.max(tierFor(paid_micros, first_paid_at_ms, now_ms), minimum_tier ?? 0);
}

/**
 * Returns the tier in force, including a rise by time that is not stored yet. Time alone lowers nothing: a
 * wall clock that steps back must not remove a tier.
 */
export function tierInForce(standing: TierStanding, now_ms: number): number {
  return Math.max(standing.tier, tierReached(standing, now_ms));
}

/** The requirements of the tier above the one in force. */
export interface NextTier extends Tier {
  /** The amount still to be paid for it; 0 when only time is missing. */
  readonly missing_micros: number;
  /** The time at which its days have passed since the first payment; null before the first payment. */
  readonly days_passed_at_ms: number | null;
}

/** Returns the requirements of the next tier (contract: the table of tiers); null in the highest tier. */
export function nextTier(standing: TierStanding, now_ms: number): NextTier | null {
  const next = TIERS[tierInForce(standing, now_ms) + 1];
  if (next === undefined) return null;
  const { paid_micros, first_paid_at_ms } = standing;
  return {
    ...next,
    missing_micros: Math.max(0, next.paid_micros - paid_micros),
    days_passed_at_ms: first_paid_at_ms === null ? null : first_paid_at_ms + next.days * DAY_MS,
  };
}

/** The operator's limits for one organization; null where the tier's own value applies. */
export type DedicatedLimits = { readonly [Limit in keyof TierLimits]: TierLimits[Limit] | null };

/** Returns the limits in force: the tier's, except for dedicated ones. Null without API access (Tier 0). */
export function limitsFor(tierNumber: number, dedicated: DedicatedLimits): TierLimits | null {
  const limits = TIERS[tierNumber]?.limits ?? null;
  if (limits === null) return null;
  return {
    requests_per_minute: dedicated.requests_per_minute ?? limits.requests_per_minute,
    tokens_per_minute: dedicated.tokens_per_minute ?? limits.tokens_per_minute,
    questions_per_request: dedicated.questions_per_request ?? limits.questions_per_request,
  };
}
