import { POSTGRES_TABLES } from './everything.ts';
import { type TestDatabase, testDatabase } from './postgres.ts';

/** Ends what else is connected, and waits for it: a statement of a closed connection may still be under way. */
const ALONE = `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`;
/** Deletes every row; tables that refer to each other need no order then. Takes 10 ms, and a `TRUNCATE` a second. */
const EMPTY = `SET session_replication_role = replica; ${POSTGRES_TABLES.map((name) => `DELETE FROM ${name};`).join(' ')}`;

/** Emptied databases that are free again: dropping one takes half a second, and making one a tenth. */
const free: TestDatabase[] = [];

/** A database with the service's schema and no row, which an earlier test may have used; `await using` gives it back. */
export async function takeDatabase(): Promise<TestDatabase> {
  const database = free.pop() ?? (await testDatabase());
  return { ...database, [Symbol.asyncDispose]: () => giveBackDatabase(database) };
}

/** Disconnects what `takeDatabase` gave, and gives it back. */
export async function giveBackDatabase(database: TestDatabase): Promise<void> {
  await database.disconnect();
  const emptying = await database.connect({ connections: 1 });
  await emptying.db.$client.unsafe(ALONE);
  const is_whole = await emptying.db.$client.unsafe(EMPTY).then(
    () => true,
    () => false,
  );
  await emptying.close();
  // A test may have taken a table away: nobody gets such a database again.
  if (is_whole) free.push(database);
}
