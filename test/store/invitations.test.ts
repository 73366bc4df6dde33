import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import type { Invitation, InvitationRecords } from '../../src/store/invitation-records.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import { BYTEWISE, hashOf, newInvitation, newOrganization, newUser, SHUFFLED } from './rows.ts';

/** A time at which an invitation of `newInvitation` is open. */
const NOW_MS = 1_500;

const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

describe.each(DATABASES)('invitations in $name', ({ open }) => {
  let database: OpenDatabase;
  let invitations: InvitationRecords;
  /** Organizations `org` and `other`, and the user `ada`. */
  beforeEach(async () => {
    database = await open();
    invitations = database.store.invitations;
    const { accounts } = database.store;
    await accounts.insertUser(newUser('ada'));
    await accounts.insertOrganization(newOrganization('org'));
    await accounts.insertOrganization(newOrganization('other'));
  });
  afterEach(() => database.close());

  const add = async (id: string, values: Partial<Invitation> = {}, organization_id = 'org') => {
    const invitation = newInvitation(id, organization_id, values);
    await invitations.insertInvitation(invitation);
    return invitation;
  };
  const opened = async (organization_id = 'org', now_ms = NOW_MS) =>
    ids(await invitations.openInvitations(organization_id, now_ms));
  const revokedAt_ms = async (id: string) => (await invitations.findInvitation(id))?.revoked_at_ms;

  test('an invitation is found as it was inserted, by its exact id or the hash of its token', async () => {
    const given = await add('inv', {
      role: 'owner',
      invited_by_user_id: 'ada',
      created_at_ms: 1_700_000_000_000,
      expires_at_ms: 1_700_000_000_001,
    });
    expect(await invitations.findInvitation('inv')).toEqual(given);
    expect(await invitations.findInvitationByToken(hashOf('inv'))).toEqual(given);
    for (const text of ['', 'INV', 'inv\u0000', hashOf('inv').toUpperCase()]) {
      expect(await invitations.findInvitation(text)).toBeUndefined();
      expect(await invitations.findInvitationByToken(text)).toBeUndefined();
    }
  });

  test('an invitation is inserted once: neither its id nor its token twice, and in what exists', async () => {
    await add('inv');
    for (const refused of [
      newInvitation('inv', 'org', { token_sha256: hashOf('new') }),
      newInvitation('new', 'org', { token_sha256: hashOf('inv') }),
      newInvitation('new', 'org', { token_sha256: 'short' }),
      newInvitation('new', 'nobody'),
      newInvitation('new', 'org', { invited_by_user_id: 'nobody' }),
    ]) {
      await expect(invitations.insertInvitation(refused)).rejects.toThrow();
    }
    expect(await opened()).toEqual(['inv']);
  });

  test('an invitation is open until it expires, is accepted or is revoked', async () => {
    for (const id of ['accepted', 'expires', 'revoked']) await add(id);
    await add('late', { expires_at_ms: 1_700_000_000_000 });
    await add('foreign', {}, 'other');
    await invitations.acceptInvitation('accepted', 1_400);
    await invitations.revokeInvitation('revoked', 1_400);
    expect(await opened()).toEqual(['late', 'expires']);
    expect(await opened('org', 1_999)).toEqual(['late', 'expires']);
    expect(await opened('org', 2_000)).toEqual(['late']);
    expect(await opened('org', 1_700_000_000_000)).toEqual([]);
    expect(await opened('nobody')).toEqual([]);
    expect(await invitations.countOpen('org', 1_999)).toBe(2);
    expect(await invitations.countOpen('org', 2_000)).toBe(1);
    expect(await invitations.countOpen('nobody', NOW_MS)).toBe(0);
    expect(await invitations.findInvitation('accepted')).toMatchObject({
      accepted_at_ms: 1_400,
      revoked_at_ms: null,
    });
    expect(await revokedAt_ms('revoked')).toBe(1_400);
  });

  test('open invitations are listed newest first, then by the bytes of the id downwards, with names and without tokens', async () => {
    await add('early', { created_at_ms: 999 });
    for (const id of SHUFFLED) await add(id);
    const { token_sha256: _, ...late } = await add('late', {
      created_at_ms: 1_001,
      invited_by_user_id: 'ada',
    });
    expect(await opened()).toEqual(['late', ...BYTEWISE.toReversed(), 'early']);
    const [first, second] = await invitations.openInvitations('org', NOW_MS);
    expect(first).toEqual({ ...late, organization_name: 'Name of org', invited_by_name: 'Name of ada' });
    expect(second).toMatchObject({ invited_by_user_id: null, invited_by_name: null });
  });

  test('an invitation that is renewed has another sender, another token and another end, alone', async () => {
    const before = await add('inv');
    const other = await add('other');
    const renewed = { invited_by_user_id: 'ada', token_sha256: hashOf('new'), expires_at_ms: 9_000 };
    await invitations.renewInvitation('inv', renewed);
    await invitations.renewInvitation('nothing', { ...renewed, token_sha256: hashOf('x') });
    const after = { ...before, ...renewed };
    expect(await invitations.findInvitationByToken(hashOf('new'))).toEqual(after);
    expect(await invitations.findInvitationByToken(hashOf('inv'))).toBeUndefined();
    expect(await invitations.findInvitation('other')).toEqual(other);
    await expect(
      invitations.renewInvitation('inv', { ...renewed, token_sha256: hashOf('other'), expires_at_ms: 1 }),
    ).rejects.toThrow();
    expect(await invitations.findInvitation('inv')).toEqual(after);
  });

  describe('those into an organization', () => {
    beforeEach(async () => {
      for (const id of ['accepted', 'guest', 'revoked']) await add(id);
      await add('host', { email: 'host@example.com' });
      await add('expired', { expires_at_ms: 1 });
      await add('foreign', {}, 'other');
      await invitations.acceptInvitation('accepted', 5);
      await invitations.revokeInvitation('revoked', 5);
    });
    const revoked = async () =>
      Object.fromEntries(
        await Promise.all(
          ['accepted', 'guest', 'revoked', 'host', 'expired', 'foreign'].map(
            async (id) => [id, await revokedAt_ms(id)] as const,
          ),
        ),
      );
    const before = { accepted: null, guest: null, revoked: 5, host: null, expired: null, foreign: null };

    test('are revoked unless they ended before', async () => {
      await invitations.revokeInvitationsInto('org', null, 9);
      expect(await revoked()).toEqual({ ...before, guest: 9, host: 9, expired: 9 });
    });

    test('are revoked of one address', async () => {
      await invitations.revokeInvitationsInto('org', 'GUEST@example.com', 8);
      await invitations.revokeInvitationsInto('nobody', null, 8);
      expect(await revoked()).toEqual(before);
      await invitations.revokeInvitationsInto('org', 'guest@example.com', 9);
      expect(await revoked()).toEqual({ ...before, guest: 9, expired: 9 });
    });
  });

  test('those that a user sent with certain roles are revoked where they are open, and counted', async () => {
    await database.store.accounts.insertUser(newUser('eve'));
    const sent = { invited_by_user_id: 'eve' };
    for (const id of ['owner', 'accepted', 'revoked'] as const) await add(id, { ...sent, role: 'owner' });
    await add('admin', { ...sent, role: 'admin' });
    await add('reader', { ...sent, role: 'reader' });
    await add('expired', { ...sent, role: 'owner', expires_at_ms: NOW_MS });
    await add('of-ada', { role: 'owner', invited_by_user_id: 'ada' });
    await add('of-operator', { role: 'owner', invited_by_user_id: null });
    await add('foreign', { ...sent, role: 'owner' }, 'other');
    await invitations.acceptInvitation('accepted', 5);
    await invitations.revokeInvitation('revoked', 5);
    for (const [organization_id, user_id, roles] of [
      ['nobody', 'eve', ['owner']],
      ['org', 'nobody', ['owner']],
      ['org', 'eve', []],
      ['org', 'eve', ['billing']],
    ] as const) {
      expect(await invitations.revokeInvitationsBy(organization_id, user_id, roles, NOW_MS)).toBe(0);
    }
    expect(await invitations.revokeInvitationsBy('org', 'eve', ['owner', 'admin'], NOW_MS)).toBe(2);
    expect(await invitations.revokeInvitationsBy('org', 'eve', ['owner', 'admin'], NOW_MS + 1)).toBe(0);
    const ended = await Promise.all(['owner', 'admin', 'accepted', 'revoked', 'expired'].map(revokedAt_ms));
    expect(ended).toEqual([NOW_MS, NOW_MS, null, 5, null]);
    expect(await opened()).toEqual(['reader', 'of-operator', 'of-ada']);
    expect(await opened('other')).toEqual(['foreign']);
  });

  test('an address that is forgotten stands nowhere any more, and its invitations are revoked unless they ended', async () => {
    for (const id of ['accepted', 'guest', 'revoked']) await add(id);
    await add('foreign', {}, 'other');
    await add('host', { email: 'host@example.com' });
    await invitations.acceptInvitation('accepted', 5);
    await invitations.revokeInvitation('revoked', 5);
    await invitations.forgetAddress('guest@example.com', 'deleted:1', 1_700_000_000_000);
    const now = await Promise.all(
      ['accepted', 'guest', 'revoked', 'foreign', 'host'].map((id) => invitations.findInvitation(id)),
    );
    expect(now.map((invitation) => [invitation?.email, invitation?.revoked_at_ms])).toEqual([
      ['deleted:1', null],
      ['deleted:1', 1_700_000_000_000],
      ['deleted:1', 5],
      ['deleted:1', 1_700_000_000_000],
      ['host@example.com', null],
    ]);
    expect(now[0]?.accepted_at_ms).toBe(5);
  });
});
