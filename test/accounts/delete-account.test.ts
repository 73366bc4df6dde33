import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { deleteAccount, previewAccountDeletion } from '../../src/accounts/delete-account.ts';
import { acceptInvitation, invite } from '../../src/accounts/invitations.ts';
import { createKey, listKeys } from '../../src/accounts/keys.ts';
import { addMember, changeRole } from '../../src/accounts/members.ts';
import { createOrganization, ensurePersonalOrganization } from '../../src/accounts/organizations.ts';
import { renameUser, signUp } from '../../src/accounts/users.ts';
import { seedCatalog } from '../../src/catalog/catalog.ts';
import { addOwnModel } from '../../src/catalog/own-models.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { ROLES } from '../../src/contract/roles.ts';
import { creditByHand, refundByHand } from '../../src/payments/credit.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { addSignIn } from '../store/sign-ins.ts';
import { newUser, outcome, type UserActor } from './everyone.ts';
import { TestClock } from './support.ts';

const DOLLARS_10 = 10_000_000;

describe.each(DATABASES)('deleting an account, $name', ({ open }) => {
  let database: OpenDatabase;
  let context: AccountContext;
  let ada: UserActor;
  let personal_id: string;

  beforeEach(async () => {
    database = await open();
    context = { store: database.store, clock: new TestClock(), identifiers: randomIdentifiers };
    ada = await newUser(context, 'ada');
    personal_id = (await ensurePersonalOrganization(context, ada.user_id)).organization_id;
  });

  afterEach(() => database.close());

  const userRow = async () => ({
    ...(await context.store.accounts.findUser(ada.user_id)),
    ...(await context.store.accounts.standingOf(ada.user_id)),
  });
  const membershipsOf = async (user_id: string) => {
    const { accounts } = context.store;
    const found = await accounts.organizationsOf(user_id);
    return await Promise.all(
      found.map(async ({ id: organization_id }) => ({
        organization_id,
        role: await accounts.roleOf({ organization_id, user_id }),
      })),
    );
  };
  const projectOf = async (organization_id: string) =>
    (await context.store.accounts.findActiveProject(organization_id, 'Default'))?.id ?? '';

  /** Ada's attempt, which must change nothing when it is refused. */
  async function attempt(): Promise<string> {
    const before = await database.everything();
    const result = await outcome(() => deleteAccount(context, ada));
    if (result !== 'ok') expect(await database.everything()).toEqual(before);
    return result;
  }

  describe('the user', () => {
    test('keeps a row without name and address; sessions, passwords and mailed links go', async () => {
      const { user_id } = ada;
      await database.run(
        'UPDATE users SET is_operator = true, email_verified = true, has_second_factor = true',
      );
      await addSignIn(database, user_id);
      expect(await attempt()).toBe('ok');
      expect(await userRow()).toMatchObject({
        email: `deleted:${user_id}`,
        name: 'Deleted user',
        email_verified: false,
        is_operator: false,
        deleted_at_ms: context.clock.now_ms(),
      });
      expect(await database.count('users WHERE has_second_factor')).toBe(0);
      for (const table of ['sessions', 'sign_in_accounts', 'second_factors', 'passkeys', 'verifications']) {
        expect(await database.count(table)).toBe(0);
      }
      expect(JSON.stringify(await database.everything())).not.toContain('ada@example.com');
    });

    test('frees the address, and a new user of it gets nothing of the old one', async () => {
      expect(await attempt()).toBe('ok');
      const { user } = await signUp(context, { email: 'ada@example.com', name: 'Other Ada' });
      expect(user.id).not.toBe(ada.user_id);
      expect(await membershipsOf(user.id)).toHaveLength(1);
      expect(await outcome(() => signUp(context, { email: `deleted:${ada.user_id}`, name: 'Eve' }))).toBe(
        'invalid_email',
      );
    });

    test('is gone for every other rule', async () => {
      const { id: organization_id } = await createOrganization(context, OPERATOR, { name: 'Acme' });
      expect(await attempt()).toBe('ok');
      expect(await outcome(() => deleteAccount(context, ada))).toBe('not_found');
      expect(await outcome(() => ensurePersonalOrganization(context, ada.user_id))).toBe('ok');
      const member = { organization_id, user_id: ada.user_id, role: 'owner' } as const;
      expect(await outcome(() => addMember(context, OPERATOR, member))).toBe('not_found');
      expect(await membershipsOf(ada.user_id)).toEqual([]);
    });

    test('gets neither a name nor an organization from requests that overlap the deletion', async () => {
      expect(await attempt()).toBe('ok');
      const deleted = await database.everything();
      expect(await outcome(() => renameUser(context, ada.user_id, 'Ada Lovelace'))).toBe('ok');
      expect(await outcome(() => createOrganization(context, ada, { name: 'Acme' }))).toBe('not_found');
      expect(await database.everything()).toEqual(deleted);
    });

    test('can no more accept an invitation, and the next user of the address neither', async () => {
      const bob = await newUser(context, 'bob');
      const { id: organization_id } = await createOrganization(context, bob, { name: 'Acme' });
      const { token } = await invite(context, bob, {
        organization_id,
        email: 'ada@example.com',
        role: 'admin',
      });
      expect(await attempt()).toBe('ok');
      const next = await newUser(context, 'ada');
      expect(await outcome(() => acceptInvitation(context, next, token))).toBe('invitation_ended');
    });

    test('is deleted by nobody else, not by the operator', async () => {
      expect(await outcome(() => deleteAccount(context, OPERATOR))).toBe('permission_denied');
      const operator = { kind: 'operator', user_id: ada.user_id } as const;
      expect(await outcome(() => deleteAccount(context, operator))).toBe('permission_denied');
      expect((await userRow()).deleted_at_ms).toBeNull();
    });
  });

  describe('an organization of which the user is the only member', () => {
    test('closes without credit: projects archived, keys and invitations ended, books kept', async () => {
      await creditByHand(context, OPERATOR, { organization_id: personal_id, amount_micros: DOLLARS_10 });
      await refundByHand(context, OPERATOR, { organization_id: personal_id, amount_micros: DOLLARS_10 });
      const project_id = await projectOf(personal_id);
      const key = await createKey(context, ada, { project_id, name: 'k' });
      const invitation = await invite(context, ada, {
        organization_id: personal_id,
        email: 'bob@example.com',
        role: 'admin',
      });
      const ledger = (await database.everything()).ledger_entries;
      expect(await previewAccountDeletion(context, ada)).toEqual({
        closes: [{ id: personal_id, name: 'ada' }],
        prevented_by: [],
      });
      expect(await attempt()).toBe('ok');
      const { accounts, keys, invitations } = context.store;
      expect((await accounts.findProject(project_id))?.archived_at_ms).toBeNumber();
      expect((await keys.findOwner(key.id))?.revoked_at_ms).toBeNumber();
      expect((await invitations.findInvitation(invitation.id))?.revoked_at_ms).toBeNumber();
      expect(await database.count('members')).toBe(0);
      expect(await accounts.findOrganization(personal_id)).toMatchObject({ name: 'Closed organization' });
      expect((await database.everything()).ledger_entries).toEqual(ledger);
      expect(await database.isSound()).toBe(true);
      const shown = await listKeys(context, OPERATOR, { revoked: true });
      expect(shown).toMatchObject([{ created_by_user_id: ada.user_id, created_by_name: 'Deleted user' }]);
    });

    test('leaves no model of its own, whose tuning has its questions', async () => {
      const { store } = context;
      await store.transaction(({ catalog }) => seedCatalog(catalog));
      const tuned = { base_id: 'decision-1', tuning_sha256: 'd'.repeat(64), tuning: 'its questions' };
      const other = await createOrganization(context, OPERATOR, { name: 'Other' });
      for (const organization_id of [personal_id, other.id]) {
        await addOwnModel(context, OPERATOR, { organization_id, name: 'support-1', ...tuned });
      }
      expect(await attempt()).toBe('ok');
      const left = (await store.catalog.allModels()).map(({ organization_id }) => organization_id);
      expect(left).toContain(other.id);
      expect(left).not.toContain(personal_id);
      expect(await database.count('model_tunings')).toBe(1);
    });

    test('keeps its name when it is not the personal one', async () => {
      const { id } = await createOrganization(context, ada, { name: 'Acme' });
      expect(await attempt()).toBe('ok');
      expect((await context.store.accounts.findOrganization(id))?.name).toBe('Acme');
    });

    test('prevents it with credit, in whichever organization', async () => {
      const { id: organization_id } = await createOrganization(context, ada, { name: 'Acme' });
      await creditByHand(context, OPERATOR, { organization_id, amount_micros: DOLLARS_10 });
      expect(await attempt()).toBe('organization_has_credit');
      expect(await previewAccountDeletion(context, ada)).toEqual({
        closes: [{ id: personal_id, name: 'ada' }],
        prevented_by: [{ id: organization_id, name: 'Acme', reason: 'organization_has_credit' }],
      });
    });

    test('prevents it while requests run', async () => {
      await database.run('UPDATE organizations SET open_holds = 1');
      expect(await attempt()).toBe('organization_has_credit');
    });

    test('closes when it owes something: the debt stays in the books', async () => {
      await database.run('UPDATE organizations SET credit_micros = -5');
      expect(await attempt()).toBe('ok');
      expect((await context.store.accounts.findOrganization(personal_id))?.credit_micros).toBe(-5);
    });
  });

  describe('an organization with other members', () => {
    test.each(ROLES)('is left by a member who is its %s, and goes on', async (role) => {
      const bob = await newUser(context, 'bob');
      const { id: organization_id, default_project_id } = await createOrganization(context, bob, {
        name: 'Acme',
      });
      await addMember(context, bob, { organization_id, user_id: ada.user_id, role });
      await createKey(context, OPERATOR, { project_id: default_project_id, name: 'k' });
      await creditByHand(context, OPERATOR, { organization_id, amount_micros: DOLLARS_10 });
      expect(await attempt()).toBe('ok');
      expect(await membershipsOf(ada.user_id)).toEqual([]);
      expect(await listKeys(context, bob, { organization_id })).toHaveLength(1);
    });

    test('prevents it for its last owner, with credit and without, until another one is made', async () => {
      const { id: organization_id } = await createOrganization(context, ada, { name: 'Acme' });
      const bob = await newUser(context, 'bob');
      await addMember(context, ada, { organization_id, user_id: bob.user_id, role: 'admin' });
      expect(await attempt()).toBe('last_owner');
      await creditByHand(context, OPERATOR, { organization_id, amount_micros: DOLLARS_10 });
      expect(await attempt()).toBe('last_owner');
      await changeRole(context, ada, { organization_id, user_id: bob.user_id, role: 'owner' });
      expect(await attempt()).toBe('ok');
    });
  });

  describe('a personal organization', () => {
    test('is made for a user without one, once, however often it is asked for', async () => {
      const user = { id: 'user_new', email: 'new@example.com', name: 'New', created_at_ms: 0 };
      await context.store.accounts.insertUser(user);
      const made = await Promise.all([1, 2, 3].map(() => ensurePersonalOrganization(context, user.id)));
      const [first] = made;
      expect(new Set(made.map(({ organization_id }) => organization_id)).size).toBe(1);
      expect(await ensurePersonalOrganization(context, user.id)).toEqual({
        organization_id: first?.organization_id ?? '',
      });
      expect(await membershipsOf(user.id)).toMatchObject([
        { role: 'owner', organization_id: first?.organization_id },
      ]);
      expect(
        await context.store.accounts.findActiveProject(first?.organization_id ?? '', 'Default'),
      ).toBeDefined();
    });

    test('is not made for nobody', async () => {
      expect(await outcome(() => ensurePersonalOrganization(context, 'user_none'))).toBe('not_found');
    });
  });
});
