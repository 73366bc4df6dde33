import { AccountError } from '../../access/account-error.ts';
import type { Actor } from '../../access/actor.ts';
import { requirePermission } from '../../access/permissions.ts';
import type { Permission } from '../../contract/roles.ts';
import type { Store } from '../../store/store.ts';

/**
 * Rejects with `not_found` unless the actor is a member and the key belongs to the organization in the path.
 * Rejects with `permission_denied` unless their role allows it. Neither error reveals anything about the key.
 */
export async function requireKeyOf(
  store: Pick<Store, 'accounts' | 'keys'>,
  actor: Actor,
  { organization_id, key_id }: { readonly organization_id: string; readonly key_id: string },
  permission: Permission,
): Promise<void> {
  await requirePermission(store, actor, organization_id, permission);
  const key = await store.keys.findOwner(key_id);
  if (key?.organization_id !== organization_id)
    throw new AccountError('not_found', 'There is no such API key.');
}

/** Does the same for a project. */
export async function requireProjectOf(
  store: Pick<Store, 'accounts'>,
  actor: Actor,
  { organization_id, project_id }: { readonly organization_id: string; readonly project_id: string },
  permission: Permission,
): Promise<void> {
  await requirePermission(store, actor, organization_id, permission);
  const project = await store.accounts.findProject(project_id);
  if (project?.organization_id !== organization_id)
    throw new AccountError('not_found', 'There is no such project.');
}
