import { and, desc, gt, lte, or, sql } from 'drizzle-orm';
import type { Db } from '../../db/sqlite/connection.ts';
import { usageRecords } from '../../db/sqlite/schema.ts';

/** What a request took of its organization's rate limits. */
export interface UsedLimits {
  readonly organization_id: string;
  /** How long ago it was admitted. */
  readonly age_ms: number;
  /** Billed tokens: 0 for a failed request, which takes nothing from the tokens per minute. */
  readonly input_tokens: number;
}

/** Reads the metadata of requests. */
export class UsageLog {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Db) {
    this.#statements = prepare(db);
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
