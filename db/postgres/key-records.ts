import { asc, gt, sql } from 'drizzle-orm';
import type { KeyHashStart, KeyRecords, KeyUse } from '../../src/store/key-records.ts';
import { SqlKeyRecords } from '../records/key-records.ts';
import type { Executor } from './connection.ts';
import { apiKeys } from './schema.ts';

/** API keys in PostgreSQL. */
export class PostgresKeyRecords extends SqlKeyRecords implements KeyRecords {
  readonly #executor: Executor;

  constructor(executor: Executor, noteKeyChange: () => void) {
    super(executor, noteKeyChange);
    this.#executor = executor;
  }

  /** Keys are inserted in serial transactions of the store, so no key with a lower number is committed later. */
  async hashesSince(row: number, length: number, limit: number): Promise<KeyHashStart[]> {
    return await this.#executor
      .select({
        row: apiKeys.row_id,
        hash_start: sql<string>`left(${apiKeys.secret_sha256}, ${length})`,
      })
      .from(apiKeys)
      .where(gt(apiKeys.row_id, row))
      .orderBy(asc(apiKeys.row_id))
      .limit(limit);
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
