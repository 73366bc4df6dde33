import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { permits, requirePermission } from '../access/permissions.ts';
import { readOrganization } from '../accounts/organizations.ts';
import {
  type DedicatedLimits,
  limitsFor,
  type NextTier,
  nextTier,
  type TierLimits,
  tierInForce,
} from '../contract/tiers.ts';
import type { TierChange } from '../store/account-records.ts';
import type { MovementPage, MovementQuestion, MovementReader } from '../store/movement-reader.ts';
import type { Payment } from '../store/payment-records.ts';
import { topUpRange } from './credit.ts';
import { MANUAL_PROVIDER_NAME } from './manual.ts';
import type { PaymentProvider } from './provider.ts';

/** The parts of the rules that show credit. */
export interface BillingContext extends Pick<AccountContext, 'store' | 'clock'> {
  readonly reader: MovementReader;
}

/** The most tier changes and refunds that are returned, newest first. */
const NEWEST = 100;

/** The most tier changes that are read: more than any organization has. */
const TIER_CHANGES_MAX = 1_000;

/** The terms on which an organization can add credit now. */
export interface TopUpTerms {
  /** The range of one top-up, in micro-dollars. */
  readonly least_micros: number;
  readonly most_micros: number;
  readonly provider: string;
  /** True if the operator confirms each payment; there is no checkout page. */
  readonly is_manual: boolean;
  /** True if the role of the actor allows a top-up. */
  readonly is_allowed: boolean;
}

/** An organization's credit, debts and tier. */
export interface Billing {
  /** May be below zero: a refund can take back credit that was already spent. */
  readonly credit_micros: number;
  readonly held_micros: number;
  readonly open_holds: number;
  /** The credit that new requests can use: the credit without the holds. */
  readonly available_micros: number;
  /** The lifetime purchases less refunds, and the time of the first one. */
  readonly paid_micros: number;
  readonly first_paid_at_ms: number | null;
  readonly tier: number;
  /** The limits in force; null without API access (Tier 0). */
  readonly limits: TierLimits | null;
  /** The operator's limits for this organization; null where the tier's value applies. */
  readonly dedicated_limits: DedicatedLimits;
  /** The operator's minimum tier for the organization. */
  readonly minimum_tier: number | null;
  /** The next tier, with the limits that this organization would have there; null in the highest tier. */
  readonly next_tier: NextTier | null;
  /** The tier changes, newest first, at most a thousand. */
  readonly tier_changes: readonly Omit<TierChange, 'organization_id'>[];
  /** The credit below which members are alerted; null for no alert. */
  readonly credit_alert_micros: number | null;
  readonly top_up: TopUpTerms;
  /** The payments and refunds that are not settled yet, oldest first. */
  readonly pending: readonly Payment[];
  /** The newest refunds and their reversals (which are top-ups), newest first. */
  readonly refunds: readonly Payment[];
}

/** Returns an organization's credit and tier, except its movements. Rejects with `not_found`. */
export async function billing(
  { store, clock }: Omit<BillingContext, 'reader'>,
  actor: Actor,
  provider: Pick<PaymentProvider, 'name'>,
  organization_id: string,
): Promise<Billing> {
  // One snapshot, so that the refunds and the balance are consistent.
  return await store.snapshot(async (records) => {
    await requirePermission(records, actor, organization_id, 'see');
    const organization = await readOrganization(records, organization_id);
    const now_ms = clock.now_ms();
    const tier = tierInForce(organization, now_ms);
    const { credit_micros, held_micros, open_holds, paid_micros, first_paid_at_ms, minimum_tier } =
      organization;
    const { requests_per_minute, tokens_per_minute, questions_per_request, credit_alert_micros } =
      organization;
    const dedicated_limits = { requests_per_minute, tokens_per_minute, questions_per_request };
    const { least, most } = topUpRange(organization, now_ms);
    const next = nextTier(organization, now_ms);
    const changes = await records.accounts.tierChanges(organization_id, TIER_CHANGES_MAX);
    return {
      credit_micros,
      held_micros,
      open_holds,
      available_micros: credit_micros - held_micros,
      paid_micros,
      first_paid_at_ms,
      tier,
      limits: limitsFor(tier, dedicated_limits),
      dedicated_limits,
      minimum_tier,
      credit_alert_micros,
      next_tier:
        next === null
          ? null
          : {
              ...next,
              limits: limitsFor(next.tier, dedicated_limits),
              top_up_max_micros: organization.top_up_max_micros ?? next.top_up_max_micros,
            },
      tier_changes: changes.map(({ organization_id: _, ...change }) => change),
      top_up: {
        least_micros: least,
        most_micros: most,
        provider: provider.name,
        is_manual: provider.name === MANUAL_PROVIDER_NAME,
        is_allowed: await permits(records, actor, organization_id, 'top_up'),
      },
      pending: await records.payments.pendingPayments(organization_id),
      refunds: await records.payments.returnsTo(organization_id, NEWEST),
    };
  });
}

/**
 * Returns the top-ups, refunds and charges of an organization, newest first. Charges are single, or joined by
 * UTC day. All lines add up to the balance. Rejects with `not_found`.
 */
export async function creditMovements(
  { store, reader }: Omit<BillingContext, 'clock'>,
  actor: Actor,
  question: MovementQuestion,
): Promise<MovementPage> {
  await requirePermission(store, actor, question.organization_id, 'see');
  return reader.movementLines(question);
}
