import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { KeyFilter, KeyRecords } from '../../src/store/key-records.ts';
import { turns } from '../support/event-loop.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { BYTEWISE, hashOf, newKey, newOrganization, newProject, newUser, SHUFFLED } from './rows.ts';

/** The month whose spend is listed. */
const MONTH = '2026-01';

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

describe.each(DATABASES)('keys in $name', ({ open }) => {
  let database: OpenDatabase;
  let keys: KeyRecords;
  /** Organization `org` with project `p`, organization `other` with project `q`, and the users `ada` and `bob`. */
  beforeEach(async () => {
    database = await open();
    keys = database.store.keys;
    const { accounts } = database.store;
    await accounts.insertUser(newUser('ada'));
    await accounts.insertUser(newUser('bob'));
    await accounts.insertOrganization(newOrganization('org'));
    await accounts.insertOrganization(newOrganization('other'));
    await accounts.insertProject(newProject('p', 'org'));
    await accounts.insertProject(newProject('q', 'other'));
  });
  afterEach(() => database.close());

  const add = async (...key_ids: string[]) => {
    for (const id of key_ids) await keys.insertKey(newKey(id, 'p'));
  };
  const list = async (filter: Partial<KeyFilter> = {}) =>
    await keys.listKeys({ revoked: false, month: MONTH, ...filter });

  describe('a key', () => {
    test('is listed as it was inserted, with its project, its organization and who made it', async () => {
      await keys.insertKey(newKey('k', 'p', { created_by_user_id: 'ada', created_at_ms: 1_700_000_000_000 }));
      const listed = {
        id: 'k',
        name: 'Name of k',
        display_prefix: 'tds_abcdefgh',
        organization_id: 'org',
        organization_name: 'Name of org',
        project_id: 'p',
        project_name: 'Name of p',
        created_by_user_id: 'ada',
        created_by_name: 'Name of ada',
        created_at_ms: 1_700_000_000_000,
        last_used_at_ms: null,
        revoked_at_ms: null,
        expires_at_ms: null,
        monthly_limit_micros: null,
        spent_this_month_micros: 0,
      };
      expect(await list()).toEqual([listed]);
      expect(await keys.findHash('k')).toBe(hashOf('k'));
      await keys.revokeKey('k', 1_700_000_000_001);
      expect(await list({ revoked: true })).toEqual([{ ...listed, revoked_at_ms: 1_700_000_000_001 }]);
    });

    test('has nobody who made it where the operator did', async () => {
      await add('k');
      expect(await list()).toMatchObject([{ created_by_user_id: null, created_by_name: null }]);
    });

    test('is inserted once: neither its id nor its hash twice, and in what exists', async () => {
      await add('k');
      for (const refused of [
        newKey('k', 'p', { secret_sha256: hashOf('new') }),
        newKey('new', 'q', { secret_sha256: hashOf('k') }),
        newKey('new', 'nothing'),
        newKey('new', 'p', { created_by_user_id: 'nobody' }),
      ]) {
        await expect(keys.insertKey(refused)).rejects.toThrow();
      }
      expect(ids(await list())).toEqual(['k']);
    });

    test('is found by its exact id only', async () => {
      await add('k');
      for (const id of ['', 'K', 'k ', 'k\u0000']) {
        expect(await keys.findHash(id)).toBeUndefined();
        expect(await keys.findOwner(id)).toBeUndefined();
      }
    });

    test('expires at the time that was set last, and then counts as revoked at that time, once it is counted', async () => {
      await add('a', 'b', 'c');
      await keys.insertKey(newKey('d', 'q', { expires_at_ms: 20 }));
      await keys.setExpiry('a', 10);
      await keys.setExpiry('b', 10);
      await keys.setExpiry('b', null);
      await keys.setExpiry('c', 10);
      await keys.revokeKey('c', 5);
      expect(await keys.findActive(hashOf('a'))).toMatchObject({ expires_at_ms: 10 });
      expect(await keys.revokeExpired(9)).toBe(0);
      expect(await keys.revokeExpired(10)).toBe(1);
      expect(await keys.revokeExpired(10)).toBe(0);
      expect(await keys.findActive(hashOf('a'))).toBeUndefined();
      expect(ids(await list())).toEqual(['b', 'd']);
      const revoked = await list({ revoked: true });
      expect(revoked.map(({ id, revoked_at_ms }) => [id, revoked_at_ms])).toEqual([
        ['a', 10],
        ['c', 5],
      ]);
    });

    test('tells its owner, and when it was revoked', async () => {
      await add('k');
      await keys.insertKey(newKey('own', 'q', { created_by_user_id: 'ada' }));
      expect(await keys.findOwner('k')).toEqual({
        organization_id: 'org',
        project_id: 'p',
        name: 'Name of k',
        created_by_user_id: null,
        revoked_at_ms: null,
        expires_at_ms: null,
        first_key_id: 'k',
        monthly_limit_micros: null,
      });
      await keys.revokeKey('own', 9);
      expect(await keys.findOwner('own')).toEqual({
        organization_id: 'other',
        project_id: 'q',
        name: 'Name of own',
        created_by_user_id: 'ada',
        revoked_at_ms: 9,
        expires_at_ms: null,
        first_key_id: 'own',
        monthly_limit_micros: null,
      });
    });

    test('is revoked alone', async () => {
      await add('a', 'b');
      await keys.revokeKey('a', 9);
      await keys.revokeKey('nothing', 9);
      expect([ids(await list({ revoked: true })), ids(await list())]).toEqual([['a'], ['b']]);
    });

    test('is revoked with its project’s, unless it was before', async () => {
      await add('a', 'b', 'c');
      await keys.insertKey(newKey('d', 'q'));
      await keys.revokeKey('b', 5);
      await keys.revokeKeysOf('p', 9);
      const revoked = await list({ revoked: true });
      expect(revoked.map(({ id, revoked_at_ms }) => [id, revoked_at_ms])).toEqual([
        ['a', 9],
        ['b', 5],
        ['c', 9],
      ]);
      expect(ids(await list())).toEqual(['d']);
    });
  });

  test('keys are listed oldest first, of a member’s organizations, of an organization, of a project, or all', async () => {
    const { accounts } = database.store;
    await accounts.insertMember({ organization_id: 'org', user_id: 'ada', role: 'reader', created_at_ms: 1 });
    await accounts.insertProject(newProject('p2', 'org'));
    await keys.insertKey(newKey('late', 'p2', { created_at_ms: 1_001 }));
    await add(...SHUFFLED);
    await keys.insertKey(newKey('early', 'q', { created_at_ms: 999 }));
    await add('revoked');
    await keys.revokeKey('revoked', 1);
    expect(ids(await list())).toEqual(['early', ...BYTEWISE, 'late']);
    expect(ids(await list({ organization_id: 'org' }))).toEqual([...BYTEWISE, 'late']);
    expect(ids(await list({ project_id: 'p2' }))).toEqual(['late']);
    expect(ids(await list({ member_user_id: 'ada' }))).toEqual([...BYTEWISE, 'late']);
    expect(await list({ member_user_id: 'bob' })).toEqual([]);
    expect(await list({ member_user_id: 'ada', project_id: 'q' })).toEqual([]);
    expect(await list({ organization_id: 'org\u0000' })).toEqual([]);
    expect(ids(await list({ revoked: true }))).toEqual(['revoked']);
    expect(await list({ revoked: true, project_id: 'p2' })).toEqual([]);
  });

  describe('revoked keys of an organization', () => {
    test('are listed last revoked first, and by the bytes of the id downwards within a millisecond, page by page', async () => {
      await add('active', 'first', 'last', ...SHUFFLED);
      await keys.revokeKey('first', 9);
      for (const id of SHUFFLED) await keys.revokeKey(id, 10);
      await keys.revokeKey('last', 11);
      await keys.insertKey(newKey('foreign', 'q'));
      await keys.revokeKey('foreign', 10);
      const order = ['last', ...BYTEWISE.toReversed(), 'first'];
      expect(ids(await keys.revokedKeysOf('org', null, 100, MONTH))).toEqual(order);
      expect(ids(await keys.revokedKeysOf('org', null, 2, MONTH))).toEqual(order.slice(0, 2));
      for (const [index, id] of order.entries()) {
        expect(ids(await keys.revokedKeysOf('org', id, 3, MONTH))).toEqual(order.slice(index + 1, index + 4));
      }
      expect(ids(await keys.revokedKeysOf('other', null, 100, MONTH))).toEqual(['foreign']);
    });

    test('go on behind no key of another organization, which would tell if and when that one was revoked', async () => {
      await add('early', 'late');
      await keys.revokeKey('early', 9);
      await keys.revokeKey('late', 11);
      await keys.insertKey(newKey('foreign', 'q'));
      await keys.revokeKey('foreign', 10);
      expect(await keys.revokedKeysOf('org', 'foreign', 100, MONTH)).toEqual([]);
    });

    test('go on behind a revoked key only', async () => {
      await add('active', 'revoked');
      await keys.revokeKey('revoked', 9);
      for (const after of ['nothing', 'active', 'revoked\u0000']) {
        expect(await keys.revokedKeysOf('org', after, 100, MONTH)).toEqual([]);
      }
      expect(await keys.revokedKeysOf('nobody', null, 100, MONTH)).toEqual([]);
    });
  });

  test('active keys of an organization are counted over its projects, and found by name', async () => {
    await database.store.accounts.insertProject(newProject('p2', 'org'));
    for (const [id, project_id] of [
      ['a', 'p'],
      ['b', 'p2'],
      ['c', 'q'],
      ['d', 'p'],
    ] as const) {
      await keys.insertKey(newKey(id, project_id, { name: 'Key' }));
    }
    await keys.insertKey(newKey('e', 'q', { name: 'key' }));
    await keys.revokeKey('d', 1);
    expect(await keys.countActive('org')).toBe(2);
    expect(await keys.countActive('nobody')).toBe(0);
    const named = async (name: string, organization_id: string | undefined, limit = 9) =>
      ids(await keys.activeKeysNamed(name, organization_id, limit)).toSorted();
    expect(await named('Key', undefined)).toEqual(['a', 'b', 'c']);
    expect(await named('Key', 'other')).toEqual(['c']);
    expect(await named('KEY', undefined)).toEqual([]);
    expect(await named('Ke_', undefined)).toEqual([]);
    expect(await named('Key', undefined, 2)).toHaveLength(2);
  });

  test('the first key of an organization counts, revoked or not', async () => {
    expect(await keys.firstCreated_ms('org')).toBeUndefined();
    await keys.insertKey(newKey('late', 'p', { created_at_ms: 1_700_000_000_001 }));
    await keys.insertKey(newKey('early', 'p', { created_at_ms: 1_700_000_000_000 }));
    await keys.insertKey(newKey('foreign', 'q', { created_at_ms: 1 }));
    await keys.revokeKey('early', 9);
    expect(await keys.firstCreated_ms('org')).toBe(1_700_000_000_000);
    expect(await keys.firstCreated_ms('nobody')).toBeUndefined();
  });

  describe('an active key', () => {
    test('is found by the hash of its secret, with the tier and limits of its organization', async () => {
      await add('k');
      const active = {
        key_id: 'k',
        first_key_id: null,
        secret_sha256: hashOf('k'),
        project_id: 'p',
        organization_id: 'org',
        tier: 0,
        minimum_tier: null,
        paid_micros: 0,
        first_paid_at_ms: null,
        requests_per_minute: null,
        tokens_per_minute: null,
        questions_per_request: null,
        suspended_at_ms: null,
        expires_at_ms: null,
      };
      expect(await keys.findActive(hashOf('k'))).toEqual(active);
      const { accounts } = database.store;
      await accounts.writeTier('org', 2);
      await accounts.writeSuspension('org', 7);
      await accounts.writeTierSettings('org', {
        minimum_tier: 3,
        requests_per_minute: 1,
        tokens_per_minute: 3_000_000_000,
        questions_per_request: 2,
      });
      await database.run(
        "UPDATE organizations SET paid_micros = 5000000000, first_paid_at_ms = 1700000000000 WHERE id = 'org'",
      );
      expect(await keys.findActive(hashOf('k'))).toEqual({
        ...active,
        tier: 2,
        minimum_tier: 3,
        paid_micros: 5_000_000_000,
        first_paid_at_ms: 1_700_000_000_000,
        requests_per_minute: 1,
        tokens_per_minute: 3_000_000_000,
        questions_per_request: 2,
        suspended_at_ms: 7,
      });
    });

    test('is found by that hash only, while neither it is revoked nor its project archived', async () => {
      await add('k');
      await keys.insertKey(newKey('l', 'q'));
      expect(await keys.findActive(hashOf('k').toUpperCase())).toBeUndefined();
      expect(await keys.findActive(hashOf('nothing'))).toBeUndefined();
      await keys.revokeKey('k', 1);
      expect(await keys.findActive(hashOf('k'))).toBeUndefined();
      await database.store.accounts.archiveProject('q', 1);
      expect(await keys.findActive(hashOf('l'))).toBeUndefined();
    });
  });

  describe('the beginnings of hashes', () => {
    test('are those of all keys that were made after a row, revoked ones too', async () => {
      await add('a', 'b');
      await keys.revokeKey('a', 1);
      const starts = async (row: number) => await keys.hashesSince(row, 12, 100);
      const first = await starts(0);
      expect(first.map(({ hash_start }) => hash_start)).toEqual(
        ['a', 'b'].map((id) => hashOf(id).slice(0, 12)),
      );
      const last = first.at(-1)?.row ?? 0;
      expect(await starts(last)).toEqual([]);
      await keys.insertKey(newKey('c', 'q', { created_at_ms: 1 }));
      await keys.writeLastUsed(() => [{ key_id: 'a', at_ms: 5 }]);
      expect((await starts(last)).map(({ hash_start }) => hash_start)).toEqual([hashOf('c').slice(0, 12)]);
      expect(await starts(first[0]?.row ?? 0)).toHaveLength(2);
      expect(await keys.hashesSince(0, 12, 2)).toEqual(first);
    });

    test('miss no key, however many processes make keys at once', async () => {
      const other = await database.another();
      const seen = new Set<string>();
      let last = 0;
      const read = async () => {
        for (const { row, hash_start } of await keys.hashesSince(last, 64, 100)) {
          seen.add(hash_start);
          last = Math.max(last, row);
        }
      };
      const made = [...Array(30).keys()].map((number) => `key_${number}`);
      let is_made = false;
      const reading = (async () => {
        for (; !is_made; await turns(1)) await read();
      })();
      await Promise.all(
        made.map((id, number) =>
          (number % 2 === 0 ? database.store : other).transaction((records) =>
            records.keys.insertKey(newKey(id, 'p')),
          ),
        ),
      );
      is_made = true;
      await reading;
      await read();
      expect(seen).toEqual(new Set(made.map(hashOf)));
    });
  });

  describe('the times of last use', () => {
    const lastUsed = async () =>
      Object.fromEntries((await list()).map(({ id, last_used_at_ms }) => [id, last_used_at_ms]));

    test('are written for many keys together, and never move back', async () => {
      await add('a', 'b', 'c');
      const uses = [
        { key_id: 'a', at_ms: 1_700_000_000_000 },
        { key_id: 'b', at_ms: 5 },
      ];
      expect(await keys.writeLastUsed(() => uses)).toEqual(uses);
      expect(await lastUsed()).toEqual({ a: 1_700_000_000_000, b: 5, c: null });
      const later = [
        { key_id: 'a', at_ms: 1_699_999_999_999 },
        { key_id: 'b', at_ms: 6 },
        { key_id: 'c', at_ms: 0 },
      ];
      expect(await keys.writeLastUsed(() => later)).toEqual(later);
      expect(await lastUsed()).toEqual({ a: 1_700_000_000_000, b: 6, c: 0 });
    });

    test('are the last of a key’s, in whatever order they come', async () => {
      await add('a');
      const uses = [7, 9, 8].map((at_ms) => ({ key_id: 'a', at_ms }));
      expect(await keys.writeLastUsed(() => uses)).toEqual(uses);
      expect(await lastUsed()).toEqual({ a: 9 });
    });

    test('of keys that are gone count as written, so that nobody writes them for ever', async () => {
      await add('a');
      const uses = [
        { key_id: 'nothing', at_ms: 5 },
        { key_id: 'a', at_ms: 6 },
      ];
      expect(await keys.writeLastUsed(() => uses)).toEqual(uses);
      expect(await keys.writeLastUsed(() => [])).toEqual([]);
      expect(await lastUsed()).toEqual({ a: 6 });
    });

    test('are written for a thousand keys at once', async () => {
      const made = [...Array(1_000).keys()].map((number) => `k${number}`);
      await database.store.transaction(async (records) => {
        for (const id of made) await records.keys.insertKey(newKey(id, 'p'));
      });
      const uses = made.map((key_id, at_ms) => ({ key_id, at_ms }));
      expect(await keys.writeLastUsed(() => uses)).toEqual(uses);
      expect(await lastUsed()).toEqual(Object.fromEntries(made.map((id, at_ms) => [id, at_ms])));
    });

    test('are the latest of what many processes write at once', async () => {
      await add('a', 'b');
      const other = await database.another();
      let uses = [...Array(40).keys()].map((at_ms) => ({ key_id: at_ms % 3 === 0 ? 'a' : 'b', at_ms }));
      while (uses.length > 0) {
        const written = await Promise.all(
          uses.map((use, number) => (number % 2 === 0 ? keys : other.keys).writeLastUsed(() => [use])),
        );
        const done = new Set(written.flat());
        uses = uses.filter((use) => !done.has(use));
      }
      expect(await lastUsed()).toEqual({ a: 39, b: 38 });
    });

    test('are all kept: what fails to be written rejects', async () => {
      await add('a');
      const failed = keys.writeLastUsed(() => {
        throw new RangeError('nothing is noted');
      });
      await expect(failed).rejects.toThrow('nothing is noted');
      await database.run('ALTER TABLE api_keys RENAME TO gone');
      await expect(keys.writeLastUsed(() => [{ key_id: 'a', at_ms: 5 }])).rejects.toThrow();
      await database.run('ALTER TABLE gone RENAME TO api_keys');
      expect(await lastUsed()).toEqual({ a: null });
    });
  });
});

