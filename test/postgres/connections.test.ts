import { expect, setDefaultTimeout, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import type { PgConnection } from '../../db/postgres/connection.ts';
import { organizations } from '../../db/postgres/schema.ts';
import { ServedPostgresDatabase } from '../../db/postgres/served-postgres-database.ts';
import { CONNECTIONS_TO_DATABASE_MIN } from '../../src/config/settings.ts';
import { createLog } from '../../src/log/log.ts';
import { systemClock } from '../../src/time/clock.ts';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { eventually } from '../support/eventually.ts';
import { isPostgresMissing } from '../support/postgres.ts';
import { accountNumber, addAccounts, HELD_MICROS, LedgerNode } from './ledger-load.ts';

setDefaultTimeout(120_000);

/** How many sessions of a node's requests wait for a lock. */
async function waiting({ db }: PgConnection): Promise<number> {
  const sessions = `SELECT pid FROM pg_stat_activity WHERE application_name = 'tds requests' AND wait_event_type = 'Lock'`;
  return (await db.$client.unsafe(sessions)).length;
}

test.skipIf(isPostgresMissing())(
  'a node with the fewest connections reads the catalog while all else waits for the row of one organization',
  async () => {
    await using database = await takeDatabase();
    const observer = await database.connect();
    const [locked = accountNumber(0), free = accountNumber(1)] = await addAccounts(observer, 2);
    const asked = (account: typeof locked, request_id: string) => ({
      ...account,
      request_id,
      amount_micros: HELD_MICROS,
      at_ms: Date.now(),
    });
    const ended = await LedgerNode.start(database.url, 'proc_ended');
    await ended.books.hold(asked(locked, 'req_of_nobody'));
    await ended.lease.close();
    await ended.connection.close();
    const node = await ServedPostgresDatabase.open(
      { url: database.url, connections: CONNECTIONS_TO_DATABASE_MIN, version: 'test' },
      {
        clock: systemClock,
        process_id: 'proc_node',
        log: createLog('silent'),
        report: () => undefined,
        onCommit: () => undefined,
      },
    );
    const of_locked = eq(organizations.id, locked.organization_id);
    let answered = 0;
    const waits: Promise<unknown>[] = [];
    const wait = (work: Promise<unknown>) => {
      const count = () => {
        answered += 1;
      };
      waits.push(work.then(count, count));
    };
    await observer.db.transaction(async (blocker) => {
      await blocker.select().from(organizations).where(of_locked).for('update');
      wait(node.books.hold(asked(locked, 'req_locked')));
      // It goes past the other, which is set aside then, on a connection of its own.
      await node.books.hold(asked(free, 'req_free'));
      wait(node.books.recover());
      wait(
        node.store.transaction(({ accounts }) => accounts.renameOrganization(locked.organization_id, 'new')),
      );
      await eventually(async () => (await waiting(observer)) >= 3 || answered > 0);
      expect((await node.catalog.allModels()).length).toBe(0);
      expect(answered).toBe(0);
      // The metrics show the transaction of the pool that waits for the row. The ledger waits on other connections.
      const { pool, bytes, free_bytes } = await node.state();
      expect(pool).toEqual({ connections_max: CONNECTIONS_TO_DATABASE_MIN - 4, under_way: 1 });
      expect(bytes).toBeGreaterThan(1_000_000);
      expect(free_bytes).toBeNull();
    });
    await Promise.all(waits);
    await node.close();
  },
);
