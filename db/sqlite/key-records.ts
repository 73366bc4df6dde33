import { and, eq, isNull, sql } from 'drizzle-orm';
import type { ActiveKey, KeyHashStart, KeyRecords, KeyUse } from '../../src/store/key-records.ts';
import type { Executor } from '../records/executor.ts';
import { SqlKeyRecords } from '../records/key-records.ts';
import type { Db } from './connection.ts';
import type { GroupCommit } from './group-commit.ts';
import { apiKeys, organizations, projects } from './schema.ts';
import type { Access } from './transactions.ts';

/** Prepares the statements of every request, once for a connection. */
export function prepareKeyStatements(db: Db) {
  return {
    findActive: db
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
export class SqliteKeyRecords extends SqlKeyRecords implements KeyRecords {
  readonly #access: Access;
  readonly #statements: ReturnType<typeof prepareKeyStatements>;
  readonly #commits: Pick<GroupCommit, 'run'>;

  constructor(
    executor: Executor,
    access: Access,
    statements: ReturnType<typeof prepareKeyStatements>,
    commits: Pick<GroupCommit, 'run'>,
    noteKeyChange: () => void,
  ) {
    super(executor, noteKeyChange);
    this.#access = access;
    this.#statements = statements;
    this.#commits = commits;
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
