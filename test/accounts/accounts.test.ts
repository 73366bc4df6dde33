import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { KeyDirectory } from '../../src/accounts/key-directory.ts';
import {
  ACTIVE_KEYS_MAX,
  createKey,
  listKeys,
  listRevokedKeys,
  REVOKED_KEYS_PAGE_MAX,
  revokeKey,
} from '../../src/accounts/keys.ts';
import { addMember, changeRole, listMembers, removeMember } from '../../src/accounts/members.ts';
import {
  createOrganization,
  getOrganization,
  listOrganizations,
  renameOrganization,
  setTierSettings,
} from '../../src/accounts/organizations.ts';
import { archiveProject, changeProject, createProject, listProjects } from '../../src/accounts/projects.ts';
import { signUp } from '../../src/accounts/users.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { contextOn } from '../support/context.ts';
import { outcome } from './everyone.ts';
import { TestClock, temporaryDatabase } from './support.ts';

type User = { readonly kind: 'user'; readonly user_id: string };

let database: OpenDatabase;
let clock: TestClock;
let context: AccountContext;
let organization_id: string;
let project_id: string;

async function newUser(name: string): Promise<User> {
  const { user } = await signUp(context, { email: `${name}@example.com`, name });
  return { kind: 'user', user_id: user.id };
}

/** A user with each role in the organization, and one who is no member. */
async function everyone(): Promise<Record<Role | 'stranger', User>> {
  const users = {
    owner: await newUser('owner'),
    admin: await newUser('admin'),
    developer: await newUser('developer'),
    billing: await newUser('billing'),
    reader: await newUser('reader'),
    stranger: await newUser('stranger'),
  };
  for (const role of ROLES)
    await addMember(context, OPERATOR, { organization_id, user_id: users[role].user_id, role });
  return users;
}