const [, ...others] = DATABASES;
describe.each(others)('keys in $name, where transactions of others take their time', ({ open }) => {
  test('the times of last use wait for none of them, and leave out what they are changing', async () => {
    const database = await open();
    try {
      const { accounts, keys } = database.store;
      await accounts.insertOrganization(newOrganization('org'));
      await accounts.insertProject(newProject('p', 'org'));
      for (const id of ['a', 'b']) await keys.insertKey(newKey(id, 'p'));
      const other = await database.another();
      const uses = [
        { key_id: 'a', at_ms: 5 },
        { key_id: 'b', at_ms: 5 },
      ];
      await other.transaction(async (records) => {
        await records.keys.revokeKey('a', 1);
        expect(await keys.writeLastUsed(() => uses)).toEqual([{ key_id: 'b', at_ms: 5 }]);
        // A time that is not later than the stored one needs no lock.
        expect(await keys.writeLastUsed(() => [{ key_id: 'b', at_ms: 4 }])).toHaveLength(1);
      });
      expect(await keys.writeLastUsed(() => uses)).toEqual(uses);
      const listed = [
        ...(await keys.listKeys({ revoked: true, month: MONTH })),
        ...(await keys.listKeys({ revoked: false, month: MONTH })),
      ];
      expect(listed).toMatchObject([
        { id: 'a', revoked_at_ms: 1, last_used_at_ms: 5 },
        { id: 'b', revoked_at_ms: null, last_used_at_ms: 5 },
      ]);
    } finally {
      await database.close();
    }
  });
});
