import { and, asc, count, desc, eq, inArray, isNotNull, isNull, lte, min, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type {
  ActiveKey,
  KeyFilter,
  KeyOwner,
  KeyRecords,
  ListedKey,
  NewKey,
} from '../../src/store/key-records.ts';
import { apiKeys, organizations, projectMonths, projects, users } from '../tables.ts';
import { isProjectOfMember } from './account-records.ts';
import type { Executor } from './executor.ts';
import { firstRow } from './first-row.ts';

/** The first of a key's rotations. */
const firstKeys = alias(apiKeys, 'first_keys');
const FIRST_KEY_ID = sql<string>`coalesce(${apiKeys.first_key_id}, ${apiKeys.id})`;

/** API keys. The reads and writes of all keys are each database's own. */
export class SqlKeyRecords implements Omit<KeyRecords, 'hashesSince' | 'writeLastUsed'> {
  constructor(
    private readonly executor: Executor,
    private readonly noteKeyChange: () => void,
  ) {}

  async insertKey(key: NewKey): Promise<void> {
    await this.executor.insert(apiKeys).values(key);
  }

  async listKeys({
    member_user_id,
    organization_id,
    project_id,
    revoked,
    month,
  }: KeyFilter): Promise<ListedKey[]> {
    return await this.#listed(month)
      .where(
        and(
          member_user_id === undefined ? undefined : isProjectOfMember(member_user_id),
          organization_id === undefined ? undefined : eq(organizations.id, organization_id),
          project_id === undefined ? undefined : eq(projects.id, project_id),
          revoked ? isNotNull(apiKeys.revoked_at_ms) : isNull(apiKeys.revoked_at_ms),
        ),
      )
      .orderBy(asc(apiKeys.created_at_ms), asc(apiKeys.id));
  }

  async revokedKeysOf(
    organization_id: string,
    after_key_id: string | null,
    limit: number,
    month: string,
  ): Promise<ListedKey[]> {
    // The page is found first, so that nothing is joined to the revoked keys of the other pages.
    const page = this.executor
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .where(
        and(
          eq(projects.organization_id, organization_id),
          isNotNull(apiKeys.revoked_at_ms),
          after_key_id === null
            ? undefined
            : sql`(${apiKeys.revoked_at_ms}, ${apiKeys.id}) < (SELECT revoked_at_ms, id FROM api_keys
                WHERE id = ${sql.param(after_key_id, apiKeys.id)} AND project_id IN (SELECT id FROM projects
                  WHERE organization_id = ${sql.param(organization_id, projects.organization_id)}))`,
        ),
      )
      .orderBy(desc(apiKeys.revoked_at_ms), desc(apiKeys.id))
      .limit(limit);
    return await this.#listed(month)
      .where(inArray(apiKeys.id, page))
      .orderBy(desc(apiKeys.revoked_at_ms), desc(apiKeys.id));
  }

  findActive(secret_sha256: string): Promise<ActiveKey | undefined> {
    return firstRow(
      this.executor
        .select({
          key_id: apiKeys.id,
          first_key_id: apiKeys.first_key_id,
          secret_sha256: apiKeys.secret_sha256,
          project_id: projects.id,
          organization_id: organizations.id,
          tier: organizations.tier,
          minimum_tier: organizations.minimum_tier,
          paid_micros: organizations.paid_micros,
          first_paid_at_ms: organizations.first_paid_at_ms,
          requests_per_minute: organizations.requests_per_minute,
          tokens_per_minute: organizations.tokens_per_minute,
          questions_per_request: organizations.questions_per_request,
          suspended_at_ms: organizations.suspended_at_ms,
          expires_at_ms: apiKeys.expires_at_ms,
        })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .innerJoin(organizations, eq(organizations.id, projects.organization_id))
        .where(
          and(
            eq(apiKeys.secret_sha256, secret_sha256),
            isNull(apiKeys.revoked_at_ms),
            isNull(projects.archived_at_ms),
          ),
        ),
    );
  }

  #listed(month: string) {
    return this.executor
      .select({
        id: apiKeys.id,
        name: apiKeys.name,
        display_prefix: apiKeys.display_prefix,
        organization_id: organizations.id,
        organization_name: organizations.name,
        project_id: projects.id,
        project_name: projects.name,
        created_by_user_id: apiKeys.created_by_user_id,
        created_by_name: users.name,
        created_at_ms: apiKeys.created_at_ms,
        last_used_at_ms: apiKeys.last_used_at_ms,
        revoked_at_ms: apiKeys.revoked_at_ms,
        expires_at_ms: apiKeys.expires_at_ms,
        monthly_limit_micros: firstKeys.monthly_limit_micros,
        // A join would let PostgreSQL read the months of all keys of the project for each.
        spent_this_month_micros: sql`coalesce((SELECT ${projectMonths.spent_micros} FROM ${projectMonths}
          WHERE ${projectMonths.project_id} = ${projects.id} AND ${projectMonths.month} = ${month}
            AND ${projectMonths.api_key_id} = ${FIRST_KEY_ID}), 0)`.mapWith(Number),
      })
      .from(apiKeys)
      .innerJoin(firstKeys, eq(firstKeys.id, FIRST_KEY_ID))
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .innerJoin(organizations, eq(organizations.id, projects.organization_id))
      .leftJoin(users, eq(users.id, apiKeys.created_by_user_id));
  }

  async countActive(organization_id: string): Promise<number> {
    const row = await firstRow(
      this.executor
        .select({ number: count() })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(and(eq(projects.organization_id, organization_id), isNull(apiKeys.revoked_at_ms))),
    );
    return row?.number ?? 0;
  }

  async firstCreated_ms(organization_id: string): Promise<number | undefined> {
    const row = await firstRow(
      this.executor
        .select({ created_at_ms: min(apiKeys.created_at_ms) })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(eq(projects.organization_id, organization_id)),
    );
    return row?.created_at_ms ?? undefined;
  }

  async activeKeysNamed(
    name: string,
    organization_id: string | undefined,
    limit: number,
  ): Promise<{ readonly id: string }[]> {
    return await this.executor
      .select({ id: apiKeys.id })
      .from(apiKeys)
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .where(
        and(
          eq(apiKeys.name, name),
          isNull(apiKeys.revoked_at_ms),
          organization_id === undefined ? undefined : eq(projects.organization_id, organization_id),
        ),
      )
      .limit(limit);
  }

  findOwner(key_id: string): Promise<KeyOwner | undefined> {
    return firstRow(
      this.executor
        .select({
          organization_id: projects.organization_id,
          project_id: apiKeys.project_id,
          name: apiKeys.name,
          created_by_user_id: apiKeys.created_by_user_id,
          revoked_at_ms: apiKeys.revoked_at_ms,
          expires_at_ms: apiKeys.expires_at_ms,
          first_key_id: firstKeys.id,
          monthly_limit_micros: firstKeys.monthly_limit_micros,
        })
        .from(apiKeys)
        .innerJoin(firstKeys, eq(firstKeys.id, FIRST_KEY_ID))
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(eq(apiKeys.id, key_id)),
    );
  }

  async revokeKey(key_id: string, revoked_at_ms: number): Promise<void> {
    await this.executor.update(apiKeys).set({ revoked_at_ms }).where(eq(apiKeys.id, key_id));
    this.noteKeyChange();
  }

  async setExpiry(key_id: string, expires_at_ms: number | null): Promise<void> {
    await this.executor.update(apiKeys).set({ expires_at_ms }).where(eq(apiKeys.id, key_id));
    this.noteKeyChange();
  }

  async setMonthlyLimit(first_key_id: string, monthly_limit_micros: number | null): Promise<void> {
    await this.executor.update(apiKeys).set({ monthly_limit_micros }).where(eq(apiKeys.id, first_key_id));
  }

  async revokeExpired(now_ms: number): Promise<number> {
    // Nobody needs to be told: who looks a key up compares its expiry with the time.
    const revoked = await this.executor
      .update(apiKeys)
      .set({ revoked_at_ms: sql`${apiKeys.expires_at_ms}` })
      .where(and(isNull(apiKeys.revoked_at_ms), lte(apiKeys.expires_at_ms, now_ms)))
      .returning({ id: apiKeys.id });
    return revoked.length;
  }

  async revokeKeysOf(project_id: string, revoked_at_ms: number): Promise<void> {
    await this.executor
      .update(apiKeys)
      .set({ revoked_at_ms })
      .where(and(eq(apiKeys.project_id, project_id), isNull(apiKeys.revoked_at_ms)));
    this.noteKeyChange();
  }

  async findHash(key_id: string): Promise<string | undefined> {
    const row = await firstRow(
      this.executor
        .select({ secret_sha256: apiKeys.secret_sha256 })
        .from(apiKeys)
        .where(eq(apiKeys.id, key_id)),
    );
    return row?.secret_sha256;
  }
}
