import { AccountError } from '../access/account-error.ts';
import type { Actor } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { recordAct } from '../audit-log/record.ts';
import { removeAllOwnModels } from '../catalog/own-models.ts';
import type { Organization } from '../store/account-records.ts';
import type { Records } from '../store/store.ts';
import { monthOf } from '../time/month.ts';
import { archiveWithKeys } from './projects.ts';
import { requireUser } from './require-user.ts';
import { revokeInvitationsOf } from './revoke-invitations.ts';

/** The replacements of personal names. */
const DELETED_USER_NAME = 'Deleted user';
const CLOSED_ORGANIZATION_NAME = 'Closed organization';

/** The effect on an organization when a member deletes their account. */
type Fate = 'leave' | 'close';

/**
 * Returns the effects of deleting an account, for the page that asks for confirmation. It lists the
 * organizations that close, and those that prevent the deletion, with the reason. Changes nothing. Rejects
 * with `permission_denied`.
 */
export async function previewAccountDeletion(
  { store }: Pick<AccountContext, 'store'>,
  actor: Actor,
): Promise<{
  readonly closes: readonly Pick<Organization, 'id' | 'name'>[];
  readonly prevented_by: readonly (Pick<Organization, 'id' | 'name'> & {
    readonly reason: 'last_owner' | 'organization_has_credit';
  })[];
}> {
  if (actor.kind !== 'user') throw new AccountError('permission_denied');
  const closes: Pick<Organization, 'id' | 'name'>[] = [];
  const prevented_by: (Pick<Organization, 'id' | 'name'> & {
    readonly reason: 'last_owner' | 'organization_has_credit';
  })[] = [];
  for (const organization of await store.accounts.organizationsOf(actor.user_id)) {
    const { id, name } = organization;
    const fate = await fateOf(store, organization, actor.user_id);
    if (fate === 'close') closes.push({ id, name });
    else if (fate !== 'leave') prevented_by.push({ id, name, reason: fate });
  }
  return { closes, prevented_by };
}

/**
 * Deletes the account of the user who asks, in one transaction.
 *
 * - Where there are other members, the user leaves, and the invitations that they sent are revoked. The last
 *   owner must first hand the organization over.
 * - Where the user is the only member, the organization closes. Its projects are archived, its keys and
 *   invitations revoked, its alerts and its own models deleted, and it has no member any more. It must have neither credit nor
 *   running requests. Its ledger, usage, audit log and debt stay, because the books must balance. Credit of a pending payment
 *   stays with it, and the operator can give it an owner again. A personal organization loses its name.
 * - The user's row stays without name and address, because keys, payments and the audit log refer to it.
 *   The address can sign up again. Sessions, ways to sign in and open invitations of the address end.
 *
 * The caller has checked the password. Rejects with `permission_denied` (the operator's own power deletes
 * nobody), `not_found`, `last_owner`, `organization_has_credit`.
 */
export async function deleteAccount(context: AccountContext, actor: Actor): Promise<void> {
  if (actor.kind !== 'user') throw new AccountError('permission_denied');
  const { user_id } = actor;
  const { store, clock } = context;
  await store.transaction(async (records) => {
    const { accounts, invitations } = records;
    const user = await requireUser(records, user_id);
    for (const organization of await accounts.organizationsOf(user_id)) {
      const fate = await fateOf(records, organization, user_id);
      if (fate === 'close') await closeOrganization(records, context, actor, organization);
      else if (fate === 'leave') await leave(records, context, actor, organization);
      else throw new AccountError(fate, sentenceOf(fate, organization));
    }
    const deleted_at_ms = clock.now_ms();
    // Without "@", so that it cannot be signed up or invited.
    const email = `deleted:${user_id}`;
    await invitations.forgetAddress(user.email, email, deleted_at_ms);
    await accounts.anonymizeUser(user_id, { email, name: DELETED_USER_NAME, deleted_at_ms });
    await recordAct(records, context, actor, {
      action: 'account.delete',
      organization_id: null,
      object_id: user_id,
    });
  });
}

async function fateOf(
  { accounts }: Pick<Records, 'accounts'>,
  { id: organization_id, credit_micros, open_holds }: Organization,
  user_id: string,
): Promise<Fate | 'last_owner' | 'organization_has_credit'> {
  if ((await accounts.countMembers(organization_id)) === 1) {
    return credit_micros > 0 || open_holds > 0 ? 'organization_has_credit' : 'close';
  }
  const role = await accounts.roleOf({ organization_id, user_id });
  return role === 'owner' && (await accounts.countMembers(organization_id, 'owner')) === 1
    ? 'last_owner'
    : 'leave';
}

function sentenceOf(
  fate: 'last_owner' | 'organization_has_credit',
  { name }: Pick<Organization, 'name'>,
): string {
  return fate === 'last_owner'
    ? `You are the last owner of ${name}: make somebody else an owner first.`
    : `You are the only member of ${name}, which has credit or running requests: use it up, or hand it over first.`;
}

async function leave(
  records: Pick<Records, 'accounts' | 'invitations' | 'audit_log'>,
  context: Pick<AccountContext, 'clock'>,
  actor: Actor & { readonly kind: 'user' },
  { id: organization_id }: Organization,
): Promise<void> {
  const member = { organization_id, user_id: actor.user_id };
  await records.accounts.deleteMember(member);
  await recordAct(records, context, actor, {
    action: 'member.leave',
    organization_id,
    object_id: actor.user_id,
    detail: await revokeInvitationsOf(records, context, member, null),
  });
}

async function closeOrganization(
  records: Records,
  context: Pick<AccountContext, 'clock'>,
  actor: Actor & { readonly kind: 'user' },
  { id: organization_id, personal_user_id }: Organization,
): Promise<void> {
  const { accounts, invitations, alerts } = records;
  const { user_id } = actor;
  const now_ms = context.clock.now_ms();
  const projects = await accounts.listProjects({ organization_id, archived: false, month: monthOf(now_ms) });
  for (const project of projects) await archiveWithKeys(records, context, actor, project);
  await invitations.revokeInvitationsInto(organization_id, null, now_ms);
  await accounts.deleteMember({ organization_id, user_id });
  await alerts.forgetOrganization(organization_id);
  await removeAllOwnModels(records, organization_id);
  if (personal_user_id === user_id) {
    await accounts.renameOrganization(organization_id, CLOSED_ORGANIZATION_NAME);
  }
  await recordAct(records, context, actor, {
    action: 'organization.close',
    organization_id,
    object_id: organization_id,
    detail: { projects: projects.length },
  });
}
