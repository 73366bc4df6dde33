import { monthOf } from '../ledger/month.ts';
import type { Records } from '../store.ts';
import type { ListedProject, Project } from './account-records.ts';
import { type Actor, userIdOf } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { checkedName } from './names.ts';
import { requirePermission } from './permissions.ts';
import type { Permission } from './roles.ts';

type Accounts = Pick<Records, 'accounts'>;

async function readProject({ accounts }: Accounts, project_id: string): Promise<Project> {
  const project = await accounts.findProject(project_id);
  if (project === undefined) throw new AccountError('not_found', 'There is no such project.');
  return project;
}

/**
 * One project, active or archived, when the actor may see it and has the permission in its organization. Rejects with
 * `not_found`, `permission_denied`.
 */
export async function requireProject(
  records: Accounts,
  actor: Actor,
  project_id: string,
  permission: Permission,
): Promise<Project> {
  const project = await readProject(records, project_id);
  try {
    await requirePermission(records, actor, project.organization_id, permission);
  } catch (error) {
    if (error instanceof AccountError && error.code === 'not_found') {
      throw new AccountError('not_found', 'There is no such project.');
    }
    throw error;
  }
  return project;
}

/** A project that can still be changed. Rejects besides with `project_archived`. */
async function requireActiveProject(
  records: Accounts,
  actor: Actor,
  project_id: string,
  permission: Permission,
): Promise<Project> {
  const project = await requireProject(records, actor, project_id, permission);
  if (project.archived_at_ms !== null) throw new AccountError('project_archived');
  return project;
}

async function requireFreeName({ accounts }: Accounts, organization_id: string, name: string): Promise<void> {
  if ((await accounts.findActiveProject(organization_id, name)) !== undefined)
    throw new AccountError('name_taken');
}

/** Creates a project (owners and admins). Rejects with `invalid_name`, `name_taken`, `not_found`, `permission_denied`. */
export async function createProject(
  { store, clock, identifiers }: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly name: string },
): Promise<Project> {
  const name = checkedName(given.name);
  const { organization_id } = given;
  return await store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'manage_projects');
    await requireFreeName(records, organization_id, name);
    const id = identifiers.id('project');
    await records.accounts.insertProject({ id, organization_id, name, created_at_ms: clock.now_ms() });
    return readProject(records, id);
  });
}

/**
 * Renames an active project (owners and admins). Rejects with `invalid_name`, `name_taken`, `project_archived`,
 * `not_found`, `permission_denied`.
 */
export async function renameProject(
  { store }: AccountContext,
  actor: Actor,
  given: { readonly project_id: string; readonly name: string },
): Promise<Project> {
  const name = checkedName(given.name);
  return await store.transaction(async (records) => {
    const project = await requireActiveProject(records, actor, given.project_id, 'manage_projects');
    if (project.name !== name) await requireFreeName(records, project.organization_id, name);
    await records.accounts.renameProject(project.id, name);
    return readProject(records, project.id);
  });
}

/**
 * The active projects (or, with `archived`, the archived ones) that the actor may see: of one organization or of all
 * of theirs, oldest first. Rejects with `not_found`.
 */
export async function listProjects(
  { store, clock }: AccountContext,
  actor: Actor,
  filter: { readonly organization_id?: string; readonly archived?: boolean } = {},
): Promise<ListedProject[]> {
  const { organization_id } = filter;
  if (organization_id !== undefined) await requirePermission(store, actor, organization_id, 'see');
  return store.accounts.listProjects({
    member_user_id: userIdOf(actor) ?? undefined,
    organization_id,
    archived: filter.archived === true,
    month: monthOf(clock.now_ms()),
  });
}

/**
 * Archives a project, the Default one too, and revokes its keys in the same commit (owners and admins). It cannot be
 * undone; archiving it again changes nothing. Rejects with `not_found`, `permission_denied`.
 */
export function archiveProject(
  { store, clock }: AccountContext,
  actor: Actor,
  project_id: string,
): Promise<Project> {
  return store.transaction(async (records) => {
    const project = await requireProject(records, actor, project_id, 'manage_projects');
    if (project.archived_at_ms !== null) return project;
    const now_ms = clock.now_ms();
    await records.accounts.archiveProject(project_id, now_ms);
    await records.keys.revokeKeysOf(project_id, now_ms);
    return readProject(records, project_id);
  });
}

/**
 * Sets what a project may spend in a UTC month, in micro-dollars; null takes the limit away (owners and admins).
 * Rejects with `invalid_amount`, `project_archived`, `not_found`, `permission_denied`.
 */
export async function setSpendLimit(
  { store }: AccountContext,
  actor: Actor,
  given: { readonly project_id: string; readonly spend_limit_micros: number | null },
): Promise<Project> {
  const { project_id, spend_limit_micros } = given;
  if (spend_limit_micros !== null && !(Number.isSafeInteger(spend_limit_micros) && spend_limit_micros >= 0)) {
    throw new AccountError('invalid_amount', 'A spend limit must be $0 or more, or none.');
  }
  return await store.transaction(async (records) => {
    await requireActiveProject(records, actor, project_id, 'manage_projects');
    await records.accounts.writeSpendLimit(project_id, spend_limit_micros);
    return readProject(records, project_id);
  });
}
