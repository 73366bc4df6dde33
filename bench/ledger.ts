/**
 * How many durable pairs of hold and charge a second the books write, each charge with its usage row, with 1, 16 and 64
 * callers: through group commit, and through one drizzle transaction for each write, which is what a caller without group
 * commit does. Both do the same work on the same tables with `synchronous=FULL`, in turns, so that a busy machine slows
 * both.
 *
 *   bun bench/ledger.ts [--rounds 7] [--seconds 1] [--directory <on the disk to measure>]
 *
 * Prints a JSON line for each number of callers: medians of pairs a second over the rounds, and their ratio.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Db, openDatabase, transact } from '../db/sqlite/connection.ts';
import { GroupCommit } from '../db/sqlite/group-commit.ts';
import { apiKeys, organizations, payments, projects } from '../db/sqlite/schema.ts';
import { SqliteBooks } from '../db/sqlite/sqlite-books.ts';
import { SqliteLedger } from '../db/sqlite/sqlite-ledger.ts';
import { UsageWriter } from '../db/sqlite/usage-writer.ts';
import { systemClock } from '../src/clock.ts';
import { randomIdentifiers } from '../src/identifiers.ts';
import type { Books } from '../src/ledger/books.ts';
import type { UsageRow } from '../src/usage/usage-row.ts';
import { median, report, rounded } from './support/statistics.ts';

const CALLERS = [1, 16, 64];
const HELD_MICROS = 50;
const COST_MICROS = 30;
const CREDIT_MICROS = 1_000_000_000_000;
const account = { organization_id: 'org_bench', project_id: 'proj_bench' };

const usage_metadata = {
  ...account,
  api_key_id: 'key_bench',
  model: 'decision-1',
  mode: 'fast',
  endpoint: '/v1/decisions',
  latency_ms: 101.234,
} as const;

/** The two writes that are measured. */
type Writes = Pick<Books, 'hold' | 'charge'>;

/** What a caller without group commit does: a transaction for each write. */
function plainTransactions(db: Db, process_id: string): Writes {
  const ledger = new SqliteLedger(db);
  const usage = new UsageWriter(db);
  return {
    hold: (request) => Promise.try(() => transact(db, () => ledger.hold(request, process_id))),
    charge: (hold, cost_micros, row) =>
      Promise.try(() =>
        transact(db, () => {
          ledger.charge(hold, cost_micros, systemClock.now_ms());
          usage.record(row);
        }),
      ),
  };
}

function fill(db: Db): void {
  const { organization_id, project_id } = account;
  const payment_id = 'pay_bench';
  transact(db, () => {
    db.insert(organizations).values({ id: organization_id, name: 'Bench', created_at_ms: 0 }).run();
    db.insert(projects).values({ id: project_id, organization_id, name: 'Default', created_at_ms: 0 }).run();
    db.insert(apiKeys)
      .values({
        id: usage_metadata.api_key_id,
        project_id,
        name: 'Bench',
        secret_sha256: 'bench',
        display_prefix: 'sk_svc_bench',
        created_at_ms: 0,
      })
      .run();
    db.insert(payments)
      .values({
        id: payment_id,
        organization_id,
        provider: 'manual',
        external_id: payment_id,
        kind: 'top_up',
        amount_micros: CREDIT_MICROS,
        status: 'completed',
        created_at_ms: 0,
      })
      .run();
    new SqliteLedger(db).topUp({ organization_id, amount_micros: CREDIT_MICROS, payment_id, at_ms: 0 });
  });
}

type UnendedRow = Omit<UsageRow, 'status' | 'questions' | 'input_tokens' | 'cost_micros'>;

function answered(row: UnendedRow): UsageRow {
  return { ...row, status: 200, questions: 1, input_tokens: 2 * COST_MICROS, cost_micros: COST_MICROS };
}

function failed(row: UnendedRow): UsageRow {
  return { ...row, status: 503, questions: 0, input_tokens: 0, cost_micros: 0 };
}

/** Pairs a second that so many callers write in that time. */
async function pairsPerSecond(writes: Writes, callers: number, duration_ms: number): Promise<number> {
  const started_ms = performance.now();
  let pairs = 0;
  const call = async () => {
    while (performance.now() - started_ms < duration_ms) {
      const at_ms = Date.now();
      const request_id = crypto.randomUUID();
      const result = await writes.hold({ ...account, request_id, amount_micros: HELD_MICROS, at_ms });
      if (!result.held) throw new Error(result.refusal);
      const row = { ...usage_metadata, request_id, time_ms: at_ms };
      await writes.charge(result.hold, COST_MICROS, answered(row), failed(row));
      pairs += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, call));
  return (1_000 * pairs) / (performance.now() - started_ms);
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '1' },
    directory: { type: 'string', default: tmpdir() },
  },
});
const rounds = Number(values.rounds);
const duration_ms = 1_000 * Number(values.seconds);
const directory = mkdtempSync(join(values.directory, 'tds-bench-'));
try {
  const db = openDatabase(join(directory, 'bench.sqlite'));
  fill(db);
  const process_id = randomIdentifiers.id('process');
  const grouped = new SqliteBooks(new GroupCommit(db), systemClock, process_id, {
    onProblem: (_step, error) => {
      throw error;
    },
    onSettled: () => {},
  });
  const plain = plainTransactions(db, process_id);
  for (const callers of CALLERS) {
    const grouped_rates: number[] = [];
    const plain_rates: number[] = [];
    await pairsPerSecond(grouped, callers, duration_ms / 4);
    await pairsPerSecond(plain, callers, duration_ms / 4);
    for (let round = 0; round < rounds; round += 1) {
      grouped_rates.push(await pairsPerSecond(grouped, callers, duration_ms));
      plain_rates.push(await pairsPerSecond(plain, callers, duration_ms));
    }
    const [group_commit, plain_transactions] = [median(grouped_rates), median(plain_rates)];
    report({
      bench: 'ledger',
      callers,
      rounds,
      group_commit_pairs_per_s: rounded(group_commit),
      plain_transactions_pairs_per_s: rounded(plain_transactions),
      ratio: rounded(group_commit / plain_transactions),
    });
  }
  db.$client.close();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
