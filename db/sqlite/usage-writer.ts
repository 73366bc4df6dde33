import { sql } from 'drizzle-orm';
import type { UsageRow } from '../../src/store/usage-row.ts';
import type { Db } from './connection.ts';
import { usageRecords } from './schema.ts';

/** Writes the metadata of requests. `record` belongs in the commit that ends the request's hold. */
export class UsageWriter {
  readonly #insert: ReturnType<typeof prepareInsert>;

  constructor(db: Db) {
    this.#insert = prepareInsert(db);
  }

  /**
   * Inserts the row. Throws SQLite's constraint error if the request already has a row, or a failed request has a cost.
   */
  record(row: UsageRow): void {
    this.#insert.run({ ...row });
  }
}

function prepareInsert(db: Db) {
  const { placeholder } = sql;
  return db
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
    .prepare();
}
