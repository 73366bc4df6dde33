import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { noKeyChange } from '../../db/key-changes.ts';
import { executorThrough } from '../../db/sqlite/executor.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { prepareKeyStatements, SqliteKeyRecords } from '../../db/sqlite/key-records.ts';
import { Transactions } from '../../db/sqlite/transactions.ts';
import { KeyDirectory } from '../../src/accounts/key-directory.ts';
import { keyDisplayPrefix } from '../../src/accounts/key-format.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { secretHash } from '../../src/hashing/secret-hash.ts';
import type { Organization } from '../../src/store/account-records.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { Gate } from '../support/faults.ts';
import { TestClock, temporaryDatabase } from './support.ts';

/** The databases' errors for a missing table. */
const NO_SUCH_TABLE = { SQLite: { code: 'SQLITE_ERROR' }, PostgreSQL: { cause: { errno: '42P01' } } };

function rethrow(error: unknown): never {
  throw error;
}

describe.each(DATABASES)('keys of callers, $name', ({ name, open }) => {
  let database: OpenDatabase;
  let clock: TestClock;
  let directory: KeyDirectory;

  beforeEach(async () => {
    database = await open();
    clock = new TestClock();
    directory = new KeyDirectory(database.store.keys, clock);
    const { accounts } = database.store;
    await accounts.insertOrganization({ id: 'org_1', name: 'One', personal_user_id: null, created_at_ms: 0 });
    await accounts.writeTier('org_1', 1);
    await accounts.insertProject({
      id: 'proj_1',
      organization_id: 'org_1',
      name: 'Default',
      created_at_ms: 0,
    });
  });

  afterEach(() => database.close());

  async function addKey(id: string, secret = randomIdentifiers.apiKey()): Promise<string> {
    await database.store.keys.insertKey({
      id,
      project_id: 'proj_1',
      name: id,
      secret_sha256: secretHash(secret),
      display_prefix: keyDisplayPrefix(secret),
      created_by_user_id: null,
      created_at_ms: 0,
      expires_at_ms: null,
      first_key_id: null,
      monthly_limit_micros: null,
    });
    return secret;
  }

  test('a key is refused from its expiry on, also where its lookup is kept, and works again with a later one', async () => {
    const secret = await addKey('key_1');
    const now_ms = clock.now_ms();
    await database.store.keys.setExpiry('key_1', now_ms + 5_000);
    expect(await directory.authenticate(secret)).toMatchObject({ key_id: 'key_1' });
    clock.advance(4_999);
    expect(await directory.authenticate(secret)).toMatchObject({ key_id: 'key_1' });
    expect(await directory.authenticate({ key_id: 'key_1' })).toMatchObject({ key_id: 'key_1' });
    clock.advance(1);
    expect(await directory.authenticate(secret)).toBeNull();
    expect(await directory.authenticate({ key_id: 'key_1' })).toBeNull();
    await database.store.keys.setExpiry('key_1', now_ms + 6_000);
    directory.invalidate();
    expect(await directory.authenticate(secret)).toMatchObject({ key_id: 'key_1' });
    clock.advance(60_000);
    expect(await directory.authenticate(secret)).toBeNull();
  });

  type Settings = Readonly<Partial<Record<keyof Organization, number | null>>>;

  async function setOrganization(settings: Settings): Promise<void> {
    const changes = Object.entries(settings).map(([column, value]) => `${column} = ${value}`);
    await database.run(`UPDATE organizations SET ${changes.join(', ')}`);
  }

  async function revoke(id: string): Promise<void> {
    await database.store.keys.revokeKey(id, 1);
  }

  async function lastUsed(id: string): Promise<number | null | undefined> {
    const listed = await database.store.keys.listKeys({ revoked: false, month: '2026-01' });
    return listed.find((key) => key.id === id)?.last_used_at_ms;
  }

  describe('whether a key may exist', () => {
    test('is true of every key that was made, revoked ones too, and false of others', async () => {
      const keys = await Promise.all(Array.from({ length: 50 }, (_, index) => addKey(`key_${index}`)));
      await revoke('key_7');
      expect(await Promise.all(keys.map((key) => directory.mayExist(key, rethrow)))).toEqual(
        keys.map(() => true),
      );
      for (let count = 0; count < 50; count += 1)
        expect(await directory.mayExist(randomIdentifiers.apiKey(), rethrow)).toBe(false);
    });

    test('is told from memory; what another process made is read once a second at most', async () => {
      expect(await directory.mayExist(randomIdentifiers.apiKey(), rethrow)).toBe(false);
      const first = await addKey('key_1');
      expect(await directory.mayExist(first, rethrow)).toBe(false);
      clock.advance(999);
      expect(await directory.mayExist(first, rethrow)).toBe(false);
      clock.advance(1);
      expect(await directory.mayExist(first, rethrow)).toBe(true);
      const second = await addKey('key_2');
      clock.advance(1_000);
      expect([await directory.mayExist(first, rethrow), await directory.mayExist(second, rethrow)]).toEqual([
        true,
        true,
      ]);
    });

    test('is true while the database cannot be read', async () => {
      await database.run('ALTER TABLE api_keys RENAME TO gone');
      const failures: unknown[] = [];
      const may_exist = await directory.mayExist(randomIdentifiers.apiKey(), (error) => failures.push(error));
      expect(may_exist).toBe(true);
      expect(failures).toMatchObject([NO_SUCH_TABLE[name]]);
    });
  });

  describe('authenticate', () => {
    test('answers with the tier that is earned now, not only with the stored one', async () => {
      const secret = await addKey('key_1');
      const first_paid_at_ms = clock.now_ms();
      await setOrganization({ paid_micros: 50_000_000, first_paid_at_ms });
      clock.advance(7 * DAY_MS - 1);
      expect(await directory.authenticate(secret)).toMatchObject({
        tier: 1,
        limits: { requests_per_minute: 300 },
      });
      clock.advance(60_000);
      expect(await directory.authenticate(secret)).toMatchObject({
        tier: 2,
        limits: { requests_per_minute: 700 },
      });
      // A recorded tier stays when the wall clock steps back. The operator's minimum counts, too.
      await setOrganization({ tier: 3 });
      clock.advance(60_000);
      expect(await directory.authenticate(secret)).toMatchObject({ tier: 3 });
      await setOrganization({ minimum_tier: 4 });
      clock.advance(60_000);
      expect(await directory.authenticate(secret)).toMatchObject({ tier: 4 });
    });

    test('answers with project, organization, tier and limits of an active key', async () => {
      expect(await directory.authenticate(await addKey('key_1'))).toEqual({
        key_id: 'key_1',
        first_key_id: 'key_1',
        project_id: 'proj_1',
        organization_id: 'org_1',
        tier: 1,
        limits: { requests_per_minute: 300, tokens_per_minute: 300_000, questions_per_request: 32 },
      });
    });

    test('puts dedicated limits in the place of the tier’s, only where they are set', async () => {
      await setOrganization({ tier: 5, requests_per_minute: 9_000 });
      expect((await directory.authenticate(await addKey('key_1')))?.limits).toEqual({
        requests_per_minute: 9_000,
        tokens_per_minute: 5_000_000,
        questions_per_request: 64,
      });
    });

    test('knows no key that was never made, was revoked, or belongs to an archived project', async () => {
      expect(await directory.authenticate(randomIdentifiers.apiKey())).toBeNull();
      const revoked = await addKey('key_1');
      await revoke('key_1');
      expect(await directory.authenticate(revoked)).toBeNull();
      const archived = await addKey('key_2');
      await database.store.accounts.archiveProject('proj_1', 1);
      expect(await directory.authenticate(archived)).toBeNull();
    });

    test('a revoked key works for less than 60 seconds after it was looked up', async () => {
      const secret = await addKey('key_1');
      expect(await directory.authenticate(secret)).not.toBeNull();
      await revoke('key_1');
      clock.advance(59_999);
      expect(await directory.authenticate(secret)).not.toBeNull();
      clock.advance(1);
      expect(await directory.authenticate(secret)).toBeNull();
    });

    test('use of a key does not prolong the 60 seconds', async () => {
      const secret = await addKey('key_1');
      await directory.authenticate(secret);
      await revoke('key_1');
      for (let second = 0; second < 59; second += 1) {
        clock.advance(1_000);
        expect(await directory.authenticate(secret)).not.toBeNull();
      }
      clock.advance(1_000);
      expect(await directory.authenticate(secret)).toBeNull();
    });

    test('a new key works at once, also when it was tried before', async () => {
      const secret = await addKey('key_1');
      await database.run('DELETE FROM api_keys');
      expect(await directory.authenticate(secret)).toBeNull();
      await addKey('key_1', secret);
      expect((await directory.authenticate(secret))?.key_id).toBe('key_1');
    });

    test('the first payment of an organization on Tier 0 counts at once', async () => {
      await setOrganization({ tier: 0 });
      const secret = await addKey('key_1');
      expect(await directory.authenticate(secret)).toMatchObject({ tier: 0, limits: null });
      await setOrganization({ tier: 1 });
      expect(await directory.authenticate(secret)).toMatchObject({ tier: 1 });
    });

    test('a new tier and new limits apply within 60 seconds', async () => {
      const secret = await addKey('key_1');
      await directory.authenticate(secret);
      await setOrganization({ tier: 2, questions_per_request: 7 });
      clock.advance(60_000);
      expect(await directory.authenticate(secret)).toMatchObject({
        tier: 2,
        limits: { questions_per_request: 7 },
      });
    });

    test('a suspension applies within 60 seconds, and its end at once', async () => {
      const secret = await addKey('key_1');
      expect((await directory.authenticate(secret))?.is_suspended).toBeUndefined();
      await setOrganization({ suspended_at_ms: 1 });
      clock.advance(60_000);
      expect(await directory.authenticate(secret)).toMatchObject({ key_id: 'key_1', is_suspended: true });
      await setOrganization({ suspended_at_ms: null });
      expect((await directory.authenticate(secret))?.is_suspended).toBeUndefined();
    });

    test('invalidate makes a change of this process count at once', async () => {
      const secret = await addKey('key_1');
      await directory.authenticate(secret);
      await revoke('key_1');
      directory.invalidate();
      expect(await directory.authenticate(secret)).toBeNull();
    });

    test('invalidate also counts for a lookup that has begun: what it read before is not kept', async () => {
      const secret = await addKey('key_1');
      const { keys } = database.store;
      const read = new Gate();
      const slow = new KeyDirectory(
        {
          findHash: (key_id) => keys.findHash(key_id),
          findActive: async (secret_sha256) => {
            const found = await keys.findActive(secret_sha256);
            await read.pass();
            return found;
          },
          hashesSince: (row, length, limit) => keys.hashesSince(row, length, limit),
          writeLastUsed: (noted) => keys.writeLastUsed(noted),
        },
        clock,
      );
      const begun = slow.authenticate(secret);
      await read.reached;
      await revoke('key_1');
      slow.invalidate();
      read.open();
      expect(await begun).not.toBeNull();
      expect(await slow.authenticate(secret)).toBeNull();
    });

    test('finds keys of all years, and reads only some of them at once', async () => {
      const secrets = [];
      for (const number of [1, 2, 3, 4, 5]) secrets.push(await addKey(`key_${number}`));
      const { keys } = database.store;
      const reads: number[] = [];
      const paged = new KeyDirectory(
        {
          findHash: (key_id) => keys.findHash(key_id),
          findActive: (secret_sha256) => keys.findActive(secret_sha256),
          hashesSince: async (row, length, limit) => {
            const found = await keys.hashesSince(row, length, limit);
            reads.push(found.length);
            return found;
          },
          writeLastUsed: (noted) => keys.writeLastUsed(noted),
        },
        clock,
        10,
        2,
      );
      for (const secret of secrets) expect(await paged.mayExist(secret, rethrow)).toBe(true);
      expect(reads).toEqual([2, 2, 1]);
    });

    test('keeps no more lookups than its size and drops the oldest', async () => {
      const small = new KeyDirectory(database.store.keys, clock, 2);
      const [first, second, third] = [await addKey('key_1'), await addKey('key_2'), await addKey('key_3')];
      for (const secret of [first, second, third]) await small.authenticate(secret);
      for (const id of ['key_1', 'key_2', 'key_3']) await revoke(id);
      expect(await small.authenticate(first)).toBeNull();
      expect(await small.authenticate(second)).not.toBeNull();
      expect(await small.authenticate(third)).not.toBeNull();
    });

    test('throws when the database cannot answer, and serves what it already knows', async () => {
      const [known, other] = [await addKey('key_1'), await addKey('key_2')];
      await directory.authenticate(known);
      await database.run('ALTER TABLE api_keys RENAME TO gone');
      expect((await directory.authenticate(known))?.key_id).toBe('key_1');
      await expect(directory.authenticate(other)).rejects.toThrow();
    });
  });

  describe('last-used times', () => {
    test('are written by flushLastUsed and never move back', async () => {
      await addKey('key_1');
      directory.touch('key_1', 2_000);
      directory.touch('key_1', 1_000);
      expect(await lastUsed('key_1')).toBeNull();
      await directory.flushLastUsed();
      expect(await lastUsed('key_1')).toBe(2_000);
      directory.touch('key_1', 1_500);
      await directory.flushLastUsed();
      expect(await lastUsed('key_1')).toBe(2_000);
    });

    test('do not move back what another process wrote in the meantime', async () => {
      await addKey('key_1');
      directory.touch('key_1', 2_000);
      await database.run('UPDATE api_keys SET last_used_at_ms = 9000');
      await directory.flushLastUsed();
      expect(await lastUsed('key_1')).toBe(9_000);
    });

    test('are kept until they are written: a failed write does not lose them', async () => {
      await addKey('key_1');
      directory.touch('key_1', 2_000);
      await database.run('ALTER TABLE api_keys RENAME TO gone');
      expect(
        await directory.flushLastUsed().then(
          () => 'written',
          () => 'failed',
        ),
      ).toBe('failed');
      await database.run('ALTER TABLE gone RENAME TO api_keys');
      await directory.flushLastUsed();
      expect(await lastUsed('key_1')).toBe(2_000);
    });
  });
});

