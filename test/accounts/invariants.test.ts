import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { AccountError } from '../../src/access/account-error.ts';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { KeyDirectory } from '../../src/accounts/key-directory.ts';
import { createKey, revokeKey } from '../../src/accounts/keys.ts';
import { addMember, changeRole, removeMember } from '../../src/accounts/members.ts';
import { archiveProject, createProject } from '../../src/accounts/projects.ts';
import { signUp } from '../../src/accounts/users.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { allows, ROLES, type Role } from '../../src/contract/roles.ts';
import { DATABASES } from '../store/databases.ts';
import { TestClock } from './support.ts';

const USERS = 4;
/** Few enough for collisions; -1 is the operator. */
const who = fc.integer({ min: -1, max: USERS - 1 });
const user = fc.nat({ max: USERS - 1 });
const role = fc.constantFrom(...ROLES);
const pick = fc.nat({ max: 9 });

const command = fc.oneof(
  fc.record({ do: fc.constant('add' as const), by: who, user, role }),
  fc.record({ do: fc.constant('change' as const), by: who, user, role }),
  fc.record({ do: fc.constant('remove' as const), by: who, user }),
  fc.record({ do: fc.constant('create_project' as const), by: who, pick }),
  fc.record({ do: fc.constant('archive' as const), by: who, pick }),
  fc.record({ do: fc.constant('create_key' as const), by: who, pick }),
  fc.record({ do: fc.constant('revoke' as const), by: who, pick }),
);

/** The model's state of a key. */
interface ModelKey {
  readonly id: string;
  readonly secret: string;
  readonly project: number;
  readonly creator: number;
  active: boolean;
}

/** Histories on PostgreSQL are fewer: each of their steps goes over the wire and to the disk. */
const HISTORIES = { SQLite: 40, PostgreSQL: 8 };

