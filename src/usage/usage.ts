import { and, desc, gt, lte, or, sql } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import { usageRecords } from '../../db/sqlite/schema.ts';
import type { UsageRow } from './usage-row.ts';

/** What a request took of its organization's rate limits. */
export interface UsedLimits {
  readonly organization_id: string;
  /** How long ago it was admitted. */
  readonly age_ms: number;
  /** Billed tokens: 0 for a failed request, which takes nothing from the tokens per minute. */
  readonly input_tokens: number;
}

/** Writes and reads the metadata of requests. `record` belongs into the commit that ends the request's hold. */
export class UsageLog {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Db) {
    this.#statements = prepare(db);
  }

  /** Inserts the row. Throws SQLite's constraint error when the request has one, or when a failed request has a cost. */
  record(row: UsageRow): void {
    this.#statements.insert.run({ ...row });
  }

  /**
   * What was used less than `span_ms` ago, oldest first: what rate limits are rebuilt from at start. Rows of the future
   * were written before the wall clock was set back; the newest of them counts as written now.
   */
  recent(now_ms: number, span_ms: number): UsedLimits[] {
    const newest_ms = Math.max(now_ms, this.#statements.newest.get()?.time_ms ?? now_ms);
    const since_newest_ms = Math.max(now_ms, newest_ms - span_ms);
    return this.#statements.recent
      .all({ since_ms: now_ms - span_ms, now_ms, since_newest_ms })
      .map(({ time_ms, ...used }) => ({
        ...used,
        age_ms: (time_ms <= now_ms ? now_ms : newest_ms) - time_ms,
      }))
      .sort((left, right) => right.age_ms - left.age_ms);
  }
}

function prepare(db: Db) {
  const { placeholder } = sql;
  return {
    insert: db
      .insert(usageRecords)
      .values({
        request_id: placeholder('request_id'),
        time_ms: placeholder('time_ms'),
        organization_id: placeholder('organization_id'),
        project_id: placeholder('project_id'),
        api_key_id: placeholder('api_key_id'),
        model: placeholder('model'),
        mode: placeholder('mode'),
        endpoint: placeholder('endpoint'),
        status: placeholder('status'),
        questions: placeholder('questions'),
        input_tokens: placeholder('input_tokens'),
        cost_micros: placeholder('cost_micros'),
        latency_ms: placeholder('latency_ms'),
      })
      .prepare(),
    newest: db
      .select({ time_ms: usageRecords.time_ms })
      .from(usageRecords)
      .orderBy(desc(usageRecords.time_ms))
      .limit(1)
      .prepare(),
    recent: db
      .select({
        organization_id: usageRecords.organization_id,
        time_ms: usageRecords.time_ms,
        input_tokens: sql<number>`iif(${usageRecords.status} = 200, ${usageRecords.input_tokens}, 0)`,
      })
      .from(usageRecords)
      .where(
        or(
          and(
            gt(usageRecords.time_ms, placeholder('since_ms')),
            lte(usageRecords.time_ms, placeholder('now_ms')),
          ),
          gt(usageRecords.time_ms, placeholder('since_newest_ms')),
        ),
      )
      .prepare(),
  };
}