describe.each(DATABASES)('accounts, $name', ({ open }) => {
  beforeEach(async () => {
    database = await open();
    clock = new TestClock();
    context = { store: database.store, clock, identifiers: randomIdentifiers };
    const organization = await createOrganization(context, OPERATOR, { name: 'Acme' });
    organization_id = organization.id;
    project_id = organization.default_project_id;
  });

  afterEach(() => database.close());

  describe('sign-up', () => {
    test('gives a personal organization, owned by the user, with a project named Default', async () => {
      const { user, organization } = await signUp(context, { email: ' Ada@Example.com ', name: ' Ada ' });
      const ada: Actor = { kind: 'user', user_id: user.id };
      expect(user).toMatchObject({ email: 'ada@example.com', name: 'Ada' });
      expect(await listOrganizations(context, ada)).toMatchObject([
        { id: organization.id, name: 'Ada', personal_user_id: user.id, tier: 0, credit_micros: 0 },
      ]);
      expect(await listMembers(context, ada, organization.id)).toMatchObject([
        { user_id: user.id, role: 'owner' },
      ]);
      expect(await listProjects(context, ada)).toMatchObject([
        { id: organization.default_project_id, name: 'Default' },
      ]);
    });

    test('refuses an address that is taken, in any case, and leaves nothing behind', async () => {
      await signUp(context, { email: 'ada@example.com', name: 'Ada' });
      const before = (await listOrganizations(context, OPERATOR)).length;
      expect(await outcome(() => signUp(context, { email: 'ADA@example.com', name: 'Eve' }))).toBe(
        'email_taken',
      );
      expect(await listOrganizations(context, OPERATOR)).toHaveLength(before);
    });

    for (const email of [
      '',
      'ada',
      '@example.com',
      'ada@',
      'a da@example.com',
      'ada@\u0000',
      'ada@localhost',
      'jürgen@firma.de',
      'a&b@example.com',
      `${'a'.repeat(250)}@b.de`,
    ]) {
      test(`refuses ${JSON.stringify(email).slice(0, 30)} as an address`, async () => {
        expect(await outcome(() => signUp(context, { email, name: 'Ada' }))).toBe('invalid_email');
      });
    }
  });

  describe('names', () => {
    const rows: readonly (readonly [given: string, stored: string | null])[] = [
      ['Support triage', 'Support triage'],
      ['  trimmed  ', 'trimmed'],
      ['a', 'a'],
      ['x'.repeat(100), 'x'.repeat(100)],
      ['😀'.repeat(100), '😀'.repeat(100)],
      ['=SUM(A1)', '=SUM(A1)'],
      ['x'.repeat(101), null],
      ['', null],
      ['   ', null],
      ['two\nlines', null],
      ['tab\there', null],
      ['nul\u0000', null],
      ['\u001b[31mred', null],
      ['line\u2028separator', null],
      ['half \ud800', null],
    ];
    for (const [given, stored] of rows) {
      test(`${JSON.stringify(given).slice(0, 40)} is ${stored === null ? 'refused' : 'accepted'}`, async () => {
        const names = [
          async () => (await createOrganization(context, OPERATOR, { name: given })).name,
          async () => (await createProject(context, OPERATOR, { organization_id, name: given })).name,
          async () => (await createKey(context, OPERATOR, { project_id, name: given })).name,
          async () => (await renameOrganization(context, OPERATOR, { organization_id, name: given })).name,
        ];
        for (const name of names) {
          if (stored === null) expect(await outcome(name)).toBe('invalid_name');
          else expect(await name()).toBe(stored);
        }
      });
    }
  });

  describe('permissions', () => {
    const rows: readonly {
      readonly action: string;
      readonly run: (actor: Actor) => Promise<unknown>;
      readonly allowed: readonly Role[];
    }[] = [
      {
        action: 'see the organization',
        run: (a) => getOrganization(context, a, organization_id),
        allowed: ROLES,
      },
      { action: 'see members', run: (a) => listMembers(context, a, organization_id), allowed: ROLES },
      { action: 'see keys', run: (a) => listKeys(context, a, { organization_id }), allowed: ROLES },
      {
        action: 'see revoked keys',
        run: (a) => listRevokedKeys(context, a, { organization_id, cursor: null }),
        allowed: ROLES,
      },
      { action: 'see keys of a project', run: (a) => listKeys(context, a, { project_id }), allowed: ROLES },
      { action: 'see projects', run: (a) => listProjects(context, a, { organization_id }), allowed: ROLES },
      {
        action: 'create a key',
        run: (a) => createKey(context, a, { project_id, name: 'k' }),
        allowed: ['owner', 'admin', 'developer'],
      },
      {
        action: 'revoke a key of someone else',
        run: async (a) =>
          revokeKey(context, a, (await createKey(context, OPERATOR, { project_id, name: 'k' })).id),
        allowed: ['owner', 'admin'],
      },
      {
        action: 'create a project',
        run: (a) => createProject(context, a, { organization_id, name: 'p' }),
        allowed: ['owner', 'admin'],
      },
      {
        action: 'set a spend limit',
        run: (a) => changeProject(context, a, { project_id, spend_limit_micros: 1 }),
        allowed: ['owner', 'admin'],
      },
      {
        action: 'archive a project',
        run: (a) => archiveProject(context, a, project_id),
        allowed: ['owner', 'admin'],
      },
      {
        action: 'rename the organization',
        run: (a) => renameOrganization(context, a, { organization_id, name: 'New' }),
        allowed: ['owner', 'admin'],
      },
      {
        action: 'add a member',
        run: async (a) =>
          addMember(context, a, { organization_id, user_id: (await newUser('new')).user_id, role: 'reader' }),
        allowed: ['owner', 'admin'],
      },
      {
        action: 'add an owner',
        run: async (a) =>
          addMember(context, a, { organization_id, user_id: (await newUser('new')).user_id, role: 'owner' }),
        allowed: ['owner'],
      },
      {
        action: 'set dedicated limits',
        run: (a) => setTierSettings(context, a, organization_id, {}),
        allowed: [],
      },
    ];
    for (const { action, run, allowed } of rows) {
      for (const who of [...ROLES, 'stranger'] as const) {
        const allows = who !== 'stranger' && allowed.includes(who);
        test(`${who} ${allows ? 'may' : 'may not'} ${action}`, async () => {
          const actor = (await everyone())[who];
          const refusal =
            who === 'stranger' && action !== 'set dedicated limits' ? 'not_found' : 'permission_denied';
          expect(await outcome(() => run(actor))).toBe(allows ? 'ok' : refusal);
        });
      }
      test(`the operator may ${action}`, async () => {
        await everyone();
        expect(await outcome(() => run(OPERATOR))).toBe('ok');
      });
    }

    for (const role of ROLES) {
      test(`who made a key may revoke it as ${role}`, async () => {
        const users = await everyone();
        const { id } = await createKey(context, users.developer, { project_id, name: 'mine' });
        if (role !== 'developer') {
          await changeRole(context, OPERATOR, { organization_id, user_id: users.developer.user_id, role });
        }
        expect(await outcome(() => revokeKey(context, users.developer, id))).toBe('ok');
      });
    }

    test('who left the organization may not even revoke their own key', async () => {
      const users = await everyone();
      const { id } = await createKey(context, users.developer, { project_id, name: 'mine' });
      await removeMember(context, users.developer, { organization_id, user_id: users.developer.user_id });
      expect(await outcome(() => revokeKey(context, users.developer, id))).toBe('not_found');
      expect(await listKeys(context, users.developer)).toEqual([]);
    });

    test('a user sees their own organizations, projects and keys only', async () => {
      const users = await everyone();
      await createKey(context, OPERATOR, { project_id, name: 'k' });
      expect((await listKeys(context, users.reader)).map((key) => key.name)).toEqual(['k']);
      expect(await listProjects(context, users.reader)).toHaveLength(2);
      expect(await listOrganizations(context, users.reader)).toHaveLength(2);
      expect(await listKeys(context, users.stranger)).toEqual([]);
      expect(await listProjects(context, users.stranger)).toHaveLength(1);
      expect(await listOrganizations(context, users.stranger)).toHaveLength(1);
    });
  });

  describe('members', () => {
    const roleChanges: readonly (readonly [by: Role, of: Role, to: Role, outcome: string])[] = [
      ['owner', 'admin', 'owner', 'ok'],
      ['owner', 'reader', 'admin', 'ok'],
      ['admin', 'developer', 'admin', 'ok'],
      ['admin', 'admin', 'reader', 'ok'],
      ['admin', 'owner', 'reader', 'permission_denied'],
      ['admin', 'admin', 'owner', 'permission_denied'],
      ['developer', 'reader', 'developer', 'permission_denied'],
      ['billing', 'billing', 'owner', 'permission_denied'],
      ['reader', 'reader', 'admin', 'permission_denied'],
      ['owner', 'owner', 'reader', 'last_owner'],
    ];
    for (const [by, of, to, expected] of roleChanges) {
      test(`${by} changes ${of} to ${to}: ${expected}`, async () => {
        const users = await everyone();
        const given = { organization_id, user_id: users[of].user_id, role: to };
        expect(await outcome(() => changeRole(context, users[by], given))).toBe(expected);
      });
    }

    const removals: readonly (readonly [by: Role, of: Role, outcome: string])[] = [
      ['owner', 'admin', 'ok'],
      ['admin', 'reader', 'ok'],
      ['admin', 'owner', 'permission_denied'],
      ['developer', 'reader', 'permission_denied'],
      ['reader', 'reader', 'ok'],
      ['owner', 'owner', 'last_owner'],
    ];
    for (const [by, of, expected] of removals) {
      test(`${by} removes ${by === of ? 'themselves' : of}: ${expected}`, async () => {
        const users = await everyone();
        const ref = { organization_id, user_id: users[of].user_id };
        expect(await outcome(() => removeMember(context, users[by], ref))).toBe(expected);
      });
    }

    test('not even the operator takes the last owner away', async () => {
      const { user_id } = (await everyone()).owner;
      expect(await outcome(() => removeMember(context, OPERATOR, { organization_id, user_id }))).toBe(
        'last_owner',
      );
      expect(
        await outcome(() => changeRole(context, OPERATOR, { organization_id, user_id, role: 'admin' })),
      ).toBe('last_owner');
    });

    test('the first member of an organization that the operator made must be an owner', async () => {
      const { user_id } = await newUser('ada');
      expect(
        await outcome(() => addMember(context, OPERATOR, { organization_id, user_id, role: 'admin' })),
      ).toBe('invalid_role');
      expect(
        await outcome(() => addMember(context, OPERATOR, { organization_id, user_id, role: 'owner' })),
      ).toBe('ok');
    });

    test('a user is a member once, and must exist', async () => {
      const users = await everyone();
      const add = (user_id: string) =>
        outcome(() => addMember(context, OPERATOR, { organization_id, user_id, role: 'reader' }));
      expect(await add(users.reader.user_id)).toBe('already_member');
      expect(await add('user_nobody')).toBe('not_found');
      const ref = { organization_id, user_id: users.stranger.user_id };
      expect(await outcome(() => removeMember(context, OPERATOR, ref))).toBe('not_found');
      expect(await outcome(() => changeRole(context, OPERATOR, { ...ref, role: 'admin' }))).toBe('not_found');
    });
  });

  describe('projects', () => {
    test('two active ones of an organization cannot have the same name; an archived one frees it', async () => {
      const create = () => createProject(context, OPERATOR, { organization_id, name: 'Triage' });
      const { id } = await create();
      expect(await outcome(create)).toBe('name_taken');
      await archiveProject(context, OPERATOR, id);
      expect(await outcome(create)).toBe('ok');
      const other = await createOrganization(context, OPERATOR, { name: 'Other' });
      expect(
        await outcome(() => createProject(context, OPERATOR, { organization_id: other.id, name: 'Triage' })),
      ).toBe('ok');
    });

    test('revoked keys are read page by page, last revoked first, each once and none of another', async () => {
      const other = await createOrganization(context, OPERATOR, { name: 'Other' });
      const elsewhere = await createKey(context, OPERATOR, {
        project_id: other.default_project_id,
        name: 'k',
      });
      await revokeKey(context, OPERATOR, elsewhere.id);
      await createKey(context, OPERATOR, { project_id, name: 'active' });
      const revoked_times: number[] = [];
      for (let number = 0; number < 2 * REVOKED_KEYS_PAGE_MAX + 1; number++) {
        const { id } = await createKey(context, OPERATOR, { project_id, name: 'k' });
        // Several end in the same millisecond, and pages must not part between them.
        if (number % 7 === 0) clock.advance(1);
        revoked_times.unshift((await revokeKey(context, OPERATOR, id)).revoked_at_ms);
      }
      const pages = [await listRevokedKeys(context, OPERATOR, { organization_id, cursor: null })];
      for (let cursor = pages[0]?.next ?? null; cursor !== null; cursor = pages.at(-1)?.next ?? null) {
        pages.push(await listRevokedKeys(context, OPERATOR, { organization_id, cursor }));
      }
      expect(pages.map(({ items }) => items.length)).toEqual([
        REVOKED_KEYS_PAGE_MAX,
        REVOKED_KEYS_PAGE_MAX,
        1,
      ]);
      const all = pages.flatMap(({ items }) => items);
      expect(all.map((key) => key.revoked_at_ms)).toEqual(revoked_times);
      expect(new Set(all.map((key) => key.id)).size).toBe(all.length);
      expect(all.map((key) => key.id)).not.toContain(elsewhere.id);
    });

    test('archiving revokes the keys of the project, and of no other', async () => {
      const other = await createProject(context, OPERATOR, { organization_id, name: 'Other' });
      const [first, second, kept] = [
        await createKey(context, OPERATOR, { project_id, name: 'first' }),
        await createKey(context, OPERATOR, { project_id, name: 'second' }),
        await createKey(context, OPERATOR, { project_id: other.id, name: 'kept' }),
      ];
      const { revoked_at_ms } = await revokeKey(context, OPERATOR, first.id);
      clock.advance(1_000);
      await archiveProject(context, OPERATOR, project_id);
      expect((await listKeys(context, OPERATOR)).map((key) => key.id)).toEqual([kept.id]);
      const revoked = await listKeys(context, OPERATOR, { revoked: true });
      expect(new Map(revoked.map((key) => [key.id, key.revoked_at_ms]))).toEqual(
        new Map([
          [first.id, revoked_at_ms],
          [second.id, clock.now_ms()],
        ]),
      );
      const directory = new KeyDirectory(context.store.keys, clock);
      expect(await directory.authenticate(second.key)).toBeNull();
      expect((await directory.authenticate(kept.key))?.key_id).toBe(kept.id);
    });

    test('an archived one takes no key and no limit, and archiving it again changes nothing', async () => {
      const archived = await archiveProject(context, OPERATOR, project_id);
      clock.advance(1_000);
      expect(await archiveProject(context, OPERATOR, project_id)).toEqual(archived);
      expect(await outcome(() => createKey(context, OPERATOR, { project_id, name: 'k' }))).toBe(
        'project_archived',
      );
      expect(
        await outcome(() => changeProject(context, OPERATOR, { project_id, spend_limit_micros: 1 })),
      ).toBe('project_archived');
      expect(await listProjects(context, OPERATOR, { organization_id })).toEqual([]);
      expect(await listProjects(context, OPERATOR, { organization_id, archived: true })).toMatchObject([
        archived,
      ]);
    });

    test('the spend limit can be set, be zero, and be taken away', async () => {
      for (const spend_limit_micros of [5_000_000, 0, null]) {
        expect(await changeProject(context, OPERATOR, { project_id, spend_limit_micros })).toMatchObject({
          spend_limit_micros,
        });
      }
      for (const spend_limit_micros of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        expect(
          await outcome(() => changeProject(context, OPERATOR, { project_id, spend_limit_micros })),
        ).toBe('invalid_amount');
      }
    });
  });

  describe('keys', () => {
    test('are listed with their first 12 characters, project, creator and times', async () => {
      const { developer } = await everyone();
      const { id, key, created_at_ms } = await createKey(context, developer, { project_id, name: 'Server' });
      expect(await listKeys(context, developer, { organization_id })).toEqual([
        {
          id,
          name: 'Server',
          display_prefix: key.slice(0, 12),
          organization_id,
          organization_name: 'Acme',
          project_id,
          project_name: 'Default',
          created_by_user_id: developer.user_id,
          created_by_name: 'developer',
          created_at_ms,
          last_used_at_ms: null,
          revoked_at_ms: null,
          expires_at_ms: null,
          monthly_limit_micros: null,
          spent_this_month_micros: 0,
        },
      ]);
    });

    test('work at once and are never stored: no row has the secret', async () => {
      const { key, id } = await createKey(context, OPERATOR, { project_id, name: 'Server' });
      expect((await new KeyDirectory(context.store.keys, clock).authenticate(key))?.key_id).toBe(id);
      const stored = JSON.stringify(await database.everything());
      expect(stored).toContain(id);
      expect(stored).not.toContain(key.slice(0, 16));
    });

    test('revoking is permanent and keeps its first time', async () => {
      const { id } = await createKey(context, OPERATOR, { project_id, name: 'Server' });
      const first = await revokeKey(context, OPERATOR, id);
      clock.advance(1_000);
      expect(await revokeKey(context, OPERATOR, id)).toEqual(first);
      expect(await outcome(() => revokeKey(context, OPERATOR, 'key_none'))).toBe('not_found');
    });

    test(`an organization has at most ${ACTIVE_KEYS_MAX} active ones over all its projects`, async () => {
      const other = await createProject(context, OPERATOR, { organization_id, name: 'Other' });
      const create = (index: number) =>
        createKey(context, OPERATOR, {
          project_id: index % 2 === 0 ? project_id : other.id,
          name: `k${index}`,
        });
      const keys = await Promise.all(Array.from({ length: ACTIVE_KEYS_MAX }, (_, index) => create(index)));
      expect(await outcome(() => create(0))).toBe('too_many_keys');
      const elsewhere = (await createOrganization(context, OPERATOR, { name: 'Other' })).default_project_id;
      expect(await outcome(() => createKey(context, OPERATOR, { project_id: elsewhere, name: 'k' }))).toBe(
        'ok',
      );
      await revokeKey(context, OPERATOR, keys[0]?.id ?? '');
      expect(await outcome(() => create(0))).toBe('ok');
      expect(await outcome(() => create(0))).toBe('too_many_keys');
      await archiveProject(context, OPERATOR, other.id);
      expect(await outcome(() => create(0))).toBe('ok');
    });
  });

  describe('dedicated limits', () => {
    test('replace only what they set, and null puts the tier’s value back', async () => {
      await setTierSettings(context, OPERATOR, organization_id, {
        requests_per_minute: 9,
        tokens_per_minute: 8,
      });
      expect(
        await setTierSettings(context, OPERATOR, organization_id, {
          requests_per_minute: null,
          top_up_max_micros: 9e9,
        }),
      ).toMatchObject({
        requests_per_minute: null,
        tokens_per_minute: 8,
        questions_per_request: null,
        top_up_max_micros: 9e9,
      });
    });

    for (const settings of [
      { minimum_tier: 6 },
      { minimum_tier: -1 },
      { requests_per_minute: 0 },
      { tokens_per_minute: 1.5 },
      { questions_per_request: Number.NaN },
      { top_up_max_micros: 4_999_999 },
    ]) {
      test(`${JSON.stringify(settings)} is refused`, async () => {
        expect(await outcome(() => setTierSettings(context, OPERATOR, organization_id, settings))).toBe(
          'invalid_limit',
        );
      });
    }

    test('are for an organization that exists', async () => {
      expect(await outcome(() => setTierSettings(context, OPERATOR, 'org_none', { minimum_tier: 1 }))).toBe(
        'not_found',
      );
    });
  });
});

test('the secret of a key is in no byte of SQLite’s file', async () => {
  const file = temporaryDatabase();
  const { store } = contextOn(file.db);
  const own = { store, clock: new TestClock(), identifiers: randomIdentifiers };
  const { default_project_id } = await createOrganization(own, OPERATOR, { name: 'Acme' });
  const { key, id } = await createKey(own, OPERATOR, { project_id: default_project_id, name: 'Server' });
  file.db.$client.run('PRAGMA wal_checkpoint(TRUNCATE)');
  const bytes = readFileSync(file.path);
  expect([bytes.includes(id), bytes.includes(key.slice(0, 16))]).toEqual([true, false]);
  file.remove();
});
