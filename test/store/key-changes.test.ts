import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { Records } from '../../src/store/store.ts';
import { rejection } from '../support/rejection.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { newKey, newOrganization, newProject } from './rows.ts';

const SETTINGS = {
  minimum_tier: 1,
  requests_per_minute: null,
  tokens_per_minute: null,
  questions_per_request: null,
  top_up_max_micros: null,
};

const CHANGES: readonly (readonly [string, (records: Records) => Promise<void>])[] = [
  ['a revoked key', ({ keys }) => keys.revokeKey('key', 1)],
  ['the expiry of a key', ({ keys }) => keys.setExpiry('key', 1)],
  ['revoked keys of a project', ({ keys }) => keys.revokeKeysOf('proj', 1)],
  ['a suspension', ({ accounts }) => accounts.writeSuspension('org', 1)],
  ['limits', ({ accounts }) => accounts.writeTierSettings('org', SETTINGS)],
  ['a tier', ({ accounts }) => accounts.writeTier('org', 2)],
];

describe.each(DATABASES)('what changes a lookup of a key in $name', ({ open }) => {
  let database: OpenDatabase;
  let told = 0;
  beforeEach(async () => {
    database = await open();
    const { accounts, keys } = database.store;
    await accounts.insertOrganization(newOrganization('org'));
    await accounts.insertProject(newProject('proj', 'org'));
    await keys.insertKey(newKey('key', 'proj'));
    told = 0;
    database.store.onKeyChange(() => {
      told += 1;
    });
  });
  afterEach(() => database.close());

  test.each(CHANGES)('is announced once after the commit: %s', async (_, change) => {
    await database.store.transaction(async (records) => {
      await change(records);
      await change(records);
      expect(told).toBe(0);
    });
    expect(told).toBe(1);
    await change(database.store);
    expect(told).toBe(2);
  });

  test.each(CHANGES)('is not announced when it is rolled back: %s', async (_, change) => {
    const rolled_back = database.store.transaction(async (records) => {
      await change(records);
      throw new Error('rolled back');
    });
    expect(await rejection(rolled_back)).toMatchObject({ message: 'rolled back' });
    expect(told).toBe(0);
  });

  test('other changes are not announced', async () => {
    await database.store.transaction(({ accounts }) => accounts.renameOrganization('org', 'Other'));
    await database.store.snapshot(({ keys }) => keys.findActive(newKey('key', 'proj').secret_sha256));
    expect(told).toBe(0);
  });
});
