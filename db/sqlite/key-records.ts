import { eq, sql } from 'drizzle-orm';
import type { KeyHashStart, KeyRecords, KeyUse } from '../../src/store/key-records.ts';
import type { Executor } from '../records/executor.ts';
import { SqlKeyRecords } from '../records/key-records.ts';
import type { Db } from './connection.ts';
import type { GroupCommit } from './group-commit.ts';
import { apiKeys } from './schema.ts';
import type { Access } from './transactions.ts';

/** Prepares the statements that run often, once for a connection. */
export function prepareKeyStatements(db: Db) {
  return {
    hashesSince: db
      .select({
        row: sql<number>`rowid`,
        hash_start: sql<string>`substr(${apiKeys.secret_sha256}, 1, ${sql.placeholder('length')})`,
      })
      .from(apiKeys)
      .where(sql`rowid > ${sql.placeholder('row')}`)
      .orderBy(sql`rowid`)
      .limit(sql.placeholder('limit'))
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

  hashesSince(row: number, length: number, limit: number): Promise<KeyHashStart[]> {
    return this.#access.read(() => this.#statements.hashesSince.all({ row, length, limit }));
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
