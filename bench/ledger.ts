/**
 * Measures the durable pairs of hold and charge a second, each charge with its usage row, with 1, 16 and 64 callers. It
 * compares group commit with one drizzle transaction for each write. Both do the same work on the same tables with
 * `synchronous=FULL`, alternating, so that a busy machine slows both.
 *
 *   bun bench/ledger.ts [--rounds 7] [--seconds 1] [--directory <on the disk to measure>]
 *   bun bench/ledger.ts --postgres [--rounds 7] [--seconds 1] [--organizations 1000]
 *
 * `--postgres` compares with its own PostgreSQL server instead of plain transactions. One or two nodes, each a process,
 * share the callers, for one organization and for many.
 *
 * Prints a JSON line for each number of callers: medians of pairs a second, and their ratio.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Db, openDatabase, transact } from '../db/sqlite/connection.ts';
import { GroupCommit } from '../db/sqlite/group-commit.ts';
import { apiKeys, organizations, projects } from '../db/sqlite/schema.ts';
import { SqliteBooks } from '../db/sqlite/sqlite-books.ts';
import { SqliteLedger } from '../db/sqlite/sqlite-ledger.ts';
import { UsageWriter } from '../db/sqlite/usage-writer.ts';
import { randomIdentifiers } from '../src/contract/identifiers.ts';
import { systemClock } from '../src/time/clock.ts';
import { accountRows, addPayment } from '../test/ledger/support.ts';
import { benchAccount, CREDIT_MICROS, measurePairs, type Writes } from './support/ledger-pairs.ts';
import { startPostgresBench } from './support/ledger-postgres.ts';
import { median, report, rounded } from './support/statistics.ts';

const CALLERS = [1, 16, 64];
const NODES = [1, 2];
const account = benchAccount(0);

/** Makes a transaction for each write, without group commit. */
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
  const { organization_id } = account;
  const { organization, project, key } = accountRows(account);
  const payment_id = 'pay_bench';
  transact(db, () => {
    db.insert(organizations).values(organization).run();
    db.insert(projects).values(project).run();
    db.insert(apiKeys).values(key).run();
    addPayment(db, account, payment_id, 'top_up', CREDIT_MICROS);
    new SqliteLedger(db).topUp({ organization_id, amount_micros: CREDIT_MICROS, payment_id, at_ms: 0 });
  });
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '1' },
    postgres: { type: 'boolean', default: false },
    organizations: { type: 'string', default: '1000' },
    directory: { type: 'string', default: tmpdir() },
  },
});
/** Compares group commit with a transaction for each write, alternating. */
async function besidePlainTransactions(
  grouped: Writes,
  plain: Writes,
  measure: (writes: Writes, callers: number) => Promise<number>,
): Promise<void> {
  for (const callers of CALLERS) {
    const grouped_rates: number[] = [];
    const plain_rates: number[] = [];
    await measure(grouped, callers);
    await measure(plain, callers);
    for (let round = 0; round < rounds; round += 1) {
      grouped_rates.push(await measure(grouped, callers));
      plain_rates.push(await measure(plain, callers));
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
}

/** Compares SQLite's group commit with the nodes on PostgreSQL, alternating. */
async function besidePostgres(sqlite: Writes): Promise<void> {
  const many = Number(values.organizations);
  const postgres = await startPostgresBench(Math.max(...NODES), many);
  try {
    for (const organizations of [1, many]) {
      for (const callers of CALLERS) {
        for (const nodes of NODES.filter((count) => count <= callers)) {
          await postgres.measure(nodes, callers, organizations, duration_ms / 2);
          const runs = [];
          const sqlite_rates: number[] = [];
          for (let round = 0; round < rounds; round += 1) {
            runs.push(await postgres.measure(nodes, callers, organizations, duration_ms));
            sqlite_rates.push((await measurePairs(sqlite, callers, 1, duration_ms)).pairs_per_s);
          }
          const pairs_per_s = median(runs.map((run) => run.pairs_per_s));
          report({
            bench: 'ledger',
            database: 'PostgreSQL',
            organizations,
            nodes,
            callers,
            rounds,
            pairs_per_s: rounded(pairs_per_s),
            median_hold_ms: rounded(median(runs.map((run) => run.median_ms))),
            writes_a_commit: rounded(median(runs.map((run) => run.writes_a_commit))),
            sqlite_pairs_per_s: rounded(median(sqlite_rates)),
            ratio: rounded(pairs_per_s / median(sqlite_rates)),
          });
        }
      }
    }
  } finally {
    await postgres.close();
  }
}

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
  const measure = async (writes: Writes, callers: number) =>
    (await measurePairs(writes, callers, 1, duration_ms)).pairs_per_s;
  if (values.postgres) await besidePostgres(grouped);
  else await besidePlainTransactions(grouped, plainTransactions(db, process_id), measure);
  db.$client.close();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
