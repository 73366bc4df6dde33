import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { apiKeys, organizations, projects } from '../../db/sqlite/schema.ts';
import { SqliteStore } from '../../db/sqlite/sqlite-store.ts';
import { KeyDirectory } from '../../src/accounts/key-directory.ts';
import { keyDisplayPrefix } from '../../src/accounts/key-format.ts';
import { secretHash } from '../../src/accounts/secret-hash.ts';
import { DAY_MS } from '../../src/clock.ts';
import { randomIdentifiers } from '../../src/identifiers.ts';
import { TestClock, temporaryDatabase } from './support.ts';

let store: ReturnType<typeof temporaryDatabase>;
let clock: TestClock;
let commits: GroupCommit;
let directory: KeyDirectory;

beforeEach(() => {
  store = temporaryDatabase();
  clock = new TestClock();
  commits = new GroupCommit(store.db);
  directory = new KeyDirectory(new SqliteStore(store.db, undefined, commits).keys, clock);
  store.db.insert(organizations).values({ id: 'org_1', name: 'One', tier: 1, created_at_ms: 0 }).run();
  store.db
    .insert(projects)
    .values({ id: 'proj_1', organization_id: 'org_1', name: 'Default', created_at_ms: 0 })
    .run();
});

afterEach(() => store.remove());

function addKey(id: string): string {
  const secret = randomIdentifiers.apiKey();
  store.db
    .insert(apiKeys)
    .values({
      id,
      project_id: 'proj_1',
      name: id,
      secret_sha256: secretHash(secret),
      display_prefix: keyDisplayPrefix(secret),
      created_at_ms: 0,
    })
    .run();
  return secret;
}

function setOrganization(values: Partial<typeof organizations.$inferInsert>): void {
  store.db.update(organizations).set(values).where(eq(organizations.id, 'org_1')).run();
}

function revoke(id: string): void {
  store.db.update(apiKeys).set({ revoked_at_ms: 1 }).where(eq(apiKeys.id, id)).run();
}

function lastUsed(id: string): number | null | undefined {
  return store.db.select().from(apiKeys).where(eq(apiKeys.id, id)).get()?.last_used_at_ms;
}

function rethrow(error: unknown): never {
  throw error;
}

describe('whether a key may exist', () => {
  test('is true of every key that was made, revoked ones too, and false of others', async () => {
    const keys = Array.from({ length: 50 }, (_, index) => addKey(`key_${index}`));
    revoke('key_7');
    expect(await Promise.all(keys.map((key) => directory.mayExist(key, rethrow)))).toEqual(
      keys.map(() => true),
    );
    for (let count = 0; count < 50; count += 1)
      expect(await directory.mayExist(randomIdentifiers.apiKey(), rethrow)).toBe(false);
  });

  test('is told from memory; what another process made is read once a second at most', async () => {
    expect(await directory.mayExist(randomIdentifiers.apiKey(), rethrow)).toBe(false);
    const first = addKey('key_1');
    expect(await directory.mayExist(first, rethrow)).toBe(false);
    clock.advance(999);
    expect(await directory.mayExist(first, rethrow)).toBe(false);
    clock.advance(1);
    expect(await directory.mayExist(first, rethrow)).toBe(true);
    const second = addKey('key_2');
    clock.advance(1_000);
    expect([await directory.mayExist(first, rethrow), await directory.mayExist(second, rethrow)]).toEqual([
      true,
      true,
    ]);
  });

  test('is true while the database cannot be read', async () => {
    store.db.$client.run('ALTER TABLE api_keys RENAME TO gone');
    const failures: unknown[] = [];
    const may_exist = await directory.mayExist(randomIdentifiers.apiKey(), (error) => failures.push(error));
    expect(may_exist).toBe(true);
    expect(failures).toEqual([expect.objectContaining({ code: 'SQLITE_ERROR' })]);
  });
});

