import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import { limitsFor, type TierLimits, tierInForce } from '../contract/tiers.ts';
import type { FoundOrganization, Organization } from '../store/account-records.ts';

/** The most organizations of one page. */
export const ORGANIZATIONS_PAGE_MAX = 100;

/** An organization in the operator's search, with its current tier and limits. */
export interface OrganizationOverview extends FoundOrganization {
  readonly tier_in_force: number;
  /** Null without API access (Tier 0). */
  readonly limits: TierLimits | null;
}

/** The last organization of a page. */
export type OrganizationCursor = Pick<Organization, 'id' | 'created_at_ms'>;

/**
 * Returns a page of the organizations, newest first (operator only). A text must be part of the name, the id
 * or a member's address. ASCII letters match in either case. `without_owner` leaves only those that nobody owns.
 * Rejects with `permission_denied`.
 */
export async function searchOrganizations(
  { store, clock }: Pick<AccountContext, 'store' | 'clock'>,
  actor: Actor,
  given: {
    readonly text?: string;
    readonly without_owner?: boolean;
    readonly cursor?: OrganizationCursor | null;
    readonly limit?: number;
  } = {},
): Promise<{ readonly items: readonly OrganizationOverview[]; readonly next: OrganizationCursor | null }> {
  requireOperator(actor);
  const limit = Math.min(given.limit ?? ORGANIZATIONS_PAGE_MAX, ORGANIZATIONS_PAGE_MAX);
  const found = await store.accounts.searchOrganizations({
    text: (given.text ?? '').trim(),
    without_owner: given.without_owner,
    after: given.cursor ?? null,
    limit: limit + 1,
  });
  const now_ms = clock.now_ms();
  const items = found.slice(0, limit).map((organization) => overview(organization, now_ms));
  const last = items.at(-1);
  const has_more = found.length > limit && last !== undefined;
  return { items, next: has_more ? { id: last.id, created_at_ms: last.created_at_ms } : null };
}

/**
 * Returns one organization as the search shows it (operator only). Rejects with `permission_denied`,
 * `not_found`.
 */
export async function organizationOverview(
  { store, clock }: Pick<AccountContext, 'store' | 'clock'>,
  actor: Actor,
  organization_id: string,
): Promise<OrganizationOverview> {
  requireOperator(actor);
  const [found] = await store.accounts.searchOrganizations({
    id: organization_id,
    text: '',
    after: null,
    limit: 1,
  });
  if (found === undefined) throw new AccountError('not_found', 'There is no such organization.');
  return overview(found, clock.now_ms());
}

function overview(organization: FoundOrganization, now_ms: number): OrganizationOverview {
  const tier_in_force = tierInForce(organization, now_ms);
  return { ...organization, tier_in_force, limits: limitsFor(tier_in_force, organization) };
}
