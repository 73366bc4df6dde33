import { and, asc, count, desc, eq, getTableColumns, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type {
  AccountRecords,
  FoundOrganization,
  ListedProject,
  Member,
  MemberRef,
  Organization,
  OrganizationSearch,
  Project,
  ProjectFilter,
  TierChange,
  TierSettings,
  User,
  UserStanding,
} from '../../src/accounts/account-records.ts';
import type { Role } from '../../src/accounts/roles.ts';
import type { Db } from './connection.ts';
import {
  apiKeys,
  members,
  organizations,
  projectMonths,
  projects,
  sessions,
  signInAccounts,
  tierChanges,
  users,
  verifications,
} from './schema.ts';
import type { Access } from './transactions.ts';

const USER_COLUMNS = {
  id: users.id,
  email: users.email,
  name: users.name,
  created_at_ms: users.created_at_ms,
};

const NO_OWNER = sql`NOT EXISTS (SELECT 1 FROM members
  WHERE members.organization_id = organizations.id AND members.role = 'owner')`;

/** Users, organizations, members and projects in SQLite. */
export class SqliteAccountRecords implements AccountRecords {
  readonly #db: Db;
  readonly #access: Access;
  readonly #noteKeyChange: () => void;

  constructor(db: Db, access: Access, noteKeyChange: () => void) {
    this.#db = db;
    this.#access = access;
    this.#noteKeyChange = noteKeyChange;
  }

  findUser(user_id: string): Promise<User | undefined> {
    return this.#access.read(() =>
      this.#db.select(USER_COLUMNS).from(users).where(eq(users.id, user_id)).get(),
    );
  }

  findUserByEmail(email: string): Promise<User | undefined> {
    return this.#access.read(() =>
      this.#db.select(USER_COLUMNS).from(users).where(eq(users.email, email)).get(),
    );
  }

  standingOf(user_id: string): Promise<UserStanding | undefined> {
    return this.#access.read(() =>
      this.#db
        .select({
          email_verified: users.email_verified,
          is_operator: users.is_operator,
          deleted_at_ms: users.deleted_at_ms,
        })
        .from(users)
        .where(eq(users.id, user_id))
        .get(),
    );
  }

  allUsers(): Promise<User[]> {
    return this.#access.read(() =>
      this.#db.select(USER_COLUMNS).from(users).orderBy(asc(users.created_at_ms), asc(users.id)).all(),
    );
  }

  insertUser(user: User): Promise<void> {
    return this.#access.write(() =>
      this.#db
        .insert(users)
        .values({ ...user, updated_at_ms: user.created_at_ms })
        .run(),
    );
  }

  anonymizeUser(
    user_id: string,
    { email, name, deleted_at_ms }: Pick<User, 'email' | 'name'> & { readonly deleted_at_ms: number },
  ): Promise<void> {
    return this.#access.write(() => {
      this.#db.delete(sessions).where(eq(sessions.user_id, user_id)).run();
      this.#db.delete(signInAccounts).where(eq(signInAccounts.user_id, user_id)).run();
      this.#db.delete(verifications).where(eq(verifications.value, user_id)).run();
      this.#db
        .update(users)
        .set({
          email,
          name,
          email_verified: false,
          is_operator: false,
          updated_at_ms: deleted_at_ms,
          deleted_at_ms,
        })
        .where(eq(users.id, user_id))
        .run();
    });
  }

  renameUser(user_id: string, name: string): Promise<void> {
    return this.#access.write(() => this.#db.update(users).set({ name }).where(eq(users.id, user_id)).run());
  }

  findOrganization(organization_id: string): Promise<Organization | undefined> {
    return this.#access.read(() =>
      this.#db.select().from(organizations).where(eq(organizations.id, organization_id)).get(),
    );
  }

  allOrganizations(): Promise<Organization[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(organizations)
        .orderBy(asc(organizations.created_at_ms), asc(organizations.id))
        .all(),
    );
  }

  searchOrganizations({
    id,
    text,
    without_owner,
    after,
    limit,
  }: OrganizationSearch): Promise<FoundOrganization[]> {
    const part = `%${text.replace(/[\\%_]/g, '\\$&')}%`;
    const hasMember = sql`EXISTS (SELECT 1 FROM members INNER JOIN users ON users.id = members.user_id
      WHERE members.organization_id = organizations.id AND users.email LIKE ${part} ESCAPE '\\')`;
    return this.#access.read(() =>
      this.#db
        .select({
          ...getTableColumns(organizations),
          members: sql<number>`(SELECT count(*) FROM members WHERE members.organization_id = organizations.id)`,
          last_used_at_ms: sql<number | null>`(SELECT max(api_keys.last_used_at_ms)
            FROM projects INNER JOIN api_keys ON api_keys.project_id = projects.id
            WHERE projects.organization_id = organizations.id)`,
        })
        .from(organizations)
        .where(
          and(
            id === undefined ? undefined : eq(organizations.id, id),
            text === ''
              ? undefined
              : or(
                  sql`${organizations.name} LIKE ${part} ESCAPE '\\'`,
                  sql`instr(${organizations.id}, ${text}) > 0`,
                  hasMember,
                ),
            without_owner === true ? NO_OWNER : undefined,
            after === null
              ? undefined
              : or(
                  lt(organizations.created_at_ms, after.created_at_ms),
                  and(eq(organizations.created_at_ms, after.created_at_ms), lt(organizations.id, after.id)),
                ),
          ),
        )
        .orderBy(desc(organizations.created_at_ms), desc(organizations.id))
        .limit(limit)
        .all(),
    );
  }

  findPersonalOrganization(user_id: string): Promise<Organization | undefined> {
    return this.#access.read(() =>
      this.#db.select().from(organizations).where(eq(organizations.personal_user_id, user_id)).get(),
    );
  }

  hasOrganizations(): Promise<boolean> {
    return this.#access.read(
      () => this.#db.select({ id: organizations.id }).from(organizations).limit(1).get() !== undefined,
    );
  }

  organizationsNamed(name: string, limit: number): Promise<Organization[]> {
    return this.#access.read(() =>
      this.#db.select().from(organizations).where(eq(organizations.name, name)).limit(limit).all(),
    );
  }

  organizationsOf(user_id: string): Promise<Organization[]> {
    return this.#access.read(() =>
      this.#db
        .select(getTableColumns(organizations))
        .from(organizations)
        .innerJoin(members, eq(members.organization_id, organizations.id))
        .where(eq(members.user_id, user_id))
        .orderBy(asc(organizations.created_at_ms), asc(organizations.id))
        .all(),
    );
  }

  insertOrganization(
    organization: Pick<Organization, 'id' | 'name' | 'personal_user_id' | 'created_at_ms'>,
  ): Promise<void> {
    return this.#access.write(() => this.#db.insert(organizations).values(organization).run());
  }

  renameOrganization(organization_id: string, name: string): Promise<void> {
    return this.#updateOrganization(organization_id, { name });
  }

  async writeSuspension(organization_id: string, suspended_at_ms: number | null): Promise<void> {
    await this.#updateOrganization(organization_id, { suspended_at_ms });
    this.#noteKeyChange();
  }

  async writeTierSettings(organization_id: string, settings: TierSettings): Promise<void> {
    await this.#updateOrganization(organization_id, settings);
    this.#noteKeyChange();
  }

  async writeTier(organization_id: string, tier: number): Promise<void> {
    await this.#updateOrganization(organization_id, { tier });
    this.#noteKeyChange();
  }

  insertTierChange(change: Omit<TierChange, 'id'>): Promise<void> {
    return this.#access.write(() => this.#db.insert(tierChanges).values(change).run());
  }

  tierChanges(organization_id: string, limit: number): Promise<TierChange[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(tierChanges)
        .where(eq(tierChanges.organization_id, organization_id))
        .orderBy(desc(tierChanges.id))
        .limit(limit)
        .all(),
    );
  }

  roleOf(member: MemberRef): Promise<Role | null> {
    return this.#access.read(
      () => this.#db.select({ role: members.role }).from(members).where(is(member)).get()?.role ?? null,
    );
  }

  membersOf(organization_id: string): Promise<Member[]> {
    return this.#access.read(() =>
      this.#db
        .select({
          user_id: users.id,
          email: users.email,
          name: users.name,
          role: members.role,
          created_at_ms: members.created_at_ms,
        })
        .from(members)
        .innerJoin(users, eq(users.id, members.user_id))
        .where(eq(members.organization_id, organization_id))
        .orderBy(asc(members.created_at_ms), asc(users.id))
        .all(),
    );
  }

  countMembers(organization_id: string, role?: Role): Promise<number> {
    return this.#access.read(() => {
      const of_role = role === undefined ? undefined : eq(members.role, role);
      const row = this.#db
        .select({ number: count() })
        .from(members)
        .where(and(eq(members.organization_id, organization_id), of_role))
        .get();
      return row?.number ?? 0;
    });
  }

  countOwned(user_id: string): Promise<number> {
    return this.#access.read(() => {
      const row = this.#db
        .select({ number: count() })
        .from(members)
        .where(and(eq(members.user_id, user_id), eq(members.role, 'owner')))
        .get();
      return row?.number ?? 0;
    });
  }

  insertMember(member: MemberRef & { readonly role: Role; readonly created_at_ms: number }): Promise<void> {
    return this.#access.write(() => this.#db.insert(members).values(member).run());
  }

  writeRole(member: MemberRef, role: Role): Promise<void> {
    return this.#access.write(() => this.#db.update(members).set({ role }).where(is(member)).run());
  }

  deleteMember(member: MemberRef): Promise<void> {
    return this.#access.write(() => this.#db.delete(members).where(is(member)).run());
  }

  findProject(project_id: string): Promise<Project | undefined> {
    return this.#access.read(() => this.#db.select().from(projects).where(eq(projects.id, project_id)).get());
  }

  findActiveProject(organization_id: string, name: string): Promise<Project | undefined> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(projects)
        .where(
          and(
            eq(projects.organization_id, organization_id),
            eq(projects.name, name),
            isNull(projects.archived_at_ms),
          ),
        )
        .get(),
    );
  }

  activeProjectsNamed(name: string, organization_id: string | undefined, limit: number): Promise<Project[]> {
    return this.#access.read(() =>
      this.#db
        .select()
        .from(projects)
        .where(
          and(
            eq(projects.name, name),
            isNull(projects.archived_at_ms),
            organization_id === undefined ? undefined : eq(projects.organization_id, organization_id),
          ),
        )
        .limit(limit)
        .all(),
    );
  }

  listProjects({
    member_user_id,
    organization_id,
    archived,
    month,
  }: ProjectFilter): Promise<ListedProject[]> {
    return this.#access.read(() =>
      this.#db
        .select({
          ...getTableColumns(projects),
          organization_name: organizations.name,
          spent_this_month_micros: sql<number>`coalesce(${projectMonths.spent_micros}, 0)`,
          active_keys: sql<number>`(SELECT count(*) FROM ${apiKeys}
            WHERE ${apiKeys.project_id} = ${projects.id} AND ${apiKeys.revoked_at_ms} IS NULL)`,
        })
        .from(projects)
        .innerJoin(organizations, eq(organizations.id, projects.organization_id))
        .leftJoin(
          projectMonths,
          and(eq(projectMonths.project_id, projects.id), eq(projectMonths.month, month)),
        )
        .where(
          and(
            member_user_id === undefined ? undefined : isProjectOfMember(member_user_id),
            organization_id === undefined ? undefined : eq(projects.organization_id, organization_id),
            archived ? isNotNull(projects.archived_at_ms) : isNull(projects.archived_at_ms),
          ),
        )
        .orderBy(asc(projects.created_at_ms), asc(projects.id))
        .all(),
    );
  }

  countActiveProjects(organization_id: string): Promise<number> {
    return this.#access.read(() => {
      const row = this.#db
        .select({ number: count() })
        .from(projects)
        .where(and(eq(projects.organization_id, organization_id), isNull(projects.archived_at_ms)))
        .get();
      return row?.number ?? 0;
    });
  }

  insertProject(project: Pick<Project, 'id' | 'organization_id' | 'name' | 'created_at_ms'>): Promise<void> {
    return this.#access.write(() => this.#db.insert(projects).values(project).run());
  }

  renameProject(project_id: string, name: string): Promise<void> {
    return this.#updateProject(project_id, { name });
  }

  writeSpendLimit(project_id: string, spend_limit_micros: number | null): Promise<void> {
    return this.#updateProject(project_id, { spend_limit_micros });
  }

  archiveProject(project_id: string, archived_at_ms: number): Promise<void> {
    return this.#updateProject(project_id, { archived_at_ms });
  }

  writeOperator(user_id: string, is_operator: boolean): Promise<void> {
    return this.#access.write(() =>
      this.#db.update(users).set({ is_operator }).where(eq(users.id, user_id)).run(),
    );
  }

  #updateOrganization(organization_id: string, values: Partial<Organization>): Promise<void> {
    return this.#access.write(() =>
      this.#db.update(organizations).set(values).where(eq(organizations.id, organization_id)).run(),
    );
  }

  #updateProject(project_id: string, values: Partial<Project>): Promise<void> {
    return this.#access.write(() =>
      this.#db.update(projects).set(values).where(eq(projects.id, project_id)).run(),
    );
  }
}

function is({ organization_id, user_id }: MemberRef) {
  return and(eq(members.organization_id, organization_id), eq(members.user_id, user_id));
}

/** Returns the condition on `projects` that the user is a member of the project's organization. */
export function isProjectOfMember(user_id: string) {
  return sql`${projects.organization_id} IN (SELECT ${members.organization_id} FROM ${members} WHERE ${members.user_id} = ${user_id})`;
}
