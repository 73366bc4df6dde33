import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { AuditLogRecords, NewAuditLogEntry } from '../../src/store/audit-log-records.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { newInvitation, newKey, newOrganization, newProject, newUser } from './rows.ts';

describe.each(DATABASES)('the audit log in $name', ({ open }) => {
  let database: OpenDatabase;
  let audit_log: AuditLogRecords;
  beforeEach(async () => {
    database = await open();
    audit_log = database.store.audit_log;
    const { accounts } = database.store;
    await accounts.insertUser(newUser('ada'));
    await accounts.insertUser(newUser('bob'));
    await accounts.insertOrganization(newOrganization('org'));
    await accounts.insertOrganization(newOrganization('other'));
  });
  afterEach(() => database.close());

  const entry = (values: Partial<NewAuditLogEntry> = {}): NewAuditLogEntry => ({
    organization_id: 'org',
    user_id: 'ada',
    action: 'key.create',
    object_kind: 'key',
    object_id: 'key_1',
    detail: {},
    created_at_ms: 1_000,
    ...values,
  });
  const list = async (filter: Partial<Parameters<AuditLogRecords['listEntries']>[0]> = {}) =>
    await audit_log.listEntries({
      organization_id: 'org',
      before_id: null,
      action: null,
      limit: 100,
      ...filter,
    });

  test('an entry is listed as it was inserted, with what its user is named today', async () => {
    const given = entry({
      detail: {
        name: 'Löve "quoted" \\ \u0001\u0000',
        limit: 5_000_000_000,
        rate: 0.5,
        is_open: true,
        none: null,
      },
      created_at_ms: 1_700_000_000_000,
    });
    await audit_log.insertEntry(given);
    const [stored] = await list();
    expect(stored).toEqual({
      ...given,
      id: expect.any(Number),
      user_name: 'Name of ada',
      user_email: 'ada@example.com',
      object_name: null,
    });
    await database.store.accounts.renameUser('ada', 'New');
    expect(await list()).toMatchObject([{ user_name: 'New' }]);
  });

  test('an entry of the operator has no user, and one of the service no organization', async () => {
    await audit_log.insertEntry(entry({ user_id: null }));
    await audit_log.insertEntry(entry({ organization_id: null, object_id: null }));
    expect(await list()).toMatchObject([{ user_id: null, user_name: null, user_email: null }]);
    expect(await list({ organization_id: null })).toMatchObject([
      { organization_id: null, object_id: null, object_name: null },
    ]);
    expect(await list({ organization_id: 'other' })).toEqual([]);
    expect(await list({ organization_id: 'org\u0000' })).toEqual([]);
  });

  test('an entry is of an organization and a user who exist', async () => {
    await expect(audit_log.insertEntry(entry({ organization_id: 'nobody' }))).rejects.toThrow();
    await expect(audit_log.insertEntry(entry({ user_id: 'nobody' }))).rejects.toThrow();
    expect(await list()).toEqual([]);
  });

  test('entries are listed newest first in the order of the acts, page by page, whatever the clock said', async () => {
    for (const created_at_ms of [5, 9, 1, 7, 7]) {
      await audit_log.insertEntry(entry({ created_at_ms }));
      await audit_log.insertEntry(entry({ organization_id: 'other' }));
    }
    const whole = await list();
    expect(whole.map(({ created_at_ms }) => created_at_ms)).toEqual([7, 7, 1, 9, 5]);
    const [, second, third] = whole;
    expect(await list({ limit: 2 })).toEqual(whole.slice(0, 2));
    expect(await list({ before_id: second?.id ?? null, limit: 2 })).toEqual(whole.slice(2, 4));
    expect(await list({ before_id: third?.id ?? null })).toEqual(whole.slice(3));
    expect(await list({ before_id: whole.at(-1)?.id ?? null })).toEqual([]);
    expect(await list({ before_id: Number.MAX_SAFE_INTEGER })).toEqual(whole);
  });

  test('the time of an entry is found by how many of its organization are newer', async () => {
    for (const created_at_ms of [5, 9, 1]) {
      await audit_log.insertEntry(entry({ created_at_ms }));
      await audit_log.insertEntry(entry({ organization_id: 'other' }));
    }
    const { organization_id } = entry({});
    if (organization_id === null) throw new Error('the entry is of no organization');
    const times = [];
    for (const newer of [0, 1, 2, 3]) times.push(await audit_log.timeOfEntry_ms(organization_id, newer));
    expect(times).toEqual([1, 9, 5, undefined]);
  });

  test('entries of one action are listed alone', async () => {
    for (const action of ['key.create', 'key.revoke', 'key.create']) {
      await audit_log.insertEntry(entry({ action }));
    }
    expect(await list({ action: 'key.create' })).toHaveLength(2);
    expect((await list({ action: 'key.create', limit: 1 })).map(({ action }) => action)).toEqual([
      'key.create',
    ]);
    for (const action of ['KEY.create', 'key%', '', 'key.create\u0000']) {
      expect(await list({ action })).toEqual([]);
    }
  });

  test('an object is named as it is today, where its kind has a name and it is still there', async () => {
    const { accounts, keys, invitations } = database.store;
    await accounts.insertProject(newProject('p', 'org'));
    await keys.insertKey(newKey('k', 'p'));
    await invitations.insertInvitation(newInvitation('inv', 'org', { email: 'guest@example.com' }));
    const named = [
      ['organization', 'other', 'Name of other'],
      ['project', 'p', 'Name of p'],
      ['key', 'k', 'Name of k'],
      ['user', 'bob', 'Name of bob'],
      ['invitation', 'inv', 'guest@example.com'],
      ['model', 'decision-1', null],
      ['user', 'nobody', null],
      ['project', 'k', null],
      ['key', null, null],
      ['newer kind', 'x', null],
    ] as const;
    for (const [object_kind, object_id] of named)
      await audit_log.insertEntry(entry({ object_kind, object_id }));
    expect((await list()).map(({ object_name }) => object_name)).toEqual(
      named.map(([, , name]) => name).toReversed(),
    );
  });

  test('a detail shows no more than names, numbers and flags, also of a newer version', async () => {
    for (const detail of ['{"a": {"b": 1}, "c": [1], "d": 2}', '3', 'null']) {
      await database.run(`INSERT INTO trail_entries
        (organization_id, action, object_kind, detail, created_at_ms)
        VALUES ('org', 'key.polish', 'key', '${detail}', 1)`);
    }
    expect((await list()).map(({ detail }) => detail)).toEqual([{}, {}, { d: 2 }]);
    const broken = `INSERT INTO trail_entries (organization_id, action, object_kind, detail, created_at_ms)
      VALUES ('org', 'key.polish', 'key', '{', 1)`;
    await expect(database.run(broken)).rejects.toThrow();
  });
});
