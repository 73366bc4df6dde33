import { and, asc, count, desc, eq, isNotNull, isNull, min, sql } from 'drizzle-orm';
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
import type { Db } from './connection.ts';
import type { GroupCommit } from './group-commit.ts';
import { apiKeys, organizations, projects, users } from './schema.ts';
import type { Access } from './transactions.ts';

/** Prepares the statements of every request, once for a connection. */
export function prepareKeyStatements(db: Db) {
  return {
    findActive: db
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
          eq(apiKeys.secret_sha256, sql.placeholder('secret_sha256')),
          isNull(apiKeys.revoked_at_ms),
          isNull(projects.archived_at_ms),
        ),
      )
      .prepare(),
    hashesSince: db
      .select({
        row: sql<number>`rowid`,
        hash_start: sql<string>`substr(${apiKeys.secret_sha256}, 1, ${sql.placeholder('length')})`,
      })
      .from(apiKeys)
      .where(sql`rowid > ${sql.placeholder('row')}`)
      .prepare(),
    writeLastUsed: db
      .update(apiKeys)
      .set({
        last_used_at_ms: sql`max(coalesce(${apiKeys.last_used_at_ms}, 0), ${sql.placeholder('at_ms')})`,
      })
      .where(eq(apiKeys.id, sql.placeholder('key_id')))
      .prepare(),
  };
}

/** API keys in SQLite. */
export class SqliteKeyRecords implements KeyRecords {
  readonly #db: Db;
  readonly #access: Access;
  readonly #statements: ReturnType<typeof prepareKeyStatements>;
  readonly #commits: Pick<GroupCommit, 'run'>;
  readonly #noteKeyChange: () => void;

  constructor(
    db: Db,
    access: Access,
    statements: ReturnType<typeof prepareKeyStatements>,
    commits: Pick<GroupCommit, 'run'>,
    noteKeyChange: () => void,
  ) {
    this.#db = db;
    this.#access = access;
    this.#statements = statements;
    this.#commits = commits;
    this.#noteKeyChange = noteKeyChange;
  }

  insertKey(key: NewKey): Promise<void> {
    return this.#access.write(() => this.#db.insert(apiKeys).values(key).run());
  }

  listKeys({ member_user_id, organization_id, project_id, revoked }: KeyFilter): Promise<ListedKey[]> {
    return this.#access.read(() =>
      this.#listed()
        .where(
          and(
            member_user_id === undefined ? undefined : isProjectOfMember(member_user_id),
            organization_id === undefined ? undefined : eq(organizations.id, organization_id),
            project_id === undefined ? undefined : eq(projects.id, project_id),
            revoked ? isNotNull(apiKeys.revoked_at_ms) : isNull(apiKeys.revoked_at_ms),
          ),
        )
        .orderBy(asc(apiKeys.created_at_ms), asc(apiKeys.id))
        .all(),
    );
  }

  revokedKeysOf(organization_id: string, after_key_id: string | null, limit: number): Promise<ListedKey[]> {
    return this.#access.read(() =>
      this.#listed()
        .where(
          and(
            eq(organizations.id, organization_id),
            isNotNull(apiKeys.revoked_at_ms),
            after_key_id === null
              ? undefined
              : sql`(${apiKeys.revoked_at_ms}, ${apiKeys.id}) <
                  (SELECT revoked_at_ms, id FROM api_keys WHERE id = ${after_key_id})`,
          ),
        )
        .orderBy(desc(apiKeys.revoked_at_ms), desc(apiKeys.id))
        .limit(limit)
        .all(),
    );
  }

  #listed() {
    return this.#db
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

  countActive(organization_id: string): Promise<number> {
    return this.#access.read(() => {
      const row = this.#db
        .select({ number: count() })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(and(eq(projects.organization_id, organization_id), isNull(apiKeys.revoked_at_ms)))
        .get();
      return row?.number ?? 0;
    });
  }

  firstCreated_ms(organization_id: string): Promise<number | undefined> {
    return this.#access.read(
      () =>
        this.#db
          .select({ created_at_ms: min(apiKeys.created_at_ms) })
          .from(apiKeys)
          .innerJoin(projects, eq(projects.id, apiKeys.project_id))
          .where(eq(projects.organization_id, organization_id))
          .get()?.created_at_ms ?? undefined,
    );
  }

  activeKeysNamed(
    name: string,
    organization_id: string | undefined,
    limit: number,
  ): Promise<{ readonly id: string }[]> {
    return this.#access.read(() =>
      this.#db
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
        .limit(limit)
        .all(),
    );
  }

  findOwner(key_id: string): Promise<KeyOwner | undefined> {
    return this.#access.read(() =>
      this.#db
        .select({
          organization_id: projects.organization_id,
          created_by_user_id: apiKeys.created_by_user_id,
          revoked_at_ms: apiKeys.revoked_at_ms,
        })
        .from(apiKeys)
        .innerJoin(projects, eq(projects.id, apiKeys.project_id))
        .where(eq(apiKeys.id, key_id))
        .get(),
    );
  }

  async revokeKey(key_id: string, revoked_at_ms: number): Promise<void> {
    await this.#access.write(() =>
      this.#db.update(apiKeys).set({ revoked_at_ms }).where(eq(apiKeys.id, key_id)).run(),
    );
    this.#noteKeyChange();
  }

  async revokeKeysOf(project_id: string, revoked_at_ms: number): Promise<void> {
    await this.#access.write(() =>
      this.#db
        .update(apiKeys)
        .set({ revoked_at_ms })
        .where(and(eq(apiKeys.project_id, project_id), isNull(apiKeys.revoked_at_ms)))
        .run(),
    );
    this.#noteKeyChange();
  }

  findHash(key_id: string): Promise<string | undefined> {
    return this.#access.read(
      () =>
        this.#db
          .select({ secret_sha256: apiKeys.secret_sha256 })
          .from(apiKeys)
          .where(eq(apiKeys.id, key_id))
          .get()?.secret_sha256,
    );
  }

  findActive(secret_sha256: string): Promise<ActiveKey | undefined> {
    return this.#access.read(() => this.#statements.findActive.get({ secret_sha256 }));
  }

  hashesSince(row: number, length: number): Promise<KeyHashStart[]> {
    return this.#access.read(() => this.#statements.hashesSince.all({ row, length }));
  }

  /** Writes in the group commit that has the holds of the same requests. */
  writeLastUsed(noted: () => readonly KeyUse[]): Promise<readonly KeyUse[]> {
    return this.#commits.run(() => {
      const uses = noted();
      for (const { key_id, at_ms } of uses) this.#statements.writeLastUsed.run({ key_id, at_ms });
      return uses;
    });
  }
}
