import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requireOperator } from '../access/permissions.ts';
import type { KeptEvent } from '../store/payment-records.ts';

/**
 * Returns the number of payment events that fit no payment here and wait for the operator. Rejects with
 * `permission_denied`.
 */
export async function countUnresolvedEvents(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
): Promise<number> {
  requireOperator(actor);
  return await store.payments.countEvents('unresolved');
}

/**
 * Returns the stored events that name an organization or are about its payments, whatever came of them, newest
 * first (operator only). Rejects with `permission_denied`.
 */
export async function listOrganizationEvents(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  given: { readonly organization_id: string; readonly limit: number },
): Promise<KeptEvent[]> {
  requireOperator(actor);
  return await store.payments.eventsOf(given.organization_id, given.limit);
}

/**
 * Returns the stored payment events, newest first: the unresolved ones, or all (operator only). Rejects with
 * `permission_denied`.
 */
export async function listPaymentEvents(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
  given: { readonly unresolved_only: boolean; readonly limit: number },
): Promise<KeptEvent[]> {
  requireOperator(actor);
  return await store.payments.listEvents(given.limit, given.unresolved_only ? 'unresolved' : undefined);
}
