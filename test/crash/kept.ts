import { expect } from 'bun:test';
import { runAudit } from '../../db/sqlite/audit.ts';
import type { Db } from '../../db/sqlite/connection.ts';
import type { Seen } from './load.ts';

/** The stored rows of one request. */
interface Written {
  readonly status: number | null;
  readonly cost_micros: number | null;
  readonly charges: number;
  readonly charged_micros: number;
  readonly open_holds: number;
}

export function written(db: Db, request_id: string): Written | null {
  return db.$client
    .query<Written, [string]>(
      `SELECT (SELECT status FROM usage_records WHERE request_id = ?1) AS status,
        (SELECT cost_micros FROM usage_records WHERE request_id = ?1) AS cost_micros,
        count(*) FILTER (WHERE ended.kind = 'charge') AS charges,
        -coalesce(sum(ended.credit_delta_micros), 0) AS charged_micros,
        count(*) FILTER (WHERE hold.id IS NOT NULL AND ended.id IS NULL) AS open_holds
      FROM (SELECT 1) LEFT JOIN ledger_entries AS hold ON hold.request_id = ?1
      LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id`,
    )
    .get(request_id);
}

/** Expects the stored rows of a request to match its client's answer. */
export function expectKept(db: Db, { request_id, status, cost_micros }: Seen): void {
  const found = written(db, request_id);
  if (status !== 200) {
    expect({ request_id, found }).toMatchObject({ found: { charges: 0, charged_micros: 0, open_holds: 0 } });
    expect([null, status]).toContain(found?.status ?? null);
    return;
  }
  expect({ request_id, found }).toMatchObject({ found: { status: 200, charges: 1, open_holds: 0 } });
  expect(found?.charged_micros).toBe(cost_micros ?? found?.cost_micros ?? Number.NaN);
}

/** The books as a server finds them that has just started and serves nobody yet. */
export function expectClean(db: Db): void {
  const { checks, open_holds } = runAudit(db, { ended_before_ms: Date.now() + 1 });
  expect(checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
  expect(open_holds).toBe(0);
}
