import { AccountError } from '../../accounts/errors.ts';
import type { Store } from '../../store.ts';

/** Rejects with `not_found` unless the key belongs to the organization that the path names. */
export async function requireKeyOf(
  { keys }: Pick<Store, 'keys'>,
  organization_id: string,
  key_id: string,
): Promise<void> {
  const key = await keys.findOwner(key_id);
  if (key?.organization_id !== organization_id)
    throw new AccountError('not_found', 'There is no such API key.');
}

/** Rejects with `not_found` unless the project belongs to the organization that the path names. */
export async function requireProjectOf(
  { accounts }: Pick<Store, 'accounts'>,
  organization_id: string,
  project_id: string,
): Promise<void> {
  const project = await accounts.findProject(project_id);
  if (project?.organization_id !== organization_id)
    throw new AccountError('not_found', 'There is no such project.');
}
