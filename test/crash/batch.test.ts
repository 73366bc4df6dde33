import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import fc from 'fast-check';
import { usageRecords } from '../../db/sqlite/schema.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { microsOf } from '../../src/contract/money.ts';
import { BatchClient, HEADER, record } from '../batches/support.ts';
import { propertySeed } from '../ledger/support.ts';
import { ChildServer } from '../support/child-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectClean, expectKept } from './kept.ts';
import { addLoadAccounts } from './load.ts';

const RECORDS = 2_000;
const KILLS = 4;
/** Most of them are read by then at the latest, so that the last run has some left. */
const READ_MAX = 300;

/** After how many answers each server is killed; the last one is not. */
function kills(): readonly number[] {
  const seed = propertySeed('kill -9 of a batch');
  return [...fc.sample(fc.nat(READ_MAX), { seed, numRuns: KILLS }), RECORDS];
}

test('a batch whose server is killed again and again goes on by id: all is answered, and charged once', async () => {
  using root = temporaryDirectory();
  const data = join(root.path, 'data');
  const db = openDataDirectory(data, { create: true });
  try {
    const { rich } = await addLoadAccounts(db);
    const answered = new Map<unknown, { readonly request_id: string; readonly cost_micros: number }>();
    for (const killed_after of kills()) {
      await using server = await new ChildServer(data).ready();
      expectClean(db);
      const client = new BatchClient({ server }, rich);
      const missing = Array.from({ length: RECORDS }, (_, number) => record(number)).filter(
        ({ id }) => !answered.has(id),
      );
      client.write(HEADER, ...missing);
      client.end();
      let read = 0;
      try {
        for await (const answer of client.answers()) {
          if ('error' in answer) throw new Error(answer.error.message);
          expect(answered.has(answer.id)).toBe(false);
          const { request_id, usage } = answer;
          answered.set(answer.id, { request_id, cost_micros: microsOf(usage.cost_usd) });
          read += 1;
          if (read > killed_after) await server.kill();
        }
      } catch (error) {
        // The response of a server that was killed breaks off.
        if (killed_after === RECORDS) throw error;
      }
      await server.kill();
    }
    expectClean(db);
    expect(answered.size).toBe(RECORDS);
    for (const { request_id, cost_micros } of answered.values())
      expectKept(db, { request_id, status: 200, cost_micros });
    const charged = db.select().from(usageRecords).where(eq(usageRecords.status, 200)).all();
    expect(charged.length).toBeGreaterThanOrEqual(RECORDS);
  } finally {
    db.$client.close();
  }
}, 300_000);
