import { and, asc, eq, getTableColumns, isNotNull, isNull, sql } from 'drizzle-orm';
import { transact } from '../../db/sqlite/connection.ts';
import { apiKeys, members, organizations, projectMonths, projects } from '../../db/sqlite/schema.ts';
import type { Actor } from './actor.ts';
import type { AccountContext } from './context.ts';
import { AccountError } from './errors.ts';
import { checkedName } from './names.ts';
import { requirePermission } from './synchronous.ts';

export type Project = typeof projects.$inferSelect;

/** A project as it is listed, with what it spent in the running UTC month. */
export interface ListedProject extends Project {
  readonly organization_name: string;
  readonly spent_this_month_micros: number;
}

function readProject(context: AccountContext, project_id: string): Project {
  const project = context.db.select().from(projects).where(eq(projects.id, project_id)).get();
  if (project === undefined) throw new AccountError('not_found', 'There is no such project.');
  return project;
}

/**
 * One project, active or archived, when the actor may see it and has the permission in its organization. Throws
 * `not_found`, `permission_denied`.
 */
export function requireProject(
  context: AccountContext,
  actor: Actor,
  project_id: string,
  permission: Parameters<typeof requirePermission>[3],
): Project {
  const project = readProject(context, project_id);
  try {
    requirePermission(context.db, actor, project.organization_id, permission);
  } catch (error) {
    if (error instanceof AccountError && error.code === 'not_found') {
      throw new AccountError('not_found', 'There is no such project.');
    }
    throw error;
  }
  return project;
}

function requireFreeName(context: AccountContext, organization_id: string, name: string): void {
  const taken = context.db
    .select({ id: projects.id })
    .from(projects)
    .where(
      and(
        eq(projects.organization_id, organization_id),
        eq(projects.name, name),
        isNull(projects.archived_at_ms),
      ),
    )
    .get();
  if (taken !== undefined) throw new AccountError('name_taken');
}

/** Creates a project (owners and admins). Throws `invalid_name`, `name_taken`, `not_found`, `permission_denied`. */
export function createProject(
  context: AccountContext,
  actor: Actor,
  given: { readonly organization_id: string; readonly name: string },
): Project {
  const name = checkedName(given.name);
  const { db, clock, identifiers } = context;
  return transact(db, () => {
    requirePermission(db, actor, given.organization_id, 'manage_projects');
    requireFreeName(context, given.organization_id, name);
    const id = identifiers.id('project');
    db.insert(projects)
      .values({ id, organization_id: given.organization_id, name, created_at_ms: clock.now_ms() })
      .run();
    return readProject(context, id);
  });
}

/**
 * Renames an active project (owners and admins). Throws `invalid_name`, `name_taken`, `project_archived`, `not_found`,
 * `permission_denied`.
 */
export function renameProject(
  context: AccountContext,
  actor: Actor,
  given: { readonly project_id: string; readonly name: string },
): Project {
  const name = checkedName(given.name);
  const { db } = context;
  return transact(db, () => {
    const project = requireProject(context, actor, given.project_id, 'manage_projects');
    if (project.archived_at_ms !== null) throw new AccountError('project_archived');
    if (project.name !== name) requireFreeName(context, project.organization_id, name);
    db.update(projects).set({ name }).where(eq(projects.id, project.id)).run();
    return readProject(context, project.id);
  });
}

/**
 * The active projects (or, with `archived`, the archived ones) that the actor may see: of one organization or of all
 * of theirs, oldest first. Throws `not_found`.
 */
export function listProjects(
  context: AccountContext,
  actor: Actor,
  filter: { readonly organization_id?: string; readonly archived?: boolean } = {},
): ListedProject[] {
  const { db, clock } = context;
  if (filter.organization_id !== undefined) requirePermission(db, actor, filter.organization_id, 'see');
  const month = new Date(clock.now_ms()).toISOString().slice(0, 7);
  const visible =
    actor.kind === 'operator'
      ? undefined
      : sql`${projects.organization_id} IN (SELECT ${members.organization_id} FROM ${members} WHERE ${members.user_id} = ${actor.user_id})`;
  return db
    .select({
      ...getTableColumns(projects),
      organization_name: organizations.name,
      spent_this_month_micros: sql<number>`coalesce(${projectMonths.spent_micros}, 0)`,
    })
    .from(projects)
    .innerJoin(organizations, eq(organizations.id, projects.organization_id))
    .leftJoin(projectMonths, and(eq(projectMonths.project_id, projects.id), eq(projectMonths.month, month)))
    .where(
      and(
        visible,
        filter.organization_id === undefined
          ? undefined
          : eq(projects.organization_id, filter.organization_id),
        filter.archived === true ? isNotNull(projects.archived_at_ms) : isNull(projects.archived_at_ms),
      ),
    )
    .orderBy(asc(projects.created_at_ms), asc(projects.id))
    .all();
}

/**
 * Archives a project, the Default one too, and revokes its keys in the same commit (owners and admins). It cannot be
 * undone; archiving it again changes nothing. Throws `not_found`, `permission_denied`.
 */
export function archiveProject(context: AccountContext, actor: Actor, project_id: string): Project {
  const { db, clock } = context;
  return transact(db, () => {
    const project = requireProject(context, actor, project_id, 'manage_projects');
    if (project.archived_at_ms !== null) return project;
    const now_ms = clock.now_ms();
    db.update(projects).set({ archived_at_ms: now_ms }).where(eq(projects.id, project_id)).run();
    db.update(apiKeys)
      .set({ revoked_at_ms: now_ms })
      .where(and(eq(apiKeys.project_id, project_id), isNull(apiKeys.revoked_at_ms)))
      .run();
    return readProject(context, project_id);
  });
}

/**
 * Sets what a project may spend in a UTC month, in micro-dollars; null takes the limit away (owners and admins).
 * Throws `invalid_amount`, `project_archived`, `not_found`, `permission_denied`.
 */
export function setSpendLimit(
  context: AccountContext,
  actor: Actor,
  given: { readonly project_id: string; readonly spend_limit_micros: number | null },
): Project {
  const { project_id, spend_limit_micros } = given;
  if (spend_limit_micros !== null && !(Number.isSafeInteger(spend_limit_micros) && spend_limit_micros >= 0)) {
    throw new AccountError('invalid_amount', 'A spend limit must be $0 or more, or none.');
  }
  const { db } = context;
  return transact(db, () => {
    const project = requireProject(context, actor, project_id, 'manage_projects');
    if (project.archived_at_ms !== null) throw new AccountError('project_archived');
    db.update(projects).set({ spend_limit_micros }).where(eq(projects.id, project_id)).run();
    return readProject(context, project_id);
  });
}
