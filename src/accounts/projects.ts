import { AccountError } from '../access/account-error.ts';
import { type Actor, memberIdOf } from '../access/actor.ts';
import type { AccountContext } from '../access/context.ts';
import { requirePermission } from '../access/permissions.ts';
import { recordAct } from '../audit-log/record.ts';
import type { Permission } from '../contract/roles.ts';
import type { ListedProject, Project } from '../store/account-records.ts';
import type { Records } from '../store/store.ts';
import { monthOf } from '../time/month.ts';
import { checkedName } from './names.ts';

type Accounts = Pick<Records, 'accounts'>;

async function readProject({ accounts }: Accounts, project_id: string): Promise<Project> {
  const project = await accounts.findProject(project_id);
  if (project === undefined) throw new AccountError('not_found', 'There is no such project.');
  return project;
}

/**
 * Returns one project, active or archived, if the actor may see it and has the permission. Rejects with
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

async function requireFreeName({ accounts }: Accounts, organization_id: string, name: string): Promise<void> {
  if ((await accounts.findActiveProject(organization_id, name)) !== undefined)
    throw new AccountError('name_taken');
}

/**
 * The active projects of an organization up to which its members may create more; the operator may always.
 */
export const ACTIVE_PROJECTS_MAX = 100;

/**
 * Creates a project (owners and admins). Rejects with `invalid_name`, `name_taken`, `too_many_projects`, `not_found`,
 * `permission_denied`.
 */
export async function createProject(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly name: string },
): Promise<Project> {
  const name = checkedName(given.name);
  const { store, clock, identifiers } = context;
  const { organization_id } = given;
  return await store.transaction(async (records) => {
    await requirePermission(records, actor, organization_id, 'manage_projects');
    await requireFreeName(records, organization_id, name);
    const { accounts } = records;
    if (
      actor.kind === 'user' &&
      (await accounts.countActiveProjects(organization_id)) >= ACTIVE_PROJECTS_MAX
    ) {
      throw new AccountError('too_many_projects');
    }
    const id = identifiers.id('project');
    await records.accounts.insertProject({ id, organization_id, name, created_at_ms: clock.now_ms() });
    await recordAct(records, context, actor, {
      action: 'project.create',
      organization_id,
      object_id: id,
      detail: { name },
    });
    return readProject(records, id);
  });
}

/** A change of a project; a missing field stays as it is. */
interface ProjectChange {
  readonly project_id: string;
  readonly name?: string | undefined;
  /** The spend limit per UTC month in micro-dollars; null removes it. */
  readonly spend_limit_micros?: number | null | undefined;
}

/**
 * Changes name and spend limit of an active project, both or neither (owners and admins). Rejects with `invalid_name`,
 * `name_taken`, `invalid_amount`, `project_archived`, `not_found`, `permission_denied`.
 */
export async function changeProject(
  context: AccountContext,
  actor: Actor,
  given: ProjectChange,
): Promise<Project> {
  const { project_id, spend_limit_micros } = given;
  const name = given.name === undefined ? undefined : checkedName(given.name);
  requireLimit(spend_limit_micros);
  return await context.store.transaction(async (records) => {
    const before = await requireProject(records, actor, project_id, 'manage_projects');
    if (before.archived_at_ms !== null) throw new AccountError('project_archived');
    const { organization_id } = before;
    if (name !== undefined && name !== before.name) {
      await requireFreeName(records, organization_id, name);
      await records.accounts.renameProject(project_id, name);
      await recordAct(records, context, actor, {
        action: 'project.rename',
        organization_id,
        object_id: project_id,
        detail: { from: before.name, to: name },
      });
    }
    if (spend_limit_micros !== undefined && spend_limit_micros !== before.spend_limit_micros) {
      await records.accounts.writeSpendLimit(project_id, spend_limit_micros);
      await recordAct(records, context, actor, {
        action: 'project.spend_limit',
        organization_id,
        object_id: project_id,
        detail: { from_micros: before.spend_limit_micros, to_micros: spend_limit_micros },
      });
    }
    return readProject(records, project_id);
  });
}

/** Throws `invalid_amount` unless a monthly spend limit is a number of micro-dollars from 0, or none is given. */
export function requireLimit(limit_micros: number | null | undefined): void {
  if (limit_micros === null || limit_micros === undefined) return;
  if (!Number.isSafeInteger(limit_micros) || limit_micros < 0)
    throw new AccountError('invalid_amount', 'A spend limit must be $0 or more, or none.');
}

/**
 * Returns the active projects (or, with `archived`, the archived ones) that the actor may see, oldest first.
 * They are those of one organization or of all of the actor's. Rejects with `not_found`.
 */
export async function listProjects(
  { store, clock }: AccountContext,
  actor: Actor,
  filter: { readonly organization_id?: string; readonly archived?: boolean } = {},
): Promise<ListedProject[]> {
  const { organization_id } = filter;
  if (organization_id !== undefined) await requirePermission(store, actor, organization_id, 'see');
  return store.accounts.listProjects({
    member_user_id: memberIdOf(actor),
    organization_id,
    archived: filter.archived === true,
    month: monthOf(clock.now_ms()),
  });
}

/**
 * Archives a project, the Default one too, and revokes its keys in the same commit (owners and admins). This
 * cannot be undone; archiving it again changes nothing. Rejects with `not_found`, `permission_denied`.
 */
export function archiveProject(context: AccountContext, actor: Actor, project_id: string): Promise<Project> {
  return context.store.transaction(async (records) => {
    const project = await requireProject(records, actor, project_id, 'manage_projects');
    if (project.archived_at_ms !== null) return project;
    await archiveWithKeys(records, context, actor, project);
    return readProject(records, project_id);
  });
}

/**
 * Archives an active project and revokes its keys, without a check of permissions. To be called inside a
 * transaction.
 */
export async function archiveWithKeys(
  records: Pick<Records, 'accounts' | 'keys' | 'audit_log'>,
  { clock }: Pick<AccountContext, 'clock'>,
  actor: Actor,
  { id, name, organization_id }: Pick<Project, 'id' | 'name' | 'organization_id'>,
): Promise<void> {
  const now_ms = clock.now_ms();
  const keys = await records.keys.listKeys({ project_id: id, revoked: false, month: monthOf(now_ms) });
  await records.accounts.archiveProject(id, now_ms);
  await records.keys.revokeKeysOf(id, now_ms);
  await recordAct(records, { clock }, actor, {
    action: 'project.archive',
    organization_id,
    object_id: id,
    detail: { name, keys: keys.length },
  });
}
