import { connectPostgres } from '../../db/postgres/connection.ts';
import { NodeLease } from '../../db/postgres/node-lease.ts';
import { PostgresBooks } from '../../db/postgres/postgres-books.ts';
import { systemClock } from '../../src/time/clock.ts';
import { measurePairs } from './ledger-pairs.ts';

/**
 * A node of `bench/ledger.ts --postgres` in its own process: `url id`. Each line of its standard input is a run,
 * `callers organizations milliseconds`. It answers with a line of results.
 */

const [url, id] = process.argv.slice(2);
if (url === undefined || id === undefined) throw new Error('url id');
const fail = (error: unknown) => {
  throw error;
};
const { db, close } = await connectPostgres(url);
const lease = await NodeLease.register(
  db,
  { id, version: 'bench' },
  { onProblem: fail, onReleased: () => undefined },
);
let commits = 0;
let writes = 0;
const books = new PostgresBooks(
  db.$client,
  lease,
  systemClock,
  { onProblem: (_step, error) => fail(error), onSettled: () => undefined },
  {
    onCommit: (_duration_ms, count) => {
      commits += 1;
      writes += count;
    },
  },
);
for await (const line of console) {
  const [callers = 1, organizations = 1, duration_ms = 1_000] = line.split(' ').map(Number);
  commits = 0;
  writes = 0;
  const pairs = await measurePairs(books, callers, organizations, duration_ms);
  process.stdout.write(`${JSON.stringify({ ...pairs, writes_a_commit: writes / commits })}\n`);
}
await books.close();
await lease.close();
await close();
