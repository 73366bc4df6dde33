import type { IdempotencyRecords, StoredClaim } from '../../src/store/idempotency-records.ts';
import { readKept } from '../../src/store/kept-answer.ts';
import type { Db } from './connection.ts';
import type { Access } from './transactions.ts';

interface ClaimRow {
  readonly body_hash: string;
  readonly answer: string | null;
}

/** The stored idempotency keys in SQLite; claims and answers are written by `IdempotencyWriter`. */
export class SqliteIdempotencyRecords implements IdempotencyRecords {
  constructor(
    private readonly db: Db,
    private readonly access: Access,
  ) {}

  findClaim(
    { api_key_id, key_hash }: Parameters<IdempotencyRecords['findClaim']>[0],
    after_ms: number,
  ): Promise<StoredClaim | undefined> {
    return this.access.read(() => {
      const row = this.db.$client
        .query<ClaimRow, [string, string, number]>(
          `SELECT body_hash, answer FROM idempotent_requests
          WHERE api_key_id = ? AND key_hash = ? AND (answer IS NULL OR created_at_ms > ?)`,
        )
        .get(api_key_id, key_hash, after_ms);
      if (row === null) return undefined;
      return { body_hash: row.body_hash, kept: readKept(row.answer) };
    });
  }

  deleteAnswers(up_to_ms: number, limit: number): Promise<number> {
    return this.access.write(
      () =>
        this.db.$client
          .query<never, [number, number]>(
            `DELETE FROM idempotent_requests WHERE rowid IN (
              SELECT rowid FROM idempotent_requests WHERE created_at_ms <= ? AND answer IS NOT NULL LIMIT ?)`,
          )
          .run(up_to_ms, limit).changes,
    );
  }
}