describe('authenticate', () => {
  test('answers with the tier that is earned now, not only with the stored one', async () => {
    const secret = addKey('key_1');
    const first_paid_at_ms = clock.now_ms();
    setOrganization({ paid_micros: 50_000_000, first_paid_at_ms });
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
    // What was written down stays when the wall clock steps back; the operator's minimum counts as well.
    setOrganization({ tier: 3 });
    clock.advance(60_000);
    expect(await directory.authenticate(secret)).toMatchObject({ tier: 3 });
    setOrganization({ minimum_tier: 4 });
    clock.advance(60_000);
    expect(await directory.authenticate(secret)).toMatchObject({ tier: 4 });
  });

  test('answers with project, organization, tier and limits of an active key', async () => {
    expect(await directory.authenticate(addKey('key_1'))).toEqual({
      key_id: 'key_1',
      project_id: 'proj_1',
      organization_id: 'org_1',
      tier: 1,
      limits: { requests_per_minute: 300, tokens_per_minute: 300_000, questions_per_request: 32 },
    });
  });

  test('puts dedicated limits in the place of the tier’s, only where they are set', async () => {
    setOrganization({ tier: 5, requests_per_minute: 9_000 });
    expect((await directory.authenticate(addKey('key_1')))?.limits).toEqual({
      requests_per_minute: 9_000,
      tokens_per_minute: 5_000_000,
      questions_per_request: 64,
    });
  });

  test('knows no key that was never made, was revoked, or belongs to an archived project', async () => {
    expect(await directory.authenticate(randomIdentifiers.apiKey())).toBeNull();
    const revoked = addKey('key_1');
    revoke('key_1');
    expect(await directory.authenticate(revoked)).toBeNull();
    const archived = addKey('key_2');
    store.db.update(projects).set({ archived_at_ms: 1 }).run();
    expect(await directory.authenticate(archived)).toBeNull();
  });

  test('a revoked key works for less than 60 seconds after it was looked up', async () => {
    const secret = addKey('key_1');
    expect(await directory.authenticate(secret)).not.toBeNull();
    revoke('key_1');
    clock.advance(59_999);
    expect(await directory.authenticate(secret)).not.toBeNull();
    clock.advance(1);
    expect(await directory.authenticate(secret)).toBeNull();
  });

  test('use of a key does not prolong the 60 seconds', async () => {
    const secret = addKey('key_1');
    await directory.authenticate(secret);
    revoke('key_1');
    for (let second = 0; second < 59; second += 1) {
      clock.advance(1_000);
      expect(await directory.authenticate(secret)).not.toBeNull();
    }
    clock.advance(1_000);
    expect(await directory.authenticate(secret)).toBeNull();
  });

  test('a new key works at once, also when it was tried before', async () => {
    const secret = addKey('key_1');
    store.db.delete(apiKeys).run();
    expect(await directory.authenticate(secret)).toBeNull();
    store.db
      .insert(apiKeys)
      .values({
        id: 'key_1',
        project_id: 'proj_1',
        name: 'n',
        secret_sha256: secretHash(secret),
        display_prefix: keyDisplayPrefix(secret),
        created_at_ms: 0,
      })
      .run();
    expect((await directory.authenticate(secret))?.key_id).toBe('key_1');
  });

  test('the first payment of an organization on Tier 0 counts at once', async () => {
    setOrganization({ tier: 0 });
    const secret = addKey('key_1');
    expect(await directory.authenticate(secret)).toMatchObject({ tier: 0, limits: null });
    setOrganization({ tier: 1 });
    expect(await directory.authenticate(secret)).toMatchObject({ tier: 1 });
  });

  test('a new tier and new limits apply within 60 seconds', async () => {
    const secret = addKey('key_1');
    await directory.authenticate(secret);
    setOrganization({ tier: 2, questions_per_request: 7 });
    clock.advance(60_000);
    expect(await directory.authenticate(secret)).toMatchObject({
      tier: 2,
      limits: { questions_per_request: 7 },
    });
  });

  test('a suspension applies within 60 seconds, and its end at once', async () => {
    const secret = addKey('key_1');
    expect((await directory.authenticate(secret))?.is_suspended).toBeUndefined();
    setOrganization({ suspended_at_ms: 1 });
    clock.advance(60_000);
    expect(await directory.authenticate(secret)).toMatchObject({ key_id: 'key_1', is_suspended: true });
    setOrganization({ suspended_at_ms: null });
    expect((await directory.authenticate(secret))?.is_suspended).toBeUndefined();
  });

  test('invalidate makes a change of this process count at once', async () => {
    const secret = addKey('key_1');
    await directory.authenticate(secret);
    revoke('key_1');
    directory.invalidate();
    expect(await directory.authenticate(secret)).toBeNull();
  });

  test('invalidate also counts for a lookup that has begun: what it read before is not kept', async () => {
    const secret = addKey('key_1');
    const begun = directory.authenticate(secret);
    revoke('key_1');
    directory.invalidate();
    expect(await begun).not.toBeNull();
    expect(await directory.authenticate(secret)).toBeNull();
  });

  test('keeps no more lookups than its size and drops the oldest', async () => {
    const small = new KeyDirectory(new SqliteStore(store.db).keys, clock, 2);
    const [first, second, third] = [addKey('key_1'), addKey('key_2'), addKey('key_3')];
    for (const secret of [first, second, third]) await small.authenticate(secret);
    for (const id of ['key_1', 'key_2', 'key_3']) revoke(id);
    expect(await small.authenticate(first)).toBeNull();
    expect(await small.authenticate(second)).not.toBeNull();
    expect(await small.authenticate(third)).not.toBeNull();
  });

  test('throws when the database cannot answer, and serves what it already knows', async () => {
    const [known, other] = [addKey('key_1'), addKey('key_2')];
    await directory.authenticate(known);
    store.db.$client.run('ALTER TABLE api_keys RENAME TO gone');
    expect((await directory.authenticate(known))?.key_id).toBe('key_1');
    await expect(directory.authenticate(other)).rejects.toThrow();
  });
});

describe('last-used times', () => {
  test('are written by flushLastUsed and never move back', async () => {
    addKey('key_1');
    directory.touch('key_1', 2_000);
    directory.touch('key_1', 1_000);
    expect(lastUsed('key_1')).toBeNull();
    await directory.flushLastUsed();
    expect(lastUsed('key_1')).toBe(2_000);
    directory.touch('key_1', 1_500);
    await directory.flushLastUsed();
    expect(lastUsed('key_1')).toBe(2_000);
  });

  test('do not move back what another process wrote in the meantime', async () => {
    addKey('key_1');
    directory.touch('key_1', 2_000);
    store.db.update(apiKeys).set({ last_used_at_ms: 9_000 }).run();
    await directory.flushLastUsed();
    expect(lastUsed('key_1')).toBe(9_000);
  });

  test('are kept until they are written: neither a failed write nor a failed commit beside it loses them', async () => {
    addKey('key_1');
    directory.touch('key_1', 2_000);
    store.db.$client.run('ALTER TABLE api_keys RENAME TO gone');
    expect(
      await directory.flushLastUsed().then(
        () => 'written',
        () => 'failed',
      ),
    ).toBe('failed');
    store.db.$client.run('ALTER TABLE gone RENAME TO api_keys');
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
    expect(lastUsed('key_1')).toBe(2_000);
  });
});