test('times of last use join SQLite’s group commit, and a failed commit beside them does not lose them', async () => {
  const { db, remove } = temporaryDatabase();
  const commits = new GroupCommit(db);
  const access = new Transactions(db).outside;
  const records = new SqliteKeyRecords(
    executorThrough(db.$client, access),
    access,
    prepareKeyStatements(db),
    commits,
    noKeyChange,
  );
  db.$client.run("INSERT INTO organizations (id, name, created_at_ms) VALUES ('org_1', 'One', 0)");
  db.$client.run(
    "INSERT INTO projects (id, organization_id, name, created_at_ms) VALUES ('p', 'org_1', 'P', 0)",
  );
  await records.insertKey({
    id: 'key_1',
    project_id: 'p',
    name: 'Key',
    secret_sha256: secretHash('secret'),
    display_prefix: 'x',
    created_by_user_id: null,
    created_at_ms: 0,
    expires_at_ms: null,
    first_key_id: null,
    monthly_limit_micros: null,
  });
  const directory = new KeyDirectory(records, new TestClock());
  directory.touch('key_1', 2_000);
  const other = commits.run(() => {
    throw new Error('work of somebody else');
  });
  const flushed = directory.flushLastUsed();
  expect(
    await other.then(
      () => 'written',
      () => 'failed',
    ),
  ).toBe('failed');
  await flushed;
  expect(await records.listKeys({ revoked: false, month: '2026-01' })).toMatchObject([
    { last_used_at_ms: 2_000 },
  ]);
  remove();
});
