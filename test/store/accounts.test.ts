import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { ROLES } from '../../src/contract/roles.ts';
import type { AccountRecords, OrganizationSearch } from '../../src/store/account-records.ts';
import { propertySeed } from '../ledger/support.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { BYTEWISE, newKey, newOrganization, newProject, newUser, SHUFFLED } from './rows.ts';
import { addSignIn } from './sign-ins.ts';

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

describe.each(DATABASES)('accounts in $name', ({ open }) => {
  let database: OpenDatabase;
  let accounts: AccountRecords;
  beforeEach(async () => {
    database = await open();
    accounts = database.store.accounts;
  });
  afterEach(() => database.close());

  /** A user for each id, all made in the same millisecond. */
  const addUsers = async (...user_ids: string[]) => {
    for (const id of user_ids) await accounts.insertUser(newUser(id));
  };
  const addOrganizations = async (...organization_ids: string[]) => {
    for (const id of organization_ids) await accounts.insertOrganization(newOrganization(id));
  };

  describe('a user', () => {
    test('is found by id and by address, as it was inserted', async () => {
      const ada = newUser('ada', { created_at_ms: 1_700_000_000_000 });
      await accounts.insertUser(ada);
      await addUsers('bob');
      expect(await accounts.findUser('ada')).toEqual(ada);
      expect(await accounts.findUserByEmail(ada.email)).toEqual(ada);
    });

    test('is found by its exact id and address only', async () => {
      await addUsers('ada');
      for (const id of ['', 'ADA', 'ad', 'ada ', 'ad_', 'ada\u0000']) {
        expect(await accounts.findUser(id)).toBeUndefined();
        expect(await accounts.findUserByEmail(`${id}@example.com`)).toBeUndefined();
        expect(await accounts.standingOf(id)).toBeUndefined();
      }
    });

    test('is inserted once: neither the id nor the address twice', async () => {
      await addUsers('ada', 'bob');
      await expect(accounts.insertUser(newUser('ada', { email: 'new@example.com' }))).rejects.toThrow();
      await expect(accounts.insertUser(newUser('new', { email: 'bob@example.com' }))).rejects.toThrow();
      await accounts.insertUser(newUser('new', { email: 'BOB@example.com' }));
      expect(await accounts.allUsers()).toEqual([
        newUser('ada'),
        newUser('bob'),
        newUser('new', { email: 'BOB@example.com' }),
      ]);
    });

    test('is listed oldest first, and by the bytes of the id within a millisecond', async () => {
      await accounts.insertUser(newUser('late', { created_at_ms: 1_001 }));
      await addUsers(...SHUFFLED);
      await accounts.insertUser(newUser('early', { created_at_ms: 999 }));
      expect(ids(await accounts.allUsers())).toEqual(['early', ...BYTEWISE, 'late']);
    });

    test('is renamed alone', async () => {
      await addUsers('ada', 'bob');
      await accounts.renameUser('ada', 'Countess "of" Lövelace');
      await accounts.renameUser('nobody', 'Name');
      expect(await accounts.allUsers()).toEqual([
        newUser('ada', { name: 'Countess "of" Lövelace' }),
        newUser('bob'),
      ]);
    });

    test('has no power and no verified address at first; the operator’s power is given and taken', async () => {
      await addUsers('ada', 'bob');
      const standing = { email_verified: false, is_operator: false, deleted_at_ms: null };
      expect(await accounts.standingOf('ada')).toEqual(standing);
      await accounts.writeOperator('ada', true);
      await database.run("UPDATE users SET email_verified = true WHERE id = 'ada'");
      expect(await accounts.standingOf('ada')).toEqual({
        ...standing,
        email_verified: true,
        is_operator: true,
      });
      expect(await accounts.standingOf('bob')).toEqual(standing);
      await accounts.writeOperator('ada', false);
      expect(await accounts.standingOf('ada')).toEqual({ ...standing, email_verified: true });
    });
  });

  describe('a user who is made anonymous', () => {
    const gone = { email: 'deleted:ada', name: 'Deleted user', deleted_at_ms: 1_700_000_000_000 };

    const addSignIns = async () => {
      for (const id of ['ada', 'bob']) await addSignIn(database, id);
    };
    const signInsOf = async (user_id: string) => [
      await database.count(`sessions WHERE user_id = '${user_id}'`),
      await database.count(`sign_in_accounts WHERE user_id = '${user_id}'`),
      await database.count(`second_factors WHERE user_id = '${user_id}'`),
      await database.count(`passkeys WHERE user_id = '${user_id}'`),
      await database.count(`verifications WHERE value = '${user_id}'`),
    ];

    test('keeps its row, and loses name, address, power, sessions, passwords, second factor and links', async () => {
      await addUsers('ada', 'bob');
      await addSignIns();
      await accounts.writeOperator('ada', true);
      await database.run("UPDATE users SET email_verified = true WHERE id = 'ada'");
      await accounts.anonymizeUser('ada', gone);
      expect(await accounts.findUser('ada')).toEqual(
        newUser('ada', { email: gone.email, name: gone.name, created_at_ms: 1_000 }),
      );
      expect(await accounts.standingOf('ada')).toEqual({
        email_verified: false,
        is_operator: false,
        deleted_at_ms: gone.deleted_at_ms,
      });
      expect(await accounts.findUser('bob')).toEqual(newUser('bob'));
      expect([await signInsOf('ada'), await signInsOf('bob')]).toEqual([
        [0, 0, 0, 0, 0],
        [1, 1, 1, 1, 1],
      ]);
    });

    test('stays as it is, sessions too, where that cannot be written', async () => {
      await addUsers('ada', 'bob');
      await addSignIns();
      await expect(accounts.anonymizeUser('ada', { ...gone, email: 'bob@example.com' })).rejects.toThrow();
      expect(await accounts.findUser('ada')).toEqual(newUser('ada'));
      expect(await signInsOf('ada')).toEqual([1, 1, 1, 1, 1]);
    });
  });

  describe('an organization', () => {
    test('begins on Tier 0, without credit, limits and suspension', async () => {
      await addUsers('ada');
      const given = newOrganization('org', { personal_user_id: 'ada', created_at_ms: 1_700_000_000_000 });
      expect(await accounts.hasOrganizations()).toBe(false);
      await accounts.insertOrganization(given);
      expect(await accounts.hasOrganizations()).toBe(true);
      const stored = {
        ...given,
        tier: 0,
        credit_micros: 0,
        held_micros: 0,
        open_holds: 0,
        paid_micros: 0,
        first_paid_at_ms: null,
        minimum_tier: null,
        requests_per_minute: null,
        tokens_per_minute: null,
        questions_per_request: null,
        top_up_max_micros: null,
        suspended_at_ms: null,
        credit_alert_micros: null,
      };
      expect(await accounts.findOrganization('org')).toEqual(stored);
      expect(await accounts.findPersonalOrganization('ada')).toEqual(stored);
      expect(await accounts.allOrganizations()).toEqual([stored]);
      for (const id of ['ORG', 'or', '', 'org\u0000']) {
        expect(await accounts.findOrganization(id)).toBeUndefined();
        expect(await accounts.findPersonalOrganization(id)).toBeUndefined();
      }
    });

    test('is inserted once, for a user who exists, and is the personal one of one user', async () => {
      await addUsers('ada');
      await accounts.insertOrganization(newOrganization('org', { personal_user_id: 'ada' }));
      for (const refused of [
        newOrganization('org'),
        newOrganization('other', { personal_user_id: 'ada' }),
        newOrganization('other', { personal_user_id: 'nobody' }),
      ]) {
        await expect(accounts.insertOrganization(refused)).rejects.toThrow();
      }
      await addOrganizations('one', 'two');
      expect(ids(await accounts.allOrganizations())).toEqual(['one', 'org', 'two']);
    });

    test('keeps amounts of any size exactly, negative credit too', async () => {
      await addOrganizations('org');
      await database.run(`UPDATE organizations SET credit_micros = -9007199254740991,
        paid_micros = 9007199254740991, held_micros = 2147483648, open_holds = 4294967296`);
      expect(await accounts.findOrganization('org')).toMatchObject({
        credit_micros: Number.MIN_SAFE_INTEGER,
        paid_micros: Number.MAX_SAFE_INTEGER,
        held_micros: 2_147_483_648,
        open_holds: 4_294_967_296,
      });
    });

    test('is listed oldest first, and by the bytes of the id within a millisecond', async () => {
      await addUsers('ada');
      await accounts.insertOrganization(newOrganization('late', { created_at_ms: 1_001 }));
      await addOrganizations(...SHUFFLED);
      await accounts.insertOrganization(newOrganization('early', { created_at_ms: 999 }));
      const order = ['early', ...BYTEWISE, 'late'];
      expect(ids(await accounts.allOrganizations())).toEqual(order);
      for (const organization_id of order.toReversed()) {
        await accounts.insertMember({ organization_id, user_id: 'ada', role: 'owner', created_at_ms: 1 });
      }
      expect(ids(await accounts.organizationsOf('ada'))).toEqual(order);
    });

    test('is changed alone, in what is given alone', async () => {
      await addOrganizations('org', 'other');
      await database.run("UPDATE organizations SET credit_micros = 5 WHERE id = 'org'");
      const before = await accounts.findOrganization('org');
      const other = await accounts.findOrganization('other');
      await accounts.renameOrganization('org', 'New');
      await accounts.writeSuspension('org', 1_700_000_000_000);
      await accounts.writeTier('org', 3);
      await accounts.writeTierSettings('org', { minimum_tier: 2, tokens_per_minute: 3_000_000_000 });
      await accounts.writeTierSettings('org', {
        questions_per_request: 7,
        requests_per_minute: 9,
        top_up_max_micros: 5_000_000_000,
      });
      const changed = {
        name: 'New',
        suspended_at_ms: 1_700_000_000_000,
        tier: 3,
        minimum_tier: 2,
        tokens_per_minute: 3_000_000_000,
        questions_per_request: 7,
        requests_per_minute: 9,
        top_up_max_micros: 5_000_000_000,
      };
      expect<unknown>(await accounts.findOrganization('org')).toEqual({ ...before, ...changed });
      await accounts.writeSuspension('org', null);
      await accounts.writeTierSettings('org', { minimum_tier: null, requests_per_minute: null });
      expect(await accounts.findOrganization('org')).toMatchObject({
        ...changed,
        suspended_at_ms: null,
        minimum_tier: null,
        requests_per_minute: null,
      });
      await accounts.renameOrganization('nobody', 'New');
      expect(await accounts.findOrganization('other')).toEqual(other);
    });

    test.each([-1, 6])('has no Tier %p', async (tier) => {
      await addOrganizations('org');
      await expect(accounts.writeTier('org', tier)).rejects.toThrow();
      await expect(accounts.writeTierSettings('org', { minimum_tier: tier })).rejects.toThrow();
      expect(await accounts.findOrganization('org')).toMatchObject({ tier: 0, minimum_tier: null });
    });

    test('is found by its exact name, no more than so many', async () => {
      for (const id of ['a', 'b', 'c']) {
        await accounts.insertOrganization(newOrganization(id, { name: 'Acme' }));
      }
      await accounts.insertOrganization(newOrganization('d', { name: 'acme' }));
      expect(ids(await accounts.organizationsNamed('Acme', 9)).toSorted()).toEqual(['a', 'b', 'c']);
      expect(await accounts.organizationsNamed('Acme', 2)).toHaveLength(2);
      expect(await accounts.organizationsNamed('Acm_', 9)).toEqual([]);
      expect(await accounts.organizationsNamed('Acme\u0000', 9)).toEqual([]);
    });

    test('tells the changes of its tier newest first, no more than so many', async () => {
      await addOrganizations('org', 'other');
      for (const to_tier of [1, 2, 3]) {
        await accounts.insertTierChange({
          organization_id: 'org',
          from_tier: to_tier - 1,
          to_tier,
          reason: 'top_up',
          // The order is that of the changes, not of a clock that may step back.
          created_at_ms: 1_000 - to_tier,
        });
      }
      const other = { organization_id: 'other', from_tier: 0, to_tier: 1, created_at_ms: 1 } as const;
      await accounts.insertTierChange({ ...other, reason: 'operator' });
      const changes = await accounts.tierChanges('org', 9);
      expect(changes.map(({ to_tier }) => to_tier)).toEqual([3, 2, 1]);
      expect(changes[0]).toEqual({
        id: expect.any(Number),
        organization_id: 'org',
        from_tier: 2,
        to_tier: 3,
        reason: 'top_up',
        created_at_ms: 997,
      });
      expect((await accounts.tierChanges('org', 2)).map(({ to_tier }) => to_tier)).toEqual([3, 2]);
      expect(await accounts.tierChanges('nobody', 2)).toEqual([]);
      await expect(
        accounts.insertTierChange({ ...other, organization_id: 'nobody', reason: 'time' }),
      ).rejects.toThrow();
    });
  });

  describe('the search', () => {
    const search = async (given: Partial<OrganizationSearch> = {}) =>
      await accounts.searchOrganizations({ text: '', after: null, limit: 100, ...given });
    const found = async (text: string) => ids(await search({ text })).toSorted();

    test('finds by a part of the name or of a member’s address, in either case of ASCII’s letters', async () => {
      await addUsers('ada', 'Bob');
      await accounts.insertOrganization(newOrganization('org_1', { name: 'Acme ÄRZTE' }));
      await accounts.insertOrganization(newOrganization('org_2', { name: 'Other' }));
      for (const user_id of ['ada', 'Bob']) {
        await accounts.insertMember({
          organization_id: 'org_2',
          user_id,
          role: 'reader',
          created_at_ms: 1,
        });
      }
      expect(await found('acme')).toEqual(['org_1']);
      expect(await found('ME Ä')).toEqual(['org_1']);
      expect(await found('ä')).toEqual([]);
      expect(await found('BOB@Example')).toEqual(['org_2']);
      expect(await found('@example.com')).toEqual(['org_2']);
      expect(await found('')).toEqual(['org_1', 'org_2']);
      expect(await found('nobody')).toEqual([]);
    });

    test('without_owner finds those that nobody owns, also among those with a text', async () => {
      await addUsers('ada');
      await addOrganizations('org_1', 'org_2', 'org_3');
      for (const [organization_id, role] of [
        ['org_1', 'owner'],
        ['org_2', 'admin'],
      ] as const) {
        await accounts.insertMember({ organization_id, user_id: 'ada', role, created_at_ms: 1 });
      }
      expect(ids(await search({ without_owner: true })).toSorted()).toEqual(['org_2', 'org_3']);
      expect(ids(await search({ without_owner: true, text: 'ada@' }))).toEqual(['org_2']);
      expect(ids(await search({ without_owner: false })).toSorted()).toEqual(['org_1', 'org_2', 'org_3']);
    });

    test('finds by a part of the id, in the case of the id', async () => {
      await addOrganizations('org_aB', 'org_Ab');
      await database.run("UPDATE organizations SET name = 'x'");
      expect(await found('aB')).toEqual(['org_aB']);
      expect(await found('rg_')).toEqual(['org_Ab', 'org_aB']);
    });

    test('takes every text as it is', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(text(6), { minLength: 1, maxLength: 4 }),
          text(3),
          async (names, wanted) => {
            await database.run('DELETE FROM organizations');
            for (const [index, name] of names.entries()) {
              await accounts.insertOrganization(newOrganization(`${index}`, { name }));
            }
            const expected = names.flatMap((name, index) =>
              lowered(name).includes(lowered(wanted)) ? [`${index}`] : [],
            );
            expect(await found(wanted)).toEqual(expected);
          },
        ),
        { numRuns: 100, seed: propertySeed('search of organizations') },
      );
    });

    test('is newest first, and by the bytes of the id downwards within a millisecond, page by page', async () => {
      await accounts.insertOrganization(newOrganization('early', { created_at_ms: 999 }));
      await addOrganizations(...SHUFFLED);
      await accounts.insertOrganization(newOrganization('late', { created_at_ms: 1_001 }));
      const order = ['late', ...BYTEWISE.toReversed(), 'early'];
      expect(ids(await search())).toEqual(order);
      expect(ids(await search({ limit: 2 }))).toEqual(order.slice(0, 2));
      for (const [index, id] of order.entries()) {
        const created_at_ms = id === 'late' ? 1_001 : id === 'early' ? 999 : 1_000;
        const page = await search({ after: { id, created_at_ms }, limit: 3 });
        expect(ids(page)).toEqual(order.slice(index + 1, index + 4));
      }
      // The row of the cursor need not exist any more.
      expect(ids(await search({ after: { id: 'Y', created_at_ms: 1_000 } }))).toEqual(['B', 'early']);
    });

    test('finds one by its id', async () => {
      await addOrganizations('one', 'two');
      expect(ids(await search({ id: 'two' }))).toEqual(['two']);
      expect(await search({ id: 'TWO' })).toEqual([]);
      expect(await search({ id: 'two', text: 'one' })).toEqual([]);
    });

    test('tells how many members there are, and when one of its keys was last used', async () => {
      await addUsers('ada', 'bob');
      await addOrganizations('org', 'quiet');
      for (const user_id of ['ada', 'bob']) {
        await accounts.insertMember({ organization_id: 'org', user_id, role: 'owner', created_at_ms: 1 });
      }
      for (const [project_id, organization_id] of [
        ['one', 'org'],
        ['two', 'org'],
        ['three', 'quiet'],
      ] as const) {
        await accounts.insertProject(newProject(project_id, organization_id));
        await database.store.keys.insertKey(newKey(project_id, project_id));
      }
      await database.store.keys.writeLastUsed(() => [
        { key_id: 'one', at_ms: 1_700_000_000_007 },
        { key_id: 'two', at_ms: 1_700_000_000_006 },
      ]);
      const organization = await accounts.findOrganization('org');
      expect<unknown>(await search({ text: 'Name of org' })).toEqual([
        { ...organization, members: 2, last_used_at_ms: 1_700_000_000_007 },
      ]);
      expect(await search({ text: 'quiet' })).toMatchObject([{ members: 0, last_used_at_ms: null }]);
    });
  });

  describe('members', () => {
    beforeEach(async () => {
      await addUsers('ada', 'bob');
      await addOrganizations('org', 'other');
    });
    const ada = { organization_id: 'org', user_id: 'ada' };

    test('have the role that was written last, and none after they were deleted', async () => {
      expect(await accounts.roleOf(ada)).toBeNull();
      await accounts.insertMember({ ...ada, role: 'reader', created_at_ms: 1 });
      for (const role of ROLES) {
        await accounts.writeRole(ada, role);
        expect(await accounts.roleOf(ada)).toBe(role);
      }
      expect(await accounts.roleOf({ ...ada, user_id: 'bob' })).toBeNull();
      expect(await accounts.roleOf({ ...ada, organization_id: 'other' })).toBeNull();
      await accounts.deleteMember(ada);
      await accounts.deleteMember(ada);
      await accounts.writeRole(ada, 'owner');
      expect(await accounts.roleOf(ada)).toBeNull();
    });

    test('of other organizations and other users keep theirs', async () => {
      const others = [
        { organization_id: 'org', user_id: 'bob' },
        { organization_id: 'other', user_id: 'ada' },
      ];
      for (const member of [ada, ...others]) {
        await accounts.insertMember({ ...member, role: 'admin', created_at_ms: 1 });
      }
      await accounts.writeRole(ada, 'owner');
      expect(await Promise.all(others.map((member) => accounts.roleOf(member)))).toEqual(['admin', 'admin']);
      await accounts.deleteMember(ada);
      expect(await Promise.all(others.map((member) => accounts.roleOf(member)))).toEqual(['admin', 'admin']);
    });

    test('are users in organizations that exist, each once', async () => {
      await accounts.insertMember({ ...ada, role: 'admin', created_at_ms: 1 });
      for (const member of [
        ada,
        { organization_id: 'org', user_id: 'nobody' },
        { organization_id: 'nobody', user_id: 'ada' },
      ]) {
        await expect(accounts.insertMember({ ...member, role: 'owner', created_at_ms: 2 })).rejects.toThrow();
      }
      expect(await accounts.roleOf(ada)).toBe('admin');
    });

    test('are listed with name and address, who joined first first, and then by the bytes of the id', async () => {
      await addUsers(...SHUFFLED);
      const join = (user_id: string, created_at_ms: number) =>
        accounts.insertMember({ organization_id: 'org', user_id, role: 'billing', created_at_ms });
      await join('ada', 11);
      for (const user_id of SHUFFLED) await join(user_id, 10);
      await join('bob', 9);
      const listed = await accounts.membersOf('org');
      expect(listed.map(({ user_id }) => user_id)).toEqual(['bob', ...BYTEWISE, 'ada']);
      expect(listed[0]).toEqual({
        user_id: 'bob',
        email: 'bob@example.com',
        name: 'Name of bob',
        role: 'billing',
        created_at_ms: 9,
        has_second_factor: false,
      });
      expect(await accounts.membersOf('other')).toEqual([]);
    });

    test('are listed with their second factor, which is deleted of one user alone, with passkeys, once', async () => {
      for (const user_id of ['ada', 'bob']) {
        await accounts.insertMember({ ...ada, user_id, role: 'reader', created_at_ms: 1 });
        await addSignIn(database, user_id);
        await database.run(`UPDATE users SET has_second_factor = true WHERE id = '${user_id}'`);
      }
      const listed = async () =>
        (await accounts.membersOf('org')).map(({ user_id, has_second_factor }) => [
          user_id,
          has_second_factor,
        ]);
      expect(await listed()).toEqual([
        ['ada', true],
        ['bob', true],
      ]);
      expect([await accounts.deleteSignIns('ada'), await accounts.deleteSignIns('ada')]).toEqual([
        { passkeys: 1, had_second_factor: true },
        { passkeys: 0, had_second_factor: false },
      ]);
      expect(await listed()).toEqual([
        ['ada', false],
        ['bob', true],
      ]);
      for (const table of ['sessions', 'sign_in_accounts', 'second_factors', 'passkeys', 'verifications'])
        expect(await database.count(table)).toBe(1);
    });

    test('are counted: of an organization, with a role, and the organizations that a user owns', async () => {
      await accounts.insertMember({ ...ada, role: 'owner', created_at_ms: 1 });
      await accounts.insertMember({ ...ada, user_id: 'bob', role: 'reader', created_at_ms: 1 });
      await accounts.insertMember({ ...ada, organization_id: 'other', role: 'owner', created_at_ms: 1 });
      expect(await accounts.countMembers('org')).toBe(2);
      expect(await accounts.countMembers('org', 'owner')).toBe(1);
      expect(await accounts.countMembers('org', 'admin')).toBe(0);
      expect(await accounts.countMembers('nobody')).toBe(0);
      expect(await accounts.countOwned('ada')).toBe(2);
      expect(await accounts.countOwned('bob')).toBe(0);
    });
  });

  describe('projects', () => {
    beforeEach(() => addOrganizations('org', 'other'));
    const project = (id: string) => newProject(id, 'org');

    test('are found as they were inserted and changed, by their exact ids', async () => {
      await accounts.insertProject(newProject('p', 'org', { created_at_ms: 1_700_000_000_000 }));
      await accounts.insertProject(project('untouched'));
      const stored = {
        id: 'p',
        organization_id: 'org',
        name: 'Name of p',
        spend_limit_micros: null,
        archived_at_ms: null,
        created_at_ms: 1_700_000_000_000,
      };
      expect(await accounts.findProject('p')).toEqual(stored);
      await accounts.renameProject('p', 'New');
      await accounts.writeSpendLimit('p', 0);
      expect(await accounts.findProject('p')).toEqual({ ...stored, name: 'New', spend_limit_micros: 0 });
      await accounts.writeSpendLimit('p', 5_000_000_000);
      await accounts.archiveProject('p', 1_700_000_000_001);
      expect(await accounts.findProject('p')).toEqual({
        ...stored,
        name: 'New',
        spend_limit_micros: 5_000_000_000,
        archived_at_ms: 1_700_000_000_001,
      });
      await accounts.writeSpendLimit('p', null);
      expect(await accounts.findProject('p')).toMatchObject({ spend_limit_micros: null });
      expect(await accounts.findProject('untouched')).toEqual({
        ...project('untouched'),
        spend_limit_micros: null,
        archived_at_ms: null,
      });
      expect(await accounts.findProject('P')).toBeUndefined();
      expect(await accounts.findProject('p\u0000')).toBeUndefined();
    });

    test('have no limit below zero', async () => {
      await accounts.insertProject(project('p'));
      await expect(accounts.writeSpendLimit('p', -1)).rejects.toThrow();
      expect(await accounts.findProject('p')).toMatchObject({ spend_limit_micros: null });
    });

    test('that are active have names of their own in an organization; archived ones leave them free', async () => {
      const named = (id: string, organization_id = 'org') =>
        newProject(id, organization_id, { name: 'Default' });
      await accounts.insertProject(named('a'));
      await expect(accounts.insertProject(named('b'))).rejects.toThrow();
      await expect(accounts.insertProject(named('a', 'other'))).rejects.toThrow();
      await expect(accounts.insertProject(newProject('b', 'nobody'))).rejects.toThrow();
      await accounts.insertProject(named('c', 'other'));
      await accounts.insertProject(newProject('d', 'org', { name: 'default' }));
      await expect(accounts.renameProject('d', 'Default')).rejects.toThrow();
      await accounts.archiveProject('a', 1);
      expect(await accounts.findActiveProject('org', 'Default')).toBeUndefined();
      await accounts.renameProject('d', 'Default');
      await accounts.archiveProject('d', 2);
      await accounts.insertProject(named('e'));
      expect((await accounts.findActiveProject('org', 'Default'))?.id).toBe('e');
      expect((await accounts.findActiveProject('other', 'Default'))?.id).toBe('c');
      expect(await accounts.findActiveProject('org', 'DEFAULT')).toBeUndefined();
      expect(await accounts.findActiveProject('nobody', 'Default')).toBeUndefined();
    });

    test('that are active are found by name, of one organization or of any, no more than so many', async () => {
      await addOrganizations('third');
      for (const [index, organization_id] of ['org', 'other', 'third'].entries()) {
        await accounts.insertProject(newProject(`${index}`, organization_id, { name: 'Default' }));
      }
      await accounts.archiveProject('2', 1);
      const named = async (organization_id: string | undefined, limit = 9) =>
        ids(await accounts.activeProjectsNamed('Default', organization_id, limit)).toSorted();
      expect(await named(undefined)).toEqual(['0', '1']);
      expect(await named('other')).toEqual(['1']);
      expect(await named('third')).toEqual([]);
      expect(await named(undefined, 1)).toHaveLength(1);
      expect(await accounts.activeProjectsNamed('default', undefined, 9)).toEqual([]);
    });

    test('that are active are counted', async () => {
      for (const id of ['a', 'b', 'c']) await accounts.insertProject(project(id));
      await accounts.archiveProject('b', 1);
      await accounts.insertProject(newProject('d', 'other'));
      expect(await accounts.countActiveProjects('org')).toBe(2);
      expect(await accounts.countActiveProjects('nobody')).toBe(0);
    });

    test('are listed oldest first, of organizations of a member, of one organization, or all', async () => {
      await addUsers('ada');
      await accounts.insertMember({
        organization_id: 'org',
        user_id: 'ada',
        role: 'reader',
        created_at_ms: 1,
      });
      await accounts.insertProject(newProject('late', 'org', { created_at_ms: 1_001 }));
      for (const id of SHUFFLED) await accounts.insertProject(project(id));
      await accounts.insertProject(newProject('early', 'other', { created_at_ms: 999 }));
      await accounts.insertProject(project('archived'));
      await accounts.archiveProject('archived', 1);
      const list = async (given: { member_user_id?: string; organization_id?: string; archived?: boolean }) =>
        ids(await accounts.listProjects({ archived: false, month: '2026-01', ...given }));
      expect(await list({})).toEqual(['early', ...BYTEWISE, 'late']);
      expect(await list({ organization_id: 'other' })).toEqual(['early']);
      expect(await list({ member_user_id: 'ada' })).toEqual([...BYTEWISE, 'late']);
      expect(await list({ member_user_id: 'ada', organization_id: 'other' })).toEqual([]);
      expect(await list({ member_user_id: 'nobody' })).toEqual([]);
      expect(await list({ member_user_id: 'ada\u0000' })).toEqual([]);
      expect(await list({ archived: true })).toEqual(['archived']);
      expect(await list({ archived: true, organization_id: 'other' })).toEqual([]);
    });

    test('are listed with what they spent in the month, and with how many keys are active', async () => {
      await accounts.insertProject(project('p'));
      await accounts.insertProject(project('q'));
      await database.run(`INSERT INTO project_months (project_id, month, spent_micros, held_micros)
        VALUES ('p', '2026-01', 5000000000, 7), ('p', '2026-02', 9, 0)`);
      await database.run(`INSERT INTO project_months (project_id, month, api_key_id, spent_micros, held_micros)
        VALUES ('p', '2026-01', 'k1', 4000000000, 7)`);
      for (const id of ['k1', 'k2', 'k3']) await database.store.keys.insertKey(newKey(id, 'p'));
      await database.store.keys.revokeKey('k2', 1);
      const listed = await accounts.listProjects({ archived: false, month: '2026-01' });
      expect(listed).toEqual([
        {
          ...project('p'),
          spend_limit_micros: null,
          archived_at_ms: null,
          organization_name: 'Name of org',
          spent_this_month_micros: 5_000_000_000,
          active_keys: 2,
        },
        {
          ...project('q'),
          spend_limit_micros: null,
          archived_at_ms: null,
          organization_name: 'Name of org',
          spent_this_month_micros: 0,
          active_keys: 0,
        },
      ]);
    });
  });

  describe('two processes', () => {
    test('see at once what the other has written', async () => {
      const other = await database.another();
      await other.accounts.insertUser(newUser('ada'));
      expect(await accounts.findUser('ada')).toEqual(newUser('ada'));
      await accounts.renameUser('ada', 'New');
      expect((await other.accounts.findUser('ada'))?.name).toBe('New');
    });

    test('that insert the same user, project or member at once: one of them does', async () => {
      const other = await database.another();
      await addOrganizations('org');
      const rows = [...Array(8).keys()];
      const race = async (
        insert: (records: AccountRecords, row: number, process: string) => Promise<void>,
      ) => {
        const done = await Promise.allSettled(
          rows.flatMap((row) => [insert(accounts, row, 'a'), insert(other.accounts, row, 'b')]),
        );
        expect(done.filter(({ status }) => status === 'fulfilled')).toHaveLength(rows.length);
      };
      await race((records, row, process) =>
        records.insertUser(newUser(`${row}${process}`, { email: `${row}@example.com` })),
      );
      const users = await accounts.allUsers();
      expect(users).toHaveLength(rows.length);
      await race((records, row, process) =>
        records.insertProject(newProject(`${row}${process}`, 'org', { name: `${row}` })),
      );
      expect(await accounts.countActiveProjects('org')).toBe(rows.length);
      await race((records, row) =>
        records.insertMember({
          organization_id: 'org',
          user_id: users[row]?.id ?? '',
          role: 'reader',
          created_at_ms: 1,
        }),
      );
      expect(await accounts.countMembers('org')).toBe(rows.length);
    });

    test('that change one organization at once lose nothing of each other', async () => {
      const other = await database.another();
      await addOrganizations('org');
      await Promise.all([
        accounts.renameOrganization('org', 'New'),
        other.accounts.writeTier('org', 3),
        accounts.writeSuspension('org', 7),
        other.accounts.writeTierSettings('org', { minimum_tier: 2 }),
        accounts.writeTierSettings('org', { requests_per_minute: 9 }),
      ]);
      expect(await accounts.findOrganization('org')).toMatchObject({
        name: 'New',
        tier: 3,
        suspended_at_ms: 7,
        minimum_tier: 2,
        requests_per_minute: 9,
      });
    });
  });
});

/** Short texts in which wildcards, quotes, both cases and letters outside of ASCII meet often. */
function text(maxLength: number): fc.Arbitrary<string> {
  return fc
    .array(fc.constantFrom('a', 'A', 'b', 'ä', 'Ä', 'İ', 'ſ', '%', '_', '\\', "'", ' ', '😀'), { maxLength })
    .map((characters) => characters.join(''));
}

function lowered(given: string): string {
  return given.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
