import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { deleteAccount } from '../../src/accounts/delete-account.ts';
import {
  acceptInvitation,
  INVITATION_MS,
  invite,
  listInvitations,
  OPEN_INVITATIONS_MAX,
  readInvitation,
  resendInvitation,
  revokeInvitation,
} from '../../src/accounts/invitations.ts';
import { addMember, changeRole, listMembers, removeMember } from '../../src/accounts/members.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { listAuditLog } from '../../src/audit-log/list.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { sameHash } from '../../src/hashing/secret-hash.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import {
  addEveryone,
  EVERYONE,
  newUser,
  outcome,
  type UserActor,
  verifyEmail,
  type Who,
} from './everyone.ts';
import { TestClock } from './support.ts';

/** Histories on PostgreSQL are fewer: each of their steps goes over the wire and to the disk. */
const HISTORIES = { SQLite: 60, PostgreSQL: 10 };

/** Returns the role table's result: owners and the operator give every role, admins every role but owner. */
function expected(who: Who, role: Role): string {
  if (who === 'stranger') return 'not_found';
  if (who === 'owner' || who === 'operator') return 'ok';
  return who === 'admin' && role !== 'owner' ? 'ok' : 'permission_denied';
}

/** Who invites in a random history: an owner who stays, and a member whose role changes. */
const sender = fc.constantFrom('owner' as const, 'other' as const);

/** The steps of a random history, over two addresses and all links sent so far. */
const step = fc.oneof(
  fc.record({
    do: fc.constant('invite' as const),
    sender,
    guest: fc.nat({ max: 1 }),
    role: fc.constantFrom(...ROLES),
  }),
  fc.record({ do: fc.constant('resend' as const), sender, link: fc.nat({ max: 9 }) }),
  fc.record({ do: fc.constant('revoke' as const), link: fc.nat({ max: 9 }) }),
  fc.record({ do: fc.constant('accept' as const), link: fc.nat({ max: 9 }), by: fc.nat({ max: 1 }) }),
  fc.record({ do: fc.constant('leave' as const), guest: fc.nat({ max: 1 }) }),
  fc.record({ do: fc.constant('change' as const), role: fc.constantFrom(...ROLES, null) }),
  fc.record({ do: fc.constant('wait' as const), days: fc.nat({ max: 4 }) }),
);

interface ModelInvitation {
  readonly id: string;
  readonly guest: number;
  readonly role: Role;
  sender: 'owner' | 'other';
  state: 'open' | 'accepted' | 'revoked';
  expires_at_ms: number;
}

