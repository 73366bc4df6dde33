import type { Db } from '../../db/sqlite/connection.ts';

interface AddedUsage {
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
  readonly requests: number;
  readonly from_ms: number;
  readonly to_ms: number;
  readonly model?: string;
}

/**
 * Writes usage rows at even distances of time, the first at `from_ms`: every 4th in consistent mode, every 31st (from the
 * first on) refused with 503, the others answered with 5 questions, 500 tokens and 250 micro-dollars. They took 40 to
 * 340 ms.
 */
export function addUsage(
  db: Db,
  { organization_id, project_id, api_key_id, requests, from_ms, to_ms, model = 'decision-1' }: AddedUsage,
): void {
  db.$client
    .query(
      `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint,
        status, questions, input_tokens, cost_micros, latency_ms)
      WITH RECURSIVE numbers (number) AS
        (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < $requests - 1)
      SELECT 'req_' || lower(hex(randomblob(16))), $from_ms + number * ($to_ms - $from_ms) / $requests,
        $organization_id, $project_id, $api_key_id, $model, iif(number % 4 = 0, 'consistent', 'fast'),
        '/v1/decisions', iif(number % 31 = 0, 503, 200), iif(number % 31 = 0, 0, 5), iif(number % 31 = 0, 0, 500),
        iif(number % 31 = 0, 0, 250), 40 + abs(random() % 3000) / 10.0
      FROM numbers`,
    )
    .run({ organization_id, project_id, api_key_id, requests, from_ms, to_ms, model });
}
