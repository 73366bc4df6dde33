import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import type { PgConnection } from '../../db/postgres/connection.ts';
import { readOneState } from '../../db/postgres/one-state.ts';
import { ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { isPostgresMissing, type TestDatabase } from '../support/postgres.ts';

describe.skipIf(isPostgresMissing())('a read that takes too long', () => {
  let database: TestDatabase;
  let connection: PgConnection;
  beforeEach(async () => {
    database = await takeDatabase();
    connection = await database.connect({ connections: 1 });
  });
  afterEach(() => database[Symbol.asyncDispose]());

  test('is ended by the server, and its connection answers the next one', async () => {
    const read = readOneState(connection.db, (executor) => executor.execute(sql`SELECT pg_sleep(600)`), 100);
    await expect(read).rejects.toThrow(ReadTookTooLong);
    const next = await readOneState(connection.db, (executor) => executor.execute(sql`SELECT 1 AS one`));
    expect([...next]).toEqual([{ one: 1 }]);
  });

  test('of many statements ends between two of them', async () => {
    const read = readOneState(
      connection.db,
      async (executor, requireTime) => {
        while (true) {
          requireTime();
          await executor.execute(sql`SELECT 1`);
        }
      },
      100,
    );
    await expect(read).rejects.toThrow(ReadTookTooLong);
  });
});