describe.each(DATABASES)('invitations, $name', ({ name, open: openDatabase }) => {
  let database: OpenDatabase;
  let clock: TestClock;
  let context: AccountContext;
  let organization_id: string;
  let everyone: Awaited<ReturnType<typeof addEveryone>>;

  beforeEach(async () => {
    database = await openDatabase();
    clock = new TestClock();
    context = { store: database.store, clock, identifiers: randomIdentifiers };
    organization_id = (await createOrganization(context, OPERATOR, { name: 'Acme' })).id;
    everyone = await addEveryone(context, organization_id);
  });

  afterEach(() => database.close());

  const send = (email: string, role: Role = 'developer', who: Who = 'owner') =>
    invite(context, everyone[who], { organization_id, email, role });

  async function guest(name = 'guest'): Promise<UserActor> {
    const user = await newUser(context, name);
    await verifyEmail(database, user);
    return user;
  }

  const open = async () =>
    (await listInvitations(context, everyone.owner, organization_id)).map(({ email }) => email);

  describe.each(EVERYONE.flatMap((who) => ROLES.map((role) => [who, role] as const)))(
    '%s, an invitation as %s',
    (who, role) => {
      test(`invites: ${expected(who, role)}`, async () => {
        expect(await outcome(() => send('guest@example.com', role, who))).toBe(expected(who, role));
        expect(await open()).toEqual(expected(who, role) === 'ok' ? ['guest@example.com'] : []);
      });

      test(`sends again and revokes: ${expected(who, role)}`, async () => {
        const { id: invitation_id, token } = await send('guest@example.com', role);
        const before = await database.everything();
        const given = { organization_id, invitation_id };
        expect(await outcome(() => resendInvitation(context, everyone[who], given))).toBe(
          expected(who, role),
        );
        if (expected(who, role) !== 'ok') expect(await database.everything()).toEqual(before);
        expect(await outcome(() => readInvitation(context, token))).toBe(
          expected(who, role) === 'ok' ? 'not_found' : 'ok',
        );
        expect(await outcome(() => revokeInvitation(context, everyone[who], given))).toBe(
          expected(who, role),
        );
        expect(await open()).toEqual(expected(who, role) === 'ok' ? [] : ['guest@example.com']);
      });
    },
  );

  test.each(EVERYONE)('%s sees the open invitations where they may invite', async (who) => {
    await send('guest@example.com');
    const may = ['owner', 'admin', 'operator'].includes(who);
    const refusal = who === 'stranger' ? 'not_found' : 'permission_denied';
    expect(await outcome(() => listInvitations(context, everyone[who], organization_id))).toBe(
      may ? 'ok' : refusal,
    );
  });

  describe('a link', () => {
    test('has 32 random bytes, of which the file has the SHA-256 only', async () => {
      const { token } = await send('guest@example.com');
      expect(Buffer.from(token, 'base64url')).toHaveLength(32);
      const rows = JSON.stringify(await database.everything());
      expect(rows).toContain(createHash('sha256').update(token).digest('hex'));
      expect(rows).not.toContain(token);
    });

    test('tells who has it what it offers', async () => {
      const { token, expires_at_ms } = await send('Guest@Example.com', 'billing');
      expect(await readInvitation(context, token)).toEqual({
        organization_id,
        organization_name: 'Acme',
        email: 'guest@example.com',
        role: 'billing',
        expires_at_ms,
      });
      expect(expires_at_ms).toBe(clock.now_ms() + INVITATION_MS);
    });

    test('is not taken for another one, whatever row the store finds', async () => {
      const { id, token } = await send('guest@example.com');
      const found = await context.store.invitations.findInvitation(id);
      const wrong: AccountContext = {
        ...context,
        store: Object.assign(Object.create(context.store), {
          invitations: { findInvitationByToken: () => Promise.resolve(found) },
        }),
      };
      expect(await outcome(() => readInvitation(wrong, `${token}x`))).toBe('not_found');
    });

    test('hashes are compared whole', () => {
      expect(sameHash('ab', 'ab')).toBe(true);
      for (const other of ['', 'a', 'aa', 'bb', 'abc']) expect(sameHash('ab', other)).toBe(false);
    });
  });

  describe('accepting', () => {
    test('makes the user a member with the role, once', async () => {
      const user = await guest();
      const { token } = await send('guest@example.com', 'billing');
      expect(await acceptInvitation(context, user, token)).toEqual({ organization_id, role: 'billing' });
      expect(await listMembers(context, user, organization_id)).toContainEqual(
        expect.objectContaining({ user_id: user.user_id, role: 'billing' }),
      );
      expect(await open()).toEqual([]);
      await removeMember(context, user, { organization_id, user_id: user.user_id });
      expect(await outcome(() => acceptInvitation(context, user, token))).toBe('invitation_ended');
    });

    test('twice at the same time adds one member', async () => {
      const user = await guest();
      const { token } = await send('guest@example.com');
      const outcomes = await Promise.all(
        [1, 2, 3].map(() => outcome(() => acceptInvitation(context, user, token))),
      );
      expect(outcomes.sort()).toEqual(['invitation_ended', 'invitation_ended', 'ok']);
    });

    test('is refused to another address, with the link in hand', async () => {
      await guest();
      const other = await guest('other');
      const { token } = await send('guest@example.com', 'owner');
      expect(await outcome(() => acceptInvitation(context, other, token))).toBe('wrong_address');
      expect(await outcome(() => acceptInvitation(context, OPERATOR, token))).toBe('permission_denied');
      expect(await open()).toEqual(['guest@example.com']);
    });

    test('is refused while the address is not verified', async () => {
      const user = await newUser(context, 'guest');
      const { token } = await send('guest@example.com');
      expect(await outcome(() => acceptInvitation(context, user, token))).toBe('email_not_verified');
      await verifyEmail(database, user);
      expect(await outcome(() => acceptInvitation(context, user, token))).toBe('ok');
    });

    test('ends after 7 days', async () => {
      const user = await guest();
      const late = await send('guest@example.com');
      clock.advance(INVITATION_MS);
      expect(await outcome(() => acceptInvitation(context, user, late.token))).toBe('invitation_ended');
      expect(await open()).toEqual([]);
      const given = { organization_id, invitation_id: late.id };
      expect(await outcome(() => resendInvitation(context, everyone.owner, given))).toBe('invitation_ended');
      const just = await send('guest@example.com');
      clock.advance(INVITATION_MS - 1);
      expect(await outcome(() => acceptInvitation(context, user, just.token))).toBe('ok');
    });

    test('takes the newest link only: one that was sent again, or replaced', async () => {
      const user = await guest();
      const first = await send('guest@example.com', 'reader');
      const second = await send('GUEST@example.com', 'billing');
      expect(await open()).toEqual(['guest@example.com']);
      const third = await resendInvitation(context, everyone.owner, {
        organization_id,
        invitation_id: second.id,
      });
      expect(await outcome(() => acceptInvitation(context, user, first.token))).toBe('invitation_ended');
      expect(await outcome(() => acceptInvitation(context, user, second.token))).toBe('not_found');
      expect(await acceptInvitation(context, user, third.token)).toMatchObject({ role: 'billing' });
    });

    test('is refused to a member, and a member is not invited', async () => {
      const user = await guest();
      const { token } = await send('guest@example.com');
      await context.store.accounts.insertMember({
        organization_id,
        user_id: user.user_id,
        role: 'reader',
        created_at_ms: 0,
      });
      expect(await outcome(() => acceptInvitation(context, user, token))).toBe('already_member');
      expect(await outcome(() => send('guest@example.com'))).toBe('already_member');
    });
  });

  describe('whoever sent an invitation and may no longer send it', () => {
    const INVITED = ['owner', 'admin', 'developer'] as const;
    /** The ends of an inviter's rights (an owner's), and the roles whose invitations stay open. */
    const ENDS: readonly {
      readonly end: string;
      readonly left: readonly Role[];
      readonly make: (eve: UserActor) => Promise<unknown>;
    }[] = [
      {
        end: 'is removed',
        left: [],
        make: ({ user_id }) => removeMember(context, everyone.owner, { organization_id, user_id }),
      },
      {
        end: 'leaves',
        left: [],
        make: (eve) => removeMember(context, eve, { organization_id, user_id: eve.user_id }),
      },
      { end: 'deletes their account', left: [], make: (eve) => deleteAccount(context, eve) },
      ...(
        [
          ['owner', INVITED],
          ['admin', ['admin', 'developer']],
          ['developer', []],
          ['billing', []],
          ['reader', []],
        ] as const
      ).map(([role, left]) => ({
        end: `becomes ${role}`,
        left,
        make: ({ user_id }: UserActor) =>
          changeRole(context, everyone.owner, { organization_id, user_id, role }),
      })),
    ];

    /** Eve, another owner. */
    async function newOwner(): Promise<UserActor> {
      const eve = await newUser(context, 'eve');
      await addMember(context, OPERATOR, { organization_id, user_id: eve.user_id, role: 'owner' });
      return eve;
    }

    test.each(ENDS.flatMap((one) => INVITED.map((role) => [one.end, role, one] as const)))(
      'and %s: what becomes of an invitation as %s',
      async (_, role, { left, make }) => {
        const eve = await newOwner();
        const back = await guest('eve2');
        const { token } = await invite(context, eve, { organization_id, email: 'eve2@example.com', role });
        const { token: of_other } = await send('guest@example.com', role);
        await make(eve);
        const stays = left.includes(role);
        expect(await outcome(() => acceptInvitation(context, back, token))).toBe(
          stays ? 'ok' : 'invitation_ended',
        );
        expect(await outcome(() => readInvitation(context, of_other))).toBe('ok');
        const { items } = await listAuditLog(context, everyone.owner, { organization_id, limit: 9 });
        const changed = items.find(({ action }) => action.startsWith('member.') && action !== 'member.add');
        expect(changed?.detail.revoked_invitations).toBe(stays ? undefined : 1);
      },
    );

    test('takes none with them that a colleague has sent again since', async () => {
      const eve = await newOwner();
      const user = await guest();
      const sent = await invite(context, eve, {
        organization_id,
        email: 'guest@example.com',
        role: 'admin',
      });
      const given = { organization_id, invitation_id: sent.id };
      const { token } = await resendInvitation(context, everyone.admin, given);
      await removeMember(context, everyone.owner, { organization_id, user_id: eve.user_id });
      expect(await outcome(() => acceptInvitation(context, user, token))).toBe('ok');
    });

    test('takes their own alone, which they sent again', async () => {
      const eve = await newOwner();
      const { id: invitation_id } = await send('guest@example.com', 'owner');
      const { token } = await resendInvitation(context, eve, { organization_id, invitation_id });
      await removeMember(context, everyone.owner, { organization_id, user_id: eve.user_id });
      expect(await outcome(() => readInvitation(context, token))).toBe('invitation_ended');
    });
  });

  test('the first member of an organization must be an owner', async () => {
    const { id } = await createOrganization(context, OPERATOR, { name: 'Empty' });
    const first = (role: Role) =>
      outcome(() => invite(context, OPERATOR, { organization_id: id, email: 'guest@example.com', role }));
    expect(await first('admin')).toBe('invalid_role');
    expect(await first('owner')).toBe('ok');
  });

  test('an invitation of another organization is not found', async () => {
    const { id: invitation_id } = await send('guest@example.com');
    const other = await createOrganization(context, everyone.owner, { name: 'Other' });
    const given = { organization_id: other.id, invitation_id };
    expect(await outcome(() => resendInvitation(context, everyone.owner, given))).toBe('not_found');
    expect(await outcome(() => revokeInvitation(context, everyone.owner, given))).toBe('not_found');
    expect(await open()).toEqual(['guest@example.com']);
  });

  test('an organization has 100 open invitations at most; what ended makes room', async () => {
    for (let count = 0; count < OPEN_INVITATIONS_MAX; count += 1) await send(`guest${count}@example.com`);
    const before = await database.everything();
    expect(await outcome(() => send('one-more@example.com'))).toBe('too_many_invitations');
    expect(await database.everything()).toEqual(before);
    expect(await outcome(() => send('guest7@example.com', 'admin'))).toBe('ok');
    clock.advance(INVITATION_MS);
    expect(await outcome(() => send('one-more@example.com'))).toBe('ok');
  });

  test('invitations agree with a plain model after every step of a random history', async () => {
    const guests = [await guest('guest0'), await guest('guest1')] as const;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40, size: 'max' }), async (steps) => {
        const { id } = await createOrganization(context, OPERATOR, {
          name: 'Of this history',
          owner_user_id: everyone.owner.user_id,
        });
        const modelled: ModelInvitation[] = [];
        const links: { readonly token: string; readonly of: ModelInvitation; is_newest: boolean }[] = [];
        const joined = new Map<number, Role>();
        let other_role: Role | null = null;
        const senders = { owner: everyone.owner, other: everyone.admin };
        const refusalOf = (one: 'owner' | 'other', role: Role | undefined): string => {
          if (one === 'owner') return 'ok';
          if (other_role === null) return 'not_found';
          return role === undefined ? expected(other_role, 'reader') : expected(other_role, role);
        };
        const isOpen = (one: ModelInvitation) => one.state === 'open' && clock.now_ms() < one.expires_at_ms;
        const addLink = (token: string, of: ModelInvitation) => {
          for (const link of links) if (link.of === of) link.is_newest = false;
          links.push({ token, of, is_newest: true });
        };
        for (const one of steps) {
          clock.advance(1);
          const now_ms = clock.now_ms();
          const link = 'link' in one ? links[one.link % Math.max(1, links.length)] : undefined;
          const given = { organization_id: id, invitation_id: link?.of.id ?? 'inv_none' };
          switch (one.do) {
            case 'invite': {
              const email = `guest${one.guest}@example.com`;
              const work = invite(context, senders[one.sender], {
                organization_id: id,
                email,
                role: one.role,
              });
              const refusal = refusalOf(one.sender, one.role);
              if (refusal !== 'ok' || joined.has(one.guest)) {
                expect(await outcome(() => work)).toBe(refusal === 'ok' ? 'already_member' : refusal);
                break;
              }
              const sent = await work;
              for (const old of modelled) {
                if (old.guest === one.guest && old.state === 'open') old.state = 'revoked';
              }
              const made: ModelInvitation = {
                id: sent.id,
                guest: one.guest,
                role: one.role,
                sender: one.sender,
                state: 'open',
                expires_at_ms: now_ms + INVITATION_MS,
              };
              modelled.push(made);
              addLink(sent.token, made);
              break;
            }
            case 'resend': {
              const work = resendInvitation(context, senders[one.sender], given);
              const refusal = refusalOf(one.sender, link?.of.role);
              if (refusal !== 'ok') expect(await outcome(() => work)).toBe(refusal);
              else if (link === undefined) expect(await outcome(() => work)).toBe('not_found');
              else if (!isOpen(link.of)) expect(await outcome(() => work)).toBe('invitation_ended');
              else {
                addLink((await work).token, link.of);
                link.of.sender = one.sender;
                link.of.expires_at_ms = now_ms + INVITATION_MS;
              }
              break;
            }
            case 'revoke': {
              const result = await outcome(() => revokeInvitation(context, everyone.owner, given));
              if (link === undefined) expect(result).toBe('not_found');
              else if (link.of.state === 'revoked') expect(result).toBe('ok');
              else if (!isOpen(link.of)) expect(result).toBe('invitation_ended');
              else {
                expect(result).toBe('ok');
                link.of.state = 'revoked';
              }
              break;
            }
            case 'accept': {
              const user = guests[one.by === 0 ? 0 : 1];
              const result = await outcome(() => acceptInvitation(context, user, link?.token ?? 'none'));
              if (link?.is_newest !== true) expect(result).toBe('not_found');
              else if (!isOpen(link.of)) expect(result).toBe('invitation_ended');
              else if (link.of.guest !== one.by) expect(result).toBe('wrong_address');
              else {
                expect(result).toBe('ok');
                link.of.state = 'accepted';
                joined.set(one.by, link.of.role);
              }
              break;
            }
            case 'leave': {
              const member = { organization_id: id, user_id: guests[one.guest === 0 ? 0 : 1].user_id };
              const result = await outcome(() => removeMember(context, everyone.owner, member));
              expect(result).toBe(joined.delete(one.guest) ? 'ok' : 'not_found');
              break;
            }
            case 'change': {
              const member = { organization_id: id, user_id: senders.other.user_id };
              const { role } = one;
              if (role === null) {
                const result = await outcome(() => removeMember(context, everyone.owner, member));
                expect(result).toBe(other_role === null ? 'not_found' : 'ok');
              } else if (other_role === null) await addMember(context, OPERATOR, { ...member, role });
              else await changeRole(context, everyone.owner, { ...member, role });
              other_role = role;
              for (const sent of modelled) {
                const may_send = role !== null && expected(role, sent.role) === 'ok';
                if (sent.sender === 'other' && isOpen(sent) && !may_send) sent.state = 'revoked';
              }
              break;
            }
            case 'wait':
              clock.advance((one.days * INVITATION_MS) / 7);
          }
          const listed = await listInvitations(context, everyone.owner, id);
          expect(listed.map((row) => row.id).sort()).toEqual(
            modelled
              .filter(isOpen)
              .map((row) => row.id)
              .sort(),
          );
          // At most one is open for an address.
          expect(new Set(listed.map(({ email }) => email)).size).toBe(listed.length);
          const roles = new Map(
            (await listMembers(context, everyone.owner, id)).map((row) => [row.user_id, row.role]),
          );
          expect([roles.get(guests[0].user_id), roles.get(guests[1].user_id)]).toEqual([
            joined.get(0),
            joined.get(1),
          ]);
        }
      }),
      { numRuns: HISTORIES[name] },
    );
  }, 120_000);
});
