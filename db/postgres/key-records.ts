import { and, eq, gt, isNull, sql } from 'drizzle-orm';
import type { ActiveKey, KeyHashStart, KeyRecords, KeyUse } from '../../src/store/key-records.ts';
import { firstRow } from '../records/first-row.ts';
import { SqlKeyRecords } from '../records/key-records.ts';
import type { Executor } from './connection.ts';
import { apiKeys, organizations, projects } from './schema.ts';

/** API keys in PostgreSQL. */
export class PostgresKeyRecords extends SqlKeyRecords implements KeyRecords {
  readonly #executor: Executor;

  constructor(executor: Executor, noteKeyChange: () => void) {
    super(executor, noteKeyChange);
    this.#executor = executor;
  }

  findActive(secret_sha256: string): Promise<ActiveKey | undefined> {
    return firstRow(
      this.#executor
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
