/**
 * Measures the console's reads of an organization with many requests, among more of others: charts, pages, filters, the
 * export, and the movements of credit. They run in the reader's thread. Also measures the event loop's delay meanwhile.
 *
 *   bun bench/usage-reads.ts [--requests 100000] [--others 1000000] [--rounds 7] [--directory <on the disk to measure>]
 *
 * Prints a JSON line for each read: medians and maxima in milliseconds, of wall time and the process's CPU time.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Db, openDatabase } from '../db/sqlite/connection.ts';
import { ReaderThread } from '../db/sqlite/reader-thread.ts';
import { apiKeys, organizations, projects } from '../db/sqlite/schema.ts';
import { DAY_MS } from '../src/time/clock.ts';
import { exportUsage } from '../src/usage/export.ts';
import { longestBlock_ms } from '../test/support/event-loop.ts';
import { median, report, rounded } from './support/statistics.ts';

const DAYS = 60;
const ORGANIZATIONS = 11;
const COST_MICROS = 250;
const END_MS = Date.UTC(2026, 10, 22);
const START_MS = END_MS - DAYS * DAY_MS;
const organization_id = 'org_0';

/** Writes one organization's requests, evenly among those of the others. */
function fill(db: Db, requests: number, others: number): void {
  for (let number = 0; number < ORGANIZATIONS; number += 1) {
    const id = `org_${number}`;
    const project_id = `proj_${number}`;
    db.insert(organizations).values({ id, name: id, created_at_ms: 0 }).run();
    db.insert(projects)
      .values({ id: project_id, organization_id: id, name: 'Default', created_at_ms: 0 })
      .run();
    db.insert(apiKeys)
      .values({
        id: `key_${number}`,
        project_id,
        name: 'Bench',
        secret_sha256: id,
        display_prefix: 'sk_svc_bench',
        created_at_ms: 0,
      })
      .run();
  }
  const total = requests + others;
  const every = Math.round(total / requests);
  const numbers = `WITH RECURSIVE numbers (number) AS
    (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${total - 1})`;
  const owner = `iif(number % ${every} = 0, 0, 1 + number % ${ORGANIZATIONS - 1})`;
  const time_ms = `${START_MS} + number * ${DAYS * DAY_MS} / ${total}`;
  const status = 'iif(number % 31 = 0, 503, 200)';
  db.$client.run('PRAGMA synchronous = OFF');
  db.$client.run(
    `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint,
      status, questions, input_tokens, cost_micros, latency_ms)
    ${numbers} SELECT 'req_' || lower(hex(randomblob(16))), ${time_ms}, 'org_' || ${owner}, 'proj_' || ${owner},
      'key_' || ${owner}, 'decision-1', iif(number % 4 = 0, 'consistent', 'fast'), '/v1/decisions', ${status},
      iif(number % 31 = 0, 0, 5), iif(number % 31 = 0, 0, 500), iif(number % 31 = 0, 0, ${COST_MICROS}),
      abs(random() % 300000) / 1000.0 FROM numbers`,
  );
  db.$client.run(
    `INSERT INTO ledger_entries (organization_id, project_id, kind, credit_delta_micros, held_delta_micros,
      request_id, month, created_at_ms, process_id, hold_entry_id)
    SELECT organization_id, project_id, kind, iif(kind = 'charge', -cost_micros, 0),
      iif(kind = 'charge', -cost_micros, cost_micros), iif(kind = 'hold', request_id, NULL),
      strftime('%Y-%m', time_ms / 1000, 'unixepoch'), time_ms, 'proc_bench',
      iif(kind = 'charge', row_number() OVER (ORDER BY time_ms, usage_records.rowid, kind DESC) - 1, NULL)
    FROM usage_records, (SELECT 'hold' AS kind UNION ALL SELECT 'charge')
    WHERE organization_id = '${organization_id}' AND status = 200
    ORDER BY time_ms, usage_records.rowid, kind DESC`,
  );
}

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    others: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '7' },
    directory: { type: 'string', default: tmpdir() },
  },
});

const directory = mkdtempSync(join(values.directory, 'tds-bench-'));
const db = openDatabase(join(directory, 'bench.sqlite'));
const thread = new ReaderThread(db.$client.filename);
try {
  fill(db, Number(values.requests), Number(values.others));
  const span = { from_ms: START_MS, to_ms: END_MS, offset_minutes: 60 };
  const exported = async () => {
    for await (const _ of exportUsage(thread, { organization_id }));
  };
  const reads: Readonly<Record<string, () => Promise<unknown>>> = {
    'chart of everything': () => thread.series({ organization_id, ...span }),
    'chart of everything in one mode': () => thread.series({ organization_id, mode: 'fast', ...span }),
    'chart of 7 days': () => thread.series({ organization_id, ...span, from_ms: END_MS - 7 * DAY_MS }),
    'first page': () => thread.page({ organization_id }, 51),
    'page of a status that nothing has': () => thread.page({ organization_id, status: 418 }, 51),
    'what there is to filter by': () => thread.values({ organization_id }),
    'first answer': () => thread.firstAnswer_ms(organization_id),
    'movements by request': () => thread.movementLines({ organization_id, charges_by: 'request', limit: 50 }),
    'movements by day': () => thread.movementLines({ organization_id, charges_by: 'day', limit: 30 }),
    'export of everything': exported,
  };
  for (const [read, run] of Object.entries(reads)) {
    const wall_ms: number[] = [];
    const cpu_ms: number[] = [];
    const block_ms: number[] = [];
    await run();
    for (let round = 0; round < Number(values.rounds); round += 1) {
      const started_ms = performance.now();
      const before = process.cpuUsage();
      await run();
      wall_ms.push(performance.now() - started_ms);
      const used = process.cpuUsage(before);
      cpu_ms.push((used.user + used.system) / 1_000);
      block_ms.push(await longestBlock_ms(run));
    }
    report({
      read,
      wall_ms: rounded(median(wall_ms)),
      wall_max_ms: rounded(Math.max(...wall_ms)),
      cpu_ms: rounded(median(cpu_ms)),
      event_loop_max_ms: rounded(Math.max(...block_ms)),
    });
  }
} finally {
  await thread.close();
  db.$client.close();
  rmSync(directory, { recursive: true, force: true });
}
