import { openDatabase } from '../../db/sqlite/connection.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { pruningOf } from '../ledger/support.ts';

/** Rolls up the usage of the database that is named, and prints a line a batch until it is killed. */
const [path = '', before_ms = '', now_ms = ''] = process.argv.slice(2);
await pruneUsage(pruningOf(openDatabase(path)), {
  before_ms: Number(before_ms),
  now_ms: Number(now_ms),
  batch_requests: 20,
  onProgress: ({ requests }) => process.stdout.write(`${requests}\n`),
});
