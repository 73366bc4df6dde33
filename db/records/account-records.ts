import { and, asc, desc, eq, getTableColumns, isNotNull, isNull, lt, or, sql } from 'drizzle-orm';
import type { Role } from '../../src/contract/roles.ts';
import type {
  AccountRecords,
  EndedSignIns,
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
} from '../../src/store/account-records.ts';
import {
  alertRecipients,
  apiKeys,
  members,
  organizations,
  passkeys,
  projectMonths,
  projects,
  secondFactors,
  sessions,
  signInAccounts,
  tierChanges,
  users,
  verifications,
  WHOLE_PROJECT,
} from '../tables.ts';
import { countRows } from './count-rows.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';

const USER_COLUMNS = {
  id: users.id,
  email: users.email,
  name: users.name,
  created_at_ms: users.created_at_ms,
};

const NO_OWNER = sql`NOT EXISTS (SELECT 1 FROM members
  WHERE members.organization_id = organizations.id AND members.role = 'owner')`;

/** Users, organizations, members and projects. */
export class SqlAccountRecords implements AccountRecords {
  constructor(
    private readonly executor: Executor,
    private readonly noteKeyChange: () => void,
  ) {}

  findUser(user_id: string): Promise<User | undefined> {
    return firstRow(this.executor.select(USER_COLUMNS).from(users).where(eq(users.id, user_id)));
  }

  findUserByEmail(email: string): Promise<User | undefined> {
    return firstRow(this.executor.select(USER_COLUMNS).from(users).where(eq(users.email, email)));
  }

  standingOf(user_id: string): Promise<UserStanding | undefined> {
    return firstRow(
      this.executor
        .select({
          email_verified: users.email_verified,
          is_operator: users.is_operator,
          deleted_at_ms: users.deleted_at_ms,
        })
        .from(users)
        .where(eq(users.id, user_id)),
    );
  }

  async allUsers(): Promise<User[]> {
    return await this.executor
      .select(USER_COLUMNS)
      .from(users)
      .orderBy(asc(users.created_at_ms), asc(users.id));
  }

  async insertUser(user: User): Promise<void> {
    await this.executor.insert(users).values({ ...user, updated_at_ms: user.created_at_ms });
  }

  async anonymizeUser(
    user_id: string,
    { email, name, deleted_at_ms }: Pick<User, 'email' | 'name'> & { readonly deleted_at_ms: number },
  ): Promise<void> {
    await this.executor.transaction(async (transaction) => {
      await deleteSignIns(transaction, user_id);
      await transaction.delete(alertRecipients).where(eq(alertRecipients.user_id, user_id));
      await transaction
        .update(users)
        .set({
          email,
          name,
          email_verified: false,
          is_operator: false,
          updated_at_ms: deleted_at_ms,
          deleted_at_ms,
        })
        .where(eq(users.id, user_id));
    });
  }

  deleteSignIns(user_id: string): Promise<EndedSignIns> {
    return this.executor.transaction((transaction) => deleteSignIns(transaction, user_id));
  }

  async renameUser(user_id: string, name: string): Promise<void> {
    const is_user = and(eq(users.id, user_id), isNull(users.deleted_at_ms));
    await this.executor.update(users).set({ name }).where(is_user);
  }

  findOrganization(organization_id: string): Promise<Organization | undefined> {
    return firstRow(this.executor.select().from(organizations).where(eq(organizations.id, organization_id)));
  }

  async allOrganizations(): Promise<Organization[]> {
    return await this.executor
      .select()
      .from(organizations)
      .orderBy(asc(organizations.created_at_ms), asc(organizations.id));
  }

  async paidOrganizations(): Promise<Organization[]> {
    // Written as in the partial index, so that SQLite uses it.
    return await this.executor.select().from(organizations).where(sql`${organizations.paid_micros} > 0`);
  }

