/**
 * How many durable pairs of hold and charge a second the ledger writes, with 1, 16 and 64 callers: through group commit,
 * and through one drizzle transaction for each write, which is what a caller without group commit does. Both do the same
 * work on the same tables with `synchronous=FULL`, in turns, so that a busy machine slows both.
 *
 *   bun bench/ledger.ts [--rounds 7] [--seconds 1] [--directory <on the disk to measure>]
 *
 * Prints a JSON line for each number of callers: medians of pairs a second over the rounds, and their ratio.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Db, type NotPromise, openDatabase, transact } from '../db/sqlite/connection.ts';
import { GroupCommit } from '../db/sqlite/group-commit.ts';
import { organizations, payments, projects } from '../db/sqlite/schema.ts';
import { Ledger } from '../src/ledger/ledger.ts';
import { median, report, rounded } from './support/statistics.ts';

const CALLERS = [1, 16, 64];
const HELD_MICROS = 50;
const COST_MICROS = 30;
const CREDIT_MICROS = 1_000_000_000_000;
const account = { organization_id: 'org_bench', project_id: 'proj_bench' };

/** Runs work in a durable transaction. */
type Write = <T>(work: () => NotPromise<T>) => Promise<T>;

function fill(db: Db, ledger: Ledger): void {
  const { organization_id, project_id } = account;
  const payment_id = 'pay_bench';
  transact(db, () => {
    db.insert(organizations).values({ id: organization_id, name: 'Bench', created_at_ms: 0 }).run();
    db.insert(projects).values({ id: project_id, organization_id, name: 'Default', created_at_ms: 0 }).run();
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
    ledger.topUp({ organization_id, amount_micros: CREDIT_MICROS, payment_id, at_ms: 0 });
  });
}

/** Pairs a second that so many callers write in that time. */
async function pairsPerSecond(
  ledger: Ledger,
  write: Write,
  callers: number,
  duration_ms: number,
): Promise<number> {
  const started_ms = performance.now();
  let pairs = 0;
  const call = async () => {
    while (performance.now() - started_ms < duration_ms) {
      const at_ms = Date.now();
      const request = { ...account, request_id: crypto.randomUUID(), amount_micros: HELD_MICROS, at_ms };
      const result = await write(() => ledger.hold(request));
      if (!result.held) throw new Error(result.refusal);
      await write(() => ledger.charge(result.hold, COST_MICROS, at_ms));
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
  const ledger = new Ledger(db);
  fill(db, ledger);
  const commits = new GroupCommit(db);
  const grouped: Write = (work) => commits.run(work);
  const plain: Write = async (work) => await Promise.resolve(transact(db, work));
  for (const callers of CALLERS) {
    const grouped_rates: number[] = [];
    const plain_rates: number[] = [];
    await pairsPerSecond(ledger, grouped, callers, duration_ms / 4);
    await pairsPerSecond(ledger, plain, callers, duration_ms / 4);
    for (let round = 0; round < rounds; round += 1) {
      grouped_rates.push(await pairsPerSecond(ledger, grouped, callers, duration_ms));
      plain_rates.push(await pairsPerSecond(ledger, plain, callers, duration_ms));
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
