import { describe, expect, test } from 'bun:test';
import { Session, SessionDropped } from '../../db/postgres/session.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { isPostgresMissing } from '../support/postgres.ts';

const TEST_TIMEOUT_MS = 120_000;

describe.skipIf(isPostgresMissing())('a session that is dropped while it connects', () => {
  test(
    'does not wait for the pool, and gives back what the pool has for it later',
    async () => {
      await using database = await takeDatabase();
      const { db } = await database.connect({ connections: 1 });
      const taken = await db.$client.reserve();
      const session = new Session(db.$client);
      const connecting = session.connect();
      await session.drop();
      expect(connecting).rejects.toBeInstanceOf(SessionDropped);
      await connecting.catch(() => undefined);
      taken.release();
      // The only connection of the pool is there for the next one.
      const connection = await session.connect();
      const [row] = await connection.unsafe<{ one: number }[]>('SELECT 1 AS one');
      expect(row?.one).toBe(1);
      await session.drop();
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'does not wait for a statement that every connection begins with',
    async () => {
      await using database = await takeDatabase();
      const observer = await database.connect();
      const other = await observer.db.$client.reserve();
      await other.unsafe('SELECT pg_advisory_lock(1)');
      const { db } = await database.connect({ connections: 1, application_name: 'dropped' });
      const session = new Session(db.$client, ['SET lock_timeout = 0', 'SELECT pg_advisory_lock_shared(1)']);
      const connecting = session.connect();
      const waiting = `SELECT pid FROM pg_stat_activity WHERE application_name = 'dropped' AND wait_event = 'advisory'`;
      await eventually(async () => (await observer.db.$client.unsafe(waiting)).length !== 0);
      await session.drop();
      expect(connecting).rejects.toBeInstanceOf(SessionDropped);
      await connecting.catch(() => undefined);
      await other.unsafe('SELECT pg_advisory_unlock(1)');
      other.release();
      const connection = await session.connect();
      expect(await session.connect()).toBe(connection);
      await session.drop();
    },
    TEST_TIMEOUT_MS,
  );
});