  async searchOrganizations({
    id,
    text,
    without_owner,
    after,
    limit,
  }: OrganizationSearch): Promise<FoundOrganization[]> {
    const part = sql.param(`%${inLowerCase(text).replace(/[\\%_]/g, '\\$&')}%`, organizations.name);
    const hasMember = sql`EXISTS (SELECT 1 FROM members INNER JOIN users ON users.id = members.user_id
      WHERE members.organization_id = organizations.id AND lower(users.email) LIKE ${part} ESCAPE '\\')`;
    return await this.executor
      .select({
        ...getTableColumns(organizations),
        members: sql`(SELECT count(*) FROM members WHERE members.organization_id = organizations.id)`.mapWith(
          Number,
        ),
        last_used_at_ms: sql<number | null>`(SELECT max(api_keys.last_used_at_ms)
          FROM projects INNER JOIN api_keys ON api_keys.project_id = projects.id
          WHERE projects.organization_id = organizations.id)`.mapWith(Number),
      })
      .from(organizations)
      .where(
        and(
          id === undefined ? undefined : eq(organizations.id, id),
          text === ''
            ? undefined
            : or(
                sql`lower(${organizations.name}) LIKE ${part} ESCAPE '\\'`,
                // No function that finds a text has the same name in both databases.
                sql`replace(${organizations.id}, ${sql.param(text, organizations.id)}, '') <> ${organizations.id}`,
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
      .limit(limit);
  }

  findPersonalOrganization(user_id: string): Promise<Organization | undefined> {
    return firstRow(
      this.executor.select().from(organizations).where(eq(organizations.personal_user_id, user_id)),
    );
  }

  async hasOrganizations(): Promise<boolean> {
    const found = await this.executor.select({ id: organizations.id }).from(organizations).limit(1);
    return found.length > 0;
  }

  async organizationsNamed(name: string, limit: number): Promise<Organization[]> {
    return await this.executor.select().from(organizations).where(eq(organizations.name, name)).limit(limit);
  }

  async organizationsOf(user_id: string): Promise<Organization[]> {
    return await this.executor
      .select(getTableColumns(organizations))
      .from(organizations)
      .innerJoin(members, eq(members.organization_id, organizations.id))
      .where(eq(members.user_id, user_id))
      .orderBy(asc(organizations.created_at_ms), asc(organizations.id));
  }

  async insertOrganization(
    organization: Pick<Organization, 'id' | 'name' | 'personal_user_id' | 'created_at_ms'>,
  ): Promise<void> {
    await this.executor.insert(organizations).values(organization);
  }

  renameOrganization(organization_id: string, name: string): Promise<void> {
    return this.#updateOrganization(organization_id, { name });
  }

  async writeSuspension(organization_id: string, suspended_at_ms: number | null): Promise<void> {
    await this.#updateOrganization(organization_id, { suspended_at_ms });
    this.noteKeyChange();
  }

  async writeTierSettings(organization_id: string, settings: TierSettings): Promise<void> {
    await this.#updateOrganization(organization_id, settings);
    this.noteKeyChange();
  }

  async writeTier(organization_id: string, tier: number): Promise<void> {
    await this.#updateOrganization(organization_id, { tier });
    this.noteKeyChange();
  }

  async insertTierChange(change: Omit<TierChange, 'id'>): Promise<void> {
    await this.executor.insert(tierChanges).values(change);
  }

  async tierChanges(organization_id: string, limit: number): Promise<TierChange[]> {
    return await this.executor
      .select()
      .from(tierChanges)
      .where(eq(tierChanges.organization_id, organization_id))
      .orderBy(desc(tierChanges.id))
      .limit(limit);
  }

  async roleOf(member: MemberRef): Promise<Role | null> {
    const row = await firstRow(this.executor.select({ role: members.role }).from(members).where(is(member)));
    return row?.role ?? null;
  }

  async membersOf(organization_id: string): Promise<Member[]> {
    return await this.executor
      .select({
        user_id: users.id,
        email: users.email,
        name: users.name,
        role: members.role,
        created_at_ms: members.created_at_ms,
        has_second_factor: users.has_second_factor,
      })
      .from(members)
      .innerJoin(users, eq(users.id, members.user_id))
      .where(eq(members.organization_id, organization_id))
      .orderBy(asc(members.created_at_ms), asc(users.id));
  }

  countMembers(organization_id: string, role?: Role): Promise<number> {
    const of_role = role === undefined ? undefined : eq(members.role, role);
    return countRows(this.executor, members, and(eq(members.organization_id, organization_id), of_role));
  }

  countOwned(user_id: string): Promise<number> {
    return countRows(this.executor, members, and(eq(members.user_id, user_id), eq(members.role, 'owner')));
  }

  async insertMember(
    member: MemberRef & { readonly role: Role; readonly created_at_ms: number },
  ): Promise<void> {
    await this.executor.insert(members).values(member);
  }

  async writeRole(member: MemberRef, role: Role): Promise<void> {
    await this.executor.update(members).set({ role }).where(is(member));
  }

  async deleteMember(member: MemberRef): Promise<void> {
    const { organization_id, user_id } = member;
    await this.executor.transaction(async (transaction) => {
      await transaction.delete(members).where(is(member));
      await transaction.delete(alertRecipients).where(
        and(
          eq(alertRecipients.user_id, user_id),
          sql`EXISTS (SELECT 1 FROM alerts
              WHERE alerts.id = ${alertRecipients.alert_id} AND alerts.organization_id = ${organization_id})`,
        ),
      );
    });
  }

  findProject(project_id: string): Promise<Project | undefined> {
    return firstRow(this.executor.select().from(projects).where(eq(projects.id, project_id)));
  }

  findActiveProject(organization_id: string, name: string): Promise<Project | undefined> {
    return firstRow(
      this.executor
        .select()
        .from(projects)
        .where(
          and(
            eq(projects.organization_id, organization_id),
            eq(projects.name, name),
            isNull(projects.archived_at_ms),
          ),
        ),
    );
  }

  async activeProjectsNamed(
    name: string,
    organization_id: string | undefined,
    limit: number,
  ): Promise<Project[]> {
    return await this.executor
      .select()
      .from(projects)
      .where(
        and(
          eq(projects.name, name),
          isNull(projects.archived_at_ms),
          organization_id === undefined ? undefined : eq(projects.organization_id, organization_id),
        ),
      )
      .limit(limit);
  }

  async listProjects({
    member_user_id,
    organization_id,
    archived,
    month,
  }: ProjectFilter): Promise<ListedProject[]> {
    return await this.executor
      .select({
        ...getTableColumns(projects),
        organization_name: organizations.name,
        spent_this_month_micros: sql`coalesce((SELECT ${projectMonths.spent_micros} FROM ${projectMonths}
          WHERE ${projectMonths.project_id} = ${projects.id} AND ${projectMonths.month} = ${month}
            AND ${projectMonths.api_key_id} = ${WHOLE_PROJECT}), 0)`.mapWith(Number),
        active_keys: sql`(SELECT count(*) FROM ${apiKeys}
          WHERE ${apiKeys.project_id} = ${projects.id} AND ${apiKeys.revoked_at_ms} IS NULL)`.mapWith(Number),
      })
      .from(projects)
      .innerJoin(organizations, eq(organizations.id, projects.organization_id))
      .where(
        and(
          member_user_id === undefined ? undefined : isProjectOfMember(member_user_id),
          organization_id === undefined ? undefined : eq(projects.organization_id, organization_id),
          archived ? isNotNull(projects.archived_at_ms) : isNull(projects.archived_at_ms),
        ),
      )
      .orderBy(asc(projects.created_at_ms), asc(projects.id));
  }

  countActiveProjects(organization_id: string): Promise<number> {
    const is_active = and(eq(projects.organization_id, organization_id), isNull(projects.archived_at_ms));
    return countRows(this.executor, projects, is_active);
  }

  async insertProject(
    project: Pick<Project, 'id' | 'organization_id' | 'name' | 'created_at_ms'>,
  ): Promise<void> {
    await this.executor.insert(projects).values(project);
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

  async writeOperator(user_id: string, is_operator: boolean): Promise<void> {
    await this.executor.update(users).set({ is_operator }).where(eq(users.id, user_id));
  }

  async #updateOrganization(organization_id: string, values: Partial<Organization>): Promise<void> {
    await this.executor.update(organizations).set(values).where(eq(organizations.id, organization_id));
  }

  async #updateProject(project_id: string, values: Partial<Project>): Promise<void> {
    await this.executor.update(projects).set(values).where(eq(projects.id, project_id));
  }
}

/** Returns the text with its ASCII letters in lower case, as `lower` does in SQLite and in the collation "C". */
function inLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function is({ organization_id, user_id }: MemberRef) {
  return and(eq(members.organization_id, organization_id), eq(members.user_id, user_id));
}

/** Returns the condition on `projects` that the user is a member of the project's organization. */
export function isProjectOfMember(user_id: string) {
  return sql`${projects.organization_id} IN (SELECT ${members.organization_id} FROM ${members}
    WHERE ${members.user_id} = ${sql.param(user_id, members.user_id)})`;
}

async function deleteSignIns(transaction: Executor, user_id: string): Promise<EndedSignIns> {
  const removed = await transaction
    .delete(passkeys)
    .where(eq(passkeys.user_id, user_id))
    .returning({ id: passkeys.id });
  await transaction.delete(signInAccounts).where(eq(signInAccounts.user_id, user_id));
  await transaction.delete(secondFactors).where(eq(secondFactors.user_id, user_id));
  const had = await transaction
    .update(users)
    .set({ has_second_factor: false })
    .where(and(eq(users.id, user_id), eq(users.has_second_factor, true)))
    .returning({ id: users.id });
  await transaction.delete(verifications).where(eq(verifications.value, user_id));
  // After the passkeys: a sign-in by one of them looks for it again once its session is there.
  await transaction.delete(sessions).where(eq(sessions.user_id, user_id));
  return { passkeys: removed.length, had_second_factor: had.length > 0 };
}
