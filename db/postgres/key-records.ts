import { and, asc, count, desc, eq, gt, isNotNull, isNull, min, sql } from 'drizzle-orm';
import type {
  ActiveKey,
  KeyFilter,
  KeyHashStart,
  KeyOwner,
  KeyRecords,
  KeyUse,
  ListedKey,
  NewKey,
} from '../../src/accounts/key-records.ts';
import { isProjectOfMember } from './account-records.ts';
import type { Executor } from './connection.ts';
import { firstRow } from './first-row.ts';
import { apiKeys, organizations, projects, users } from './schema.ts';

/** API keys in PostgreSQL. */
export class PostgresKeyRecords implements KeyRecords {
  readonly #executor: Executor;
  readonly #noteKeyChange: () => void;

  constructor(executor: Executor, noteKeyChange: () => void) {
    this.#executor = executor;
    this.#noteKeyChange = noteKeyChange;
  }

  async insertKey(key: NewKey): Promise<void> {
    await this.#executor.insert(apiKeys).values(key);
  }

  async listKeys({ member_user_id, organization_id, project_id, revoked }: KeyFilter): Promise<ListedKey[]> {
    return await this.#listed()
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
  ): Promise<ListedKey[]> {
    return await this.#listed()
      .where(
        and(
          eq(organizations.id, organization_id),
          isNotNull(apiKeys.revoked_at_ms),
          after_key_id === null
            ? undefined
            : sql`(${apiKeys.revoked_at_ms}, ${apiKeys.id}) < (SELECT revoked_at_ms, id FROM api_keys
                WHERE id = ${sql.param(after_key_id, apiKeys.id)})`,
        ),
      )
      .orderBy(desc(apiKeys.revoked_at_ms), desc(apiKeys.id))
      .limit(limit);
  }

  #listed() {
    return this.#executor
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
      })
      .from(apiKeys)
      .innerJoin(projects, eq(projects.id, apiKeys.project_id))
      .innerJoin(organizations, eq(organizations.id, projects.organization_id))
      .leftJoin(users, eq(users.id, apiKeys.created_by_user_id));
  }

  async countActive(organization_id: string): Promise<number> {
    const row = await firstRow(
      this.#executor
        .select({ number: count() })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(and(eq(projects.organization_id, organization_id), isNull(apiKeys.revoked_at_ms))),
    );
    return row?.number ?? 0;
  }

  async firstCreated_ms(organization_id: string): Promise<number | undefined> {
    const row = await firstRow(
      this.#executor
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
    return await this.#executor
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
      this.#executor
        .select({
          organization_id: projects.organization_id,
          created_by_user_id: apiKeys.created_by_user_id,
          revoked_at_ms: apiKeys.revoked_at_ms,
        })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(eq(apiKeys.id, key_id)),
    );
  }

  async revokeKey(key_id: string, revoked_at_ms: number): Promise<void> {
    await this.#executor.update(apiKeys).set({ revoked_at_ms }).where(eq(apiKeys.id, key_id));
    this.#noteKeyChange();
  }

  async revokeKeysOf(project_id: string, revoked_at_ms: number): Promise<void> {
    await this.#executor
      .update(apiKeys)
      .set({ revoked_at_ms })
      .where(and(eq(apiKeys.project_id, project_id), isNull(apiKeys.revoked_at_ms)));
    this.#noteKeyChange();
  }

  async findHash(key_id: string): Promise<string | undefined> {
    const row = await firstRow(
      this.#executor
        .select({ secret_sha256: apiKeys.secret_sha256 })
        .from(apiKeys)
        .where(eq(apiKeys.id, key_id)),
    );
    return row?.secret_sha256;
  }

  findActive(secret_sha256: string): Promise<ActiveKey | undefined> {
    return firstRow(
      this.#executor
        .select({
          key_id: apiKeys.id,
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

  /** Keys are inserted in serial transactions of the store, so no key with a lower number is committed later. */
  async hashesSince(row: number, length: number): Promise<KeyHashStart[]> {
    return await this.#executor
      .select({
        row: apiKeys.row_id,
        hash_start: sql<string>`left(${apiKeys.secret_sha256}, ${length})`,
      })
      .from(apiKeys)
      .where(gt(apiKeys.row_id, row));
  }

  /**
   * Writes in one statement that waits for no lock. A key that another transaction is changing is skipped, and is not
   * in the result.
   */
  async writeLastUsed(noted: () => readonly KeyUse[]): Promise<readonly KeyUse[]> {
    const uses = noted();
    if (uses.length === 0) return uses;
    const key_ids = uses.map(({ key_id }) => key_id);
    const times = uses.map(({ at_ms }) => at_ms);
    const left_out = new Set<unknown>();
    for (const { key_id } of await this.#executor.execute(sql`
      WITH used AS (
        SELECT key_id, max(at_ms) AS at_ms
        FROM unnest(${sql.param(key_ids)}::text[], ${sql.param(times)}::bigint[]) AS uses (key_id, at_ms)
        GROUP BY key_id
      ), later AS (
        SELECT api_keys.id, used.at_ms FROM used INNER JOIN api_keys ON api_keys.id = used.key_id
        WHERE api_keys.last_used_at_ms IS NULL OR api_keys.last_used_at_ms < used.at_ms
      ), free AS (
        SELECT api_keys.id, used.at_ms FROM used INNER JOIN api_keys ON api_keys.id = used.key_id
        WHERE api_keys.last_used_at_ms IS NULL OR api_keys.last_used_at_ms < used.at_ms
        FOR NO KEY UPDATE OF api_keys SKIP LOCKED
      ), written AS (
        UPDATE api_keys SET last_used_at_ms = free.at_ms FROM free WHERE api_keys.id = free.id
        RETURNING api_keys.id
      )
      SELECT id AS key_id FROM later WHERE id NOT IN (SELECT id FROM written)`))
      left_out.add(key_id);
    return left_out.size === 0 ? uses : uses.filter(({ key_id }) => !left_out.has(key_id));
  }
}
