import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { NestedTransaction, type Records, type Store } from '../../src/store/store.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { newOrganization, newUser } from './rows.ts';

/** A counter that loses a count when two transactions run at once: it is read, then written. */
async function increment({ accounts }: Records): Promise<number> {
  const before = Number((await accounts.findOrganization('counter'))?.name);
  await accounts.renameOrganization('counter', `${before + 1}`);
  return before + 1;
}

describe.each(DATABASES)('transactions in $name', ({ open }) => {
  let database: OpenDatabase;
  let store: Store;
  beforeEach(async () => {
    database = await open();
    store = database.store;
  });
  afterEach(() => database.close());

  const userIds = async () => (await store.accounts.allUsers()).map(({ id }) => id);

  test('of many processes run one after the other, each seeing what those before it wrote', async () => {
    const stores = [store, await database.another(), await database.another()];
    await store.accounts.insertOrganization(newOrganization('counter', { name: '0' }));
    const counts = await Promise.all(
      [...Array(60).keys()].map((number) => stores[number % stores.length]?.transaction(increment)),
    );
    expect(counts.toSorted((left, right) => Number(left) - Number(right))).toEqual(
      [...Array(60).keys()].map((number) => number + 1),
    );
    expect((await store.accounts.findOrganization('counter'))?.name).toBe('60');
  });

  test('see their own writes, and are seen by nobody else before they are done', async () => {
    const other = await database.another();
    await store.transaction(async ({ accounts }) => {
      await accounts.insertUser(newUser('ada'));
      expect(await accounts.findUser('ada')).toEqual(newUser('ada'));
      expect(await other.accounts.findUser('ada')).toBeUndefined();
    });
    expect(await other.accounts.findUser('ada')).toEqual(newUser('ada'));
  });

  test('resolve with the result of their work, and leave nothing behind when it rejects', async () => {
    expect(await store.transaction(() => Promise.resolve('done'))).toBe('done');
    const failed = store.transaction(async ({ accounts }) => {
      await accounts.insertUser(newUser('ada'));
      throw new RangeError('wrong');
    });
    await expect(failed).rejects.toThrow(new RangeError('wrong'));
    expect(await userIds()).toEqual([]);
  });

  test('leave nothing behind when one of their writes is refused, also one of several statements', async () => {
    await store.accounts.insertUser(newUser('bob'));
    const refusals: readonly ((records: Records) => Promise<unknown>)[] = [
      ({ accounts }) => accounts.insertUser(newUser('bob')),
      ({ accounts }) =>
        accounts.anonymizeUser('ada', { email: 'bob@example.com', name: 'x', deleted_at_ms: 1 }),
    ];
    for (const refused of refusals) {
      const failed = store.transaction(async (records) => {
        await records.accounts.insertUser(newUser('ada'));
        await refused(records);
      });
      await expect(failed).rejects.toThrow();
      expect(await userIds()).toEqual(['bob']);
    }
  });

  test('take along what takes several statements', async () => {
    await store.transaction(async ({ accounts, invitations }) => {
      await accounts.insertUser(newUser('ada'));
      await accounts.anonymizeUser('ada', { email: 'deleted:ada', name: 'Deleted', deleted_at_ms: 1 });
      await invitations.forgetAddress('ada@example.com', 'deleted:ada', 1);
    });
    expect(await store.accounts.findUser('ada')).toMatchObject({ email: 'deleted:ada' });
  });

  test('do not begin inside each other', async () => {
    const nested = store.transaction(async ({ accounts }) => {
      await accounts.insertUser(newUser('ada'));
      await store.transaction(() => Promise.resolve());
    });
    await expect(nested).rejects.toThrow(NestedTransaction);
    expect(await userIds()).toEqual([]);
  });

  test('that have ended lend their records to nobody', async () => {
    const kept = await store.transaction((records) => Promise.resolve([records]));
    for (const { accounts } of kept) {
      await expect(accounts.insertUser(newUser('ada'))).rejects.toThrow();
    }
    expect(await userIds()).toEqual([]);
  });

  describe('that only read', () => {
    beforeEach(() => store.accounts.insertOrganization(newOrganization('counter', { name: '0' })));

    test('resolve with the result of their work, and see one state of everything', async () => {
      const other = await database.another();
      await store.accounts.insertOrganization(newOrganization('twin', { name: '0' }));
      const name = async ({ accounts }: Records, id: string) => (await accounts.findOrganization(id))?.name;
      const writes = [...Array(40).keys()].map((number) =>
        other.transaction(async ({ accounts }) => {
          for (const id of ['counter', 'twin']) await accounts.renameOrganization(id, `${number}`);
        }),
      );
      const reads = [...Array(80).keys()].map(async () => {
        await writes[Math.floor(Math.random() * writes.length)];
        return store.snapshot(async (records) => [
          await name(records, 'counter'),
          await name(records, 'twin'),
        ]);
      });
      for (const [counter, twin] of await Promise.all(reads)) expect(counter).toBe(twin);
      await Promise.all(writes);
      expect(await store.snapshot((records) => name(records, 'twin'))).toBe('39');
    });

    test('wait for no transaction of another process', async () => {
      const other = await database.another();
      const name = await other.transaction(async (records) => {
        await increment(records);
        return store.snapshot(async ({ accounts }) => (await accounts.findOrganization('counter'))?.name);
      });
      expect(name).toBe('0');
    });

    test('write nothing', async () => {
      const written = store.snapshot(({ accounts }) => accounts.insertUser(newUser('ada')));
      await expect(written).rejects.toThrow();
      expect(await userIds()).toEqual([]);
    });

    test('run beside transactions, which lose nothing by them', async () => {
      const counts = [...Array(40).keys()].map((number) =>
        number % 2 === 0
          ? store.transaction(increment)
          : store.snapshot(async ({ accounts }) =>
              Number((await accounts.findOrganization('counter'))?.name),
            ),
      );
      for (const count of await Promise.all(counts)) expect(count).toBeWithin(0, 21);
      expect((await store.accounts.findOrganization('counter'))?.name).toBe('20');
    });

    test('begin in no transaction and in no other of their kind', async () => {
      const begin = () => store.snapshot(() => Promise.resolve());
      await expect(store.transaction(begin)).rejects.toThrow(NestedTransaction);
      await expect(store.snapshot(begin)).rejects.toThrow(NestedTransaction);
      await expect(store.snapshot(() => store.transaction(() => Promise.resolve()))).rejects.toThrow(
        NestedTransaction,
      );
    });
  });
});
