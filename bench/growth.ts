/**
 * Measures the cost of a history: bytes of the database file for each request, and the times of a whole audit and one
 * from a checkpoint. Also measures the speed of the roll-up, and how long it holds the write lock.
 *
 *   bun bench/growth.ts [--requests 200000] [--recent 2000] [--directory <on the disk to measure>]
 *
 * `requests` are spread over the last UTC month and are rolled up. `recent` follow the checkpoint. Prints one JSON
 * line. The two audits alternate.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { continueAudit, runAudit } from '../db/sqlite/audit.ts';
import { type Db, openDatabase, transact } from '../db/sqlite/connection.ts';
import { auditCheckpoints, auditedOrganizations, auditedProjectMonths } from '../db/sqlite/schema.ts';
import { SqliteLedger } from '../db/sqlite/sqlite-ledger.ts';
import { SqliteStore } from '../db/sqlite/sqlite-store.ts';
import { UsageWriter } from '../db/sqlite/usage-writer.ts';
import { OPERATOR } from '../src/access/actor.ts';
import { createKey } from '../src/accounts/keys.ts';
import { createOrganization } from '../src/accounts/organizations.ts';
import { randomIdentifiers } from '../src/contract/identifiers.ts';
import { creditByHand } from '../src/payments/credit.ts';
import { systemClock } from '../src/time/clock.ts';
import { latestPrune_ms, pruneUsage } from '../src/usage/prune.ts';
import { median, quantile, report, rounded } from './support/statistics.ts';

const ORGANIZATIONS = 20;
const ROUNDS = 5;
const HELD_MICROS = 250;
const COST_MICROS = 200;
const CREDIT_MICROS = 500_000_000;
const TRANSACTION_REQUESTS = 1_000;

interface Account {
  readonly organization_id: string;
  readonly project_id: string;
  readonly api_key_id: string;
}

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '200000' },
    recent: { type: 'string', default: '2000' },
    directory: { type: 'string', default: tmpdir() },
  },
});
const requests = Number(values.requests);
const recent = Number(values.recent);

function fileBytes(db: Db): number {
  db.$client.run('PRAGMA wal_checkpoint(TRUNCATE)');
  const pages = db.$client
    .query<{ used: number }, []>(
      `SELECT (page_count - freelist_count) * page_size AS used
      FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
    )
    .get();
  return pages?.used ?? Number.NaN;
}

function elapsed_ms(work: () => unknown): number {
  const started_ms = performance.now();
  work();
  return performance.now() - started_ms;
}

const directory = mkdtempSync(join(values.directory, 'tds-bench-'));
try {
  const db = openDatabase(join(directory, 'bench.sqlite'));
  const store = new SqliteStore(db);
  const context = { store, clock: systemClock, identifiers: randomIdentifiers };
  const ledger = new SqliteLedger(db);
  const process_id = randomIdentifiers.id('process');
  const usage = new UsageWriter(db);
  const accounts: Account[] = [];
  for (let number = 0; number < ORGANIZATIONS; number += 1) {
    const organization = await createOrganization(context, OPERATOR, { name: `Organization ${number}` });
    const organization_id = organization.id;
    await creditByHand(context, OPERATOR, { organization_id, amount_micros: CREDIT_MICROS });
    const project_id = organization.default_project_id;
    const key = await createKey(context, OPERATOR, { project_id, name: 'Key' });
    accounts.push({ organization_id, project_id, api_key_id: key.id });
  }

  /** Writes answered requests as the service does, evenly between two times. */
  const fill = (count: number, from_ms: number, to_ms: number) => {
    for (let first = 0; first < count; first += TRANSACTION_REQUESTS) {
      transact(db, () => {
        for (let number = first; number < Math.min(count, first + TRANSACTION_REQUESTS); number += 1) {
          const account = accounts[number % ORGANIZATIONS];
          if (account === undefined) throw new RangeError('no account');
          const at_ms = Math.floor(from_ms + ((to_ms - from_ms) * number) / count);
          const request_id = randomIdentifiers.id('request');
          const { organization_id, project_id } = account;
          const asked = { organization_id, project_id, request_id, amount_micros: HELD_MICROS, at_ms };
          const result = ledger.hold(asked, process_id);
          if (!result.held) throw new Error(result.refusal);
          ledger.charge(result.hold, COST_MICROS, at_ms + 100);
          usage.record({
            ...account,
            request_id,
            time_ms: at_ms,
            model: 'decision-1',
            mode: 'fast',
            endpoint: '/v1/decisions',
            status: 200,
            questions: 5,
            input_tokens: 2 * COST_MICROS,
            cost_micros: COST_MICROS,
            latency_ms: 101.234 + (number % 1_000) / 7,
          });
        }
      });
    }
  };

  const now_ms = systemClock.now_ms();
  const month_ms = latestPrune_ms(now_ms);
  const empty_bytes = fileBytes(db);
  fill(requests, month_ms - 28 * 86_400_000, month_ms - 86_400_000);
  const full_bytes = fileBytes(db);
  const first_audit_ms = elapsed_ms(() => continueAudit(db, { now_ms }));
  fill(recent, month_ms, now_ms);

  const whole: number[] = [];
  const continued: number[] = [];
  const checkpoint = db.select().from(auditCheckpoints).all();
  const sums = db.select().from(auditedOrganizations).all();
  const months = db.select().from(auditedProjectMonths).all();
  const restore = () => {
    db.delete(auditCheckpoints).run();
    db.delete(auditedOrganizations).run();
    db.delete(auditedProjectMonths).run();
    for (const row of checkpoint) db.insert(auditCheckpoints).values(row).run();
    for (const row of sums) db.insert(auditedOrganizations).values(row).run();
    for (const row of months) db.insert(auditedProjectMonths).values(row).run();
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    restore();
    continued.push(elapsed_ms(() => continueAudit(db, { now_ms })));
    whole.push(elapsed_ms(() => runAudit(db)));
  }

  const before_bytes = fileBytes(db);
  const batches_ms: number[] = [];
  let last_ms = performance.now();
  const prune_ms = await (async () => {
    const started_ms = performance.now();
    const parts = { store, continueAudit: (at_ms: number) => continueAudit(db, { now_ms: at_ms }).ok };
    await pruneUsage(parts, {
      before_ms: month_ms,
      now_ms,
      onProgress: () => batches_ms.push(performance.now() - last_ms),
      isStopped: () => {
        last_ms = performance.now();
        return false;
      },
    });
    return performance.now() - started_ms;
  })();
  const after_bytes = fileBytes(db);
  if (!runAudit(db).ok) throw new Error('the audit found a violation');
  report({
    bench: 'growth',
    requests,
    recent,
    bytes_per_request: rounded((full_bytes - empty_bytes) / requests),
    bytes_per_request_rolled_up: rounded(
      (full_bytes - empty_bytes - (before_bytes - after_bytes)) / requests,
    ),
    first_audit_ms: rounded(first_audit_ms),
    whole_audit_ms: rounded(median(whole)),
    continued_audit_ms: rounded(median(continued)),
    prune_requests_per_s: rounded((1_000 * requests) / prune_ms),
    batch_median_ms: rounded(median(batches_ms)),
    batch_p99_ms: rounded(quantile(batches_ms, 0.99)),
  });
  db.$client.close();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