describe.each(DATABASES)('$name', ({ name, open }) => {
  test('roles, owners, projects and keys agree with a plain model after every step of a random history', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 10, maxLength: 60, size: 'max' }), async (commands) => {
        const database = await open();
        try {
          const clock = new TestClock();
          const context: AccountContext = {
            store: database.store,
            clock,
            identifiers: randomIdentifiers,
          };
          const signedUp = await Promise.all(
            Array.from({ length: USERS }, (_, index) =>
              signUp(context, { email: `u${index}@example.com`, name: `u${index}` }),
            ),
          );
          const organization_id = signedUp[0]?.organization.id ?? '';
          const userId = (index: number) => signedUp[index]?.user.id ?? '';

          // Two owners and an admin, so that most histories soon meet what only owners may do.
          const roles = new Map<number, Role>([
            [0, 'owner'],
            [1, 'owner'],
            [2, 'admin'],
          ]);
          await addMember(context, OPERATOR, { organization_id, user_id: userId(1), role: 'owner' });
          await addMember(context, OPERATOR, { organization_id, user_id: userId(2), role: 'admin' });
          const projectIds = [signedUp[0]?.organization.default_project_id ?? ''];
          const archived = new Set<number>();
          const names = new Map<number, number>();
          const keys: ModelKey[] = [];

          const owners = () => [...roles.values()].filter((held) => held === 'owner').length;
          const roleOf = (by: number) => (by < 0 ? 'operator' : roles.get(by));
          const may = (by: number, permission: Parameters<typeof allows>[1]) => {
            const held = roleOf(by);
            return held === 'operator' || (held !== undefined && allows(held, permission));
          };
          const mayTouchOwners = (by: number) => by < 0 || roles.get(by) === 'owner';

          const attempt = async (expected: boolean, work: () => Promise<unknown>) => {
            let done = true;
            try {
              await work();
            } catch (error) {
              if (!(error instanceof AccountError)) throw error;
              done = false;
            }
            expect(done).toBe(expected);
          };

          for (const step of commands) {
            clock.advance(1);
            const actor: Actor = step.by < 0 ? OPERATOR : { kind: 'user', user_id: userId(step.by) };
            switch (step.do) {
              case 'add': {
                const allowed =
                  may(step.by, 'manage_members') &&
                  (step.role !== 'owner' || mayTouchOwners(step.by)) &&
                  !roles.has(step.user);
                await attempt(allowed, () =>
                  addMember(context, actor, { organization_id, user_id: userId(step.user), role: step.role }),
                );
                if (allowed) roles.set(step.user, step.role);
                break;
              }
              case 'change': {
                const before = roles.get(step.user);
                const touchesOwner = before === 'owner' || step.role === 'owner';
                const allowed =
                  may(step.by, 'manage_members') &&
                  before !== undefined &&
                  (!touchesOwner || mayTouchOwners(step.by)) &&
                  !(before === 'owner' && step.role !== 'owner' && owners() === 1);
                await attempt(allowed, () =>
                  changeRole(context, actor, {
                    organization_id,
                    user_id: userId(step.user),
                    role: step.role,
                  }),
                );
                if (allowed) roles.set(step.user, step.role);
                break;
              }
              case 'remove': {
                const before = roles.get(step.user);
                const allowed =
                  before !== undefined &&
                  (step.by === step.user || may(step.by, 'manage_members')) &&
                  (before !== 'owner' || mayTouchOwners(step.by)) &&
                  !(before === 'owner' && owners() === 1);
                await attempt(allowed, () =>
                  removeMember(context, actor, { organization_id, user_id: userId(step.user) }),
                );
                if (allowed) roles.delete(step.user);
                break;
              }
              case 'create_project': {
                const holder = names.get(step.pick);
                const allowed =
                  may(step.by, 'manage_projects') && (holder === undefined || archived.has(holder));
                await attempt(allowed, async () => {
                  const { id } = await createProject(context, actor, {
                    organization_id,
                    name: `p${step.pick}`,
                  });
                  names.set(step.pick, projectIds.length);
                  projectIds.push(id);
                });
                break;
              }
              case 'archive': {
                const index = step.pick % projectIds.length;
                const allowed = may(step.by, 'manage_projects');
                await attempt(allowed, async () => {
                  await archiveProject(context, actor, projectIds[index] ?? '');
                });
                if (!allowed) break;
                archived.add(index);
                for (const key of keys) if (key.project === index) key.active = false;
                break;
              }
              case 'create_key': {
                const index = step.pick % projectIds.length;
                await attempt(may(step.by, 'create_keys') && !archived.has(index), async () => {
                  const made = await createKey(context, actor, {
                    project_id: projectIds[index] ?? '',
                    name: 'key',
                  });
                  keys.push({
                    id: made.id,
                    secret: made.key,
                    project: index,
                    creator: step.by,
                    active: true,
                  });
                });
                break;
              }
              case 'revoke': {
                const key = keys[step.pick];
                if (key === undefined) break;
                const isCreator = step.by >= 0 && key.creator === step.by && roles.has(step.by);
                const allowed = may(step.by, 'revoke_any_key') || isCreator;
                await attempt(allowed, async () => {
                  await revokeKey(context, actor, key.id);
                });
                if (allowed) key.active = false;
                break;
              }
            }

            const inOrganization = await context.store.accounts.membersOf(organization_id);
            expect(new Map(inOrganization.map((member) => [member.user_id, member.role]))).toEqual(
              new Map([...roles].map(([index, held]) => [userId(index), held])),
            );
            expect(inOrganization.some((member) => member.role === 'owner')).toBe(true);
            const archivedIds = new Set([...archived].map((index) => projectIds[index] ?? ''));
            for (const is_archived of [true, false]) {
              const filter = { archived: is_archived, month: '2026-01' };
              for (const project of await context.store.accounts.listProjects(filter)) {
                expect(archivedIds.has(project.id)).toBe(is_archived);
              }
            }
            const directory = new KeyDirectory(context.store.keys, clock);
            for (const key of keys) {
              expect((await directory.authenticate(key.secret))?.key_id ?? null).toBe(
                key.active ? key.id : null,
              );
            }
            expect(await database.count('api_keys')).toBe(keys.length);
          }
        } finally {
          await database.close();
        }
      }),
      { numRuns: HISTORIES[name] },
    );
  }, 300_000);
});
