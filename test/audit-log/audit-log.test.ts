import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { eq } from 'drizzle-orm';
import { auditLogEntries, passkeys, users } from '../../db/sqlite/schema.ts';
import { type Actor, OPERATOR } from '../../src/access/actor.ts';
import { deleteAccount } from '../../src/accounts/delete-account.ts';
import { endSignIns } from '../../src/accounts/end-sign-ins.ts';
import {
  acceptInvitation,
  invite,
  resendInvitation,
  revokeInvitation,
} from '../../src/accounts/invitations.ts';
import { createKey, revokeKey, setKeyExpiry, setKeyLimit } from '../../src/accounts/keys.ts';
import { addMember, changeRole, removeMember } from '../../src/accounts/members.ts';
import { createOperator, setOperator } from '../../src/accounts/operators.ts';
import {
  createOrganization,
  renameOrganization,
  setSuspended,
  setTierSettings,
} from '../../src/accounts/organizations.ts';
import { notePasskey } from '../../src/accounts/passkeys.ts';
import { archiveProject, changeProject, createProject } from '../../src/accounts/projects.ts';
import { noteSecondFactor } from '../../src/accounts/second-factors.ts';
import { setCreditAlert } from '../../src/alerts/credit-alert.ts';
import { AUDIT_LOG_ACTIONS, type AuditLogAction, SERVICE_ACTIONS } from '../../src/audit-log/actions.ts';
import { listAuditLog } from '../../src/audit-log/list.ts';
import { seedCatalog } from '../../src/catalog/catalog.ts';
import {
  addModel,
  closeModel,
  drainUpstream,
  openModel,
  removeModel,
  removeModelAlias,
  setModelAlias,
  setModelPrice,
  setModelWeights,
  setUpstreamCalibration,
} from '../../src/catalog/changes.ts';
import { addOwnModel, removeOwnModel } from '../../src/catalog/own-models.ts';
import { applyPaymentReport } from '../../src/payments/apply-event.ts';
import {
  cancelTopUp,
  confirmManualPayment,
  creditByHand,
  refundByHand,
  startTopUp,
} from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import { assignPaymentEvent, dismissPaymentEvent } from '../../src/payments/resolve-event.ts';
import { Reloads } from '../../src/served-models/console-reloads.ts';
import { addEveryone, EVERYONE, newUser, outcome, type Who } from '../accounts/everyone.ts';
import { TestClock, temporaryDatabase } from '../accounts/support.ts';
import { contextOn } from '../support/context.ts';
import { everythingInSqlite } from '../support/everything.ts';

const DOLLARS_10 = 10_000_000;

/** A service with one of everything that can be acted on. */
async function makeWorld() {
  const { db, path, remove } = temporaryDatabase();
  const context = contextOn(db, new TestClock());
  await context.store.transaction(({ catalog }) => seedCatalog(catalog));
  const { id: organization_id, default_project_id: project_id } = await createOrganization(
    context,
    OPERATOR,
    {
      name: 'Acme',
    },
  );
  const everyone = await addEveryone(context, organization_id);
  const member = await newUser(context, 'member');
  await addMember(context, OPERATOR, { organization_id, user_id: member.user_id, role: 'reader' });
  const guest = await newUser(context, 'guest');
  db.update(users).set({ email_verified: true }).where(eq(users.id, guest.user_id)).run();
  const { id: key_id } = await createKey(context, OPERATOR, { project_id, name: 'Key' });
  const invitation = await invite(context, OPERATOR, {
    organization_id,
    email: 'guest@example.com',
    role: 'reader',
  });
  await creditByHand(context, OPERATOR, { organization_id, amount_micros: DOLLARS_10 });
  const pending = await startTopUp(context, OPERATOR, manualProvider, {
    organization_id,
    amount_micros: DOLLARS_10,
  });
  await applyPaymentReport(context, 'paddle', {
    event_id: 'evt_1',
    type: 'transaction.completed',
    occurred_at_ms: 0,
    event: {
      kind: 'completed',
      external_id: 'txn_1',
      amount_micros: DOLLARS_10,
      order: null,
      sold: 'unknown',
    },
  });
  await setModelAlias(context, OPERATOR, { alias: 'latest', model_id: 'decision-1' });
  await addModel(context, OPERATOR, { ...MODEL, id: 'decision-8' });
  db.$client.run('PRAGMA wal_checkpoint(TRUNCATE)');
  const file = readFileSync(path);
  remove();
  return {
    file,
    organization_id,
    project_id,
    everyone,
    member,
    guest,
    key_id,
    invitation,
    payment_id: pending.payment_id,
  };
}

let made: Awaited<ReturnType<typeof makeWorld>> | undefined;

/** The same world each time, in a file of its own. */
async function openWorld() {
  made ??= await makeWorld();
  const { file, ...things } = made;
  const store = temporaryDatabase(file);
  const clock = new TestClock();
  clock.advance(1);
  return { ...store, clock, context: contextOn(store.db, clock), ...things };
}

type World = Awaited<ReturnType<typeof openWorld>>;

const TEMPERATURES = {
  noul: 1,
  choice: [{ most_options: 2, temperature: 1 }],
  score: [{ most_options: 2, temperature: 1 }],
};
const FITTED_ON = { cases_sha256: '0'.repeat(64), records: 1, questions: 1 };
const CALIBRATION = {
  fingerprint: '0'.repeat(64),
  temperatures: { fast: TEMPERATURES, consistent: TEMPERATURES },
  fitted_on: { fast: FITTED_ON, consistent: FITTED_ON },
};
const MODEL = {
  kind: 'decision',
  description: 'Another model.',
  context_tokens: 4_096,
  input_price_micros_per_million_tokens: 1,
} as const;

const TUNING = { base_id: 'decision-1', tuning_sha256: 'd'.repeat(64), tuning: 'none' };

const MANAGERS: readonly Who[] = ['owner', 'admin', 'operator'];
const OPERATORS: readonly Who[] = ['operator'];
const USERS: readonly Who[] = EVERYONE.filter((who) => who !== 'operator');
const MEMBERS: readonly Who[] = USERS.filter((who) => who !== 'stranger');

/** Another owner, so that the owner may leave too. */
function addOwner({ db, member }: World): void {
  db.$client.run("UPDATE members SET role = 'owner' WHERE user_id = ?1", [member.user_id]);
}

/** Makes the actor the user who is invited. */
function giveInvitedAddress({ db, guest }: World, { user_id }: Actor): void {
  db.$client.run('UPDATE users SET email = id WHERE id = ?1', [guest.user_id]);
  if (user_id !== null) {
    db.$client.run("UPDATE users SET email = 'guest@example.com', email_verified = 1 WHERE id = ?1", [
      user_id,
    ]);
  }
}

interface TriedAct {
  /** Prepares the world before the act. */
  readonly prepare?: (world: World, actor: Actor) => unknown;
  readonly act: (world: World, actor: Actor) => Promise<unknown>;
  /** Who may do it. */
  readonly may: readonly Who[];
  /** The other entries of the audit log for it. */
  readonly besides?: readonly AuditLogAction[];
  /** True if it is about the service or an account instead of the organization. */
  readonly is_of_service?: true;
}

/** An act of every kind; for a kind that is missing here, nothing compiles. */
const ACTS: Record<AuditLogAction, TriedAct> = {
  'organization.create': {
    act: ({ context }, actor) => createOrganization(context, actor, { name: 'New' }),
    may: EVERYONE,
  },
  'organization.rename': {
    act: ({ context, organization_id }, actor) =>
      renameOrganization(context, actor, { organization_id, name: 'New' }),
    may: MANAGERS,
  },
  'organization.limits': {
    act: ({ context, organization_id }, actor) =>
      setTierSettings(context, actor, organization_id, { minimum_tier: 3 }),
    may: OPERATORS,
  },
  'organization.credit_alert': {
    act: ({ context, organization_id }, actor) =>
      setCreditAlert(context, actor, { organization_id, credit_alert_micros: 5_000_000 }),
    may: [...MANAGERS, 'billing'],
  },
  'organization.suspend': {
    act: ({ context, organization_id }, actor) =>
      setSuspended(context, actor, { organization_id, is_suspended: true }),
    may: OPERATORS,
  },
  'organization.resume': {
    prepare: ({ db }) => db.$client.run('UPDATE organizations SET suspended_at_ms = 1'),
    act: ({ context, organization_id }, actor) =>
      setSuspended(context, actor, { organization_id, is_suspended: false }),
    may: OPERATORS,
  },
  'organization.close': {
    prepare: addOwner,
    act: ({ context }, actor) => deleteAccount(context, actor),
    may: USERS,
    besides: ['project.archive', 'account.delete', 'member.leave'],
  },
  'account.delete': {
    prepare: addOwner,
    act: ({ context }, actor) => deleteAccount(context, actor),
    may: USERS,
    besides: ['project.archive', 'organization.close', 'member.leave'],
    is_of_service: true,
  },
  'project.create': {
    act: ({ context, organization_id }, actor) =>
      createProject(context, actor, { organization_id, name: 'New' }),
    may: MANAGERS,
  },
  'project.rename': {
    act: ({ context, project_id }, actor) => changeProject(context, actor, { project_id, name: 'New' }),
    may: MANAGERS,
  },
  'project.archive': {
    act: ({ context, project_id }, actor) => archiveProject(context, actor, project_id),
    may: MANAGERS,
  },
  'project.spend_limit': {
    act: ({ context, project_id }, actor) =>
      changeProject(context, actor, { project_id, spend_limit_micros: 5 }),
    may: MANAGERS,
  },
  'key.create': {
    act: ({ context, project_id }, actor) => createKey(context, actor, { project_id, name: 'New' }),
    may: [...MANAGERS, 'developer'],
  },
  'key.expiry': {
    act: ({ context, key_id }, actor) => setKeyExpiry(context, actor, { key_id, expires_at_ms: null }),
    may: MANAGERS,
  },
  'key.spend_limit': {
    act: ({ context, key_id }, actor) => setKeyLimit(context, actor, { key_id, monthly_limit_micros: 5 }),
    may: MANAGERS,
  },
  'key.revoke': {
    act: ({ context, key_id }, actor) => revokeKey(context, actor, key_id),
    may: MANAGERS,
  },
  'member.add': {
    act: ({ context, organization_id, guest }, actor) =>
      addMember(context, actor, { organization_id, user_id: guest.user_id, role: 'reader' }),
    may: MANAGERS,
  },
  'member.role': {
    act: ({ context, organization_id, member }, actor) =>
      changeRole(context, actor, { organization_id, user_id: member.user_id, role: 'billing' }),
    may: MANAGERS,
  },
  'member.remove': {
    act: ({ context, organization_id, member }, actor) =>
      removeMember(context, actor, { organization_id, user_id: member.user_id }),
    may: MANAGERS,
  },
  'member.leave': {
    prepare: addOwner,
    act: ({ context, organization_id }, actor) =>
      removeMember(context, actor, { organization_id, user_id: actor.user_id ?? 'user_none' }),
    may: MEMBERS,
  },
  'invitation.create': {
    act: ({ context, organization_id }, actor) =>
      invite(context, actor, { organization_id, email: 'new@example.com', role: 'reader' }),
    may: MANAGERS,
  },
  'invitation.resend': {
    act: ({ context, organization_id, invitation }, actor) =>
      resendInvitation(context, actor, { organization_id, invitation_id: invitation.id }),
    may: MANAGERS,
  },
  'invitation.revoke': {
    act: ({ context, organization_id, invitation }, actor) =>
      revokeInvitation(context, actor, { organization_id, invitation_id: invitation.id }),
    may: MANAGERS,
  },
  'invitation.accept': {
    prepare: giveInvitedAddress,
    act: ({ context, invitation }, actor) => acceptInvitation(context, actor, invitation.token),
    // Everyone else is a member already.
    may: ['stranger'],
  },
  'second_factor.add': {
    act: ({ context }, actor) => noteSecondFactor(context, actor, 'second_factor.add'),
    may: USERS,
    is_of_service: true,
  },
  'second_factor.recovery_codes': {
    act: ({ context }, actor) => noteSecondFactor(context, actor, 'second_factor.recovery_codes'),
    may: USERS,
    is_of_service: true,
  },
  'second_factor.recover': {
    act: ({ context }, actor) => noteSecondFactor(context, actor, 'second_factor.recover'),
    may: USERS,
    is_of_service: true,
  },
  'second_factor.remove': {
    prepare: ({ db, member }) =>
      db.update(users).set({ has_second_factor: true }).where(eq(users.id, member.user_id)).run(),
    act: ({ context, member }, actor) => endSignIns(context, actor, member.user_id),
    may: OPERATORS,
    is_of_service: true,
  },
  'passkey.add': {
    act: ({ context }, actor) =>
      notePasskey(context, actor, { action: 'passkey.add', passkey_id: 'passkey_1' }),
    may: USERS,
    is_of_service: true,
  },
  'passkey.remove': {
    prepare: ({ db, member }) => db.insert(passkeys).values(passkeyOf(member.user_id)).run(),
    act: ({ context, member }, actor) => endSignIns(context, actor, member.user_id),
    may: OPERATORS,
    is_of_service: true,
  },
  'operator.grant': {
    act: ({ context, guest }, actor) =>
      setOperator(context, actor, { user_id: guest.user_id, is_operator: true }),
    may: OPERATORS,
    is_of_service: true,
  },
  'operator.withdraw': {
    prepare: ({ db, guest }) =>
      db.$client.run('UPDATE users SET is_operator = 1 WHERE id = ?1', [guest.user_id]),
    act: ({ context, guest }, actor) =>
      setOperator(context, actor, { user_id: guest.user_id, is_operator: false }),
    may: OPERATORS,
    is_of_service: true,
  },
  'top_up.start': {
    act: ({ context, organization_id }, actor) =>
      startTopUp(context, actor, manualProvider, { organization_id, amount_micros: DOLLARS_10 }),
    may: [...MANAGERS, 'billing'],
  },
  'top_up.cancel': {
    act: ({ context, organization_id, payment_id }, actor) =>
      cancelTopUp(context, actor, { organization_id, payment_id }),
    may: [...MANAGERS, 'billing'],
  },
  'top_up.confirm': {
    act: ({ context, payment_id }, actor) => confirmManualPayment(context, actor, payment_id),
    may: OPERATORS,
  },
  'credit.enter': {
    act: ({ context, organization_id }, actor) =>
      creditByHand(context, actor, { organization_id, amount_micros: DOLLARS_10 }),
    may: OPERATORS,
  },
  'credit.refund': {
    act: ({ context, organization_id }, actor) =>
      refundByHand(context, actor, { organization_id, amount_micros: 5 }),
    may: OPERATORS,
  },
  'payment_event.assign': {
    act: ({ context, organization_id }, actor) =>
      assignPaymentEvent(context, actor, { event_id: 'evt_1', organization_id }),
    may: OPERATORS,
  },
  'payment_event.dismiss': {
    act: ({ context }, actor) => dismissPaymentEvent(context, actor, 'evt_1'),
    may: OPERATORS,
    is_of_service: true,
  },
  'own_model.add': {
    act: ({ context, organization_id }, actor) =>
      addOwnModel(context, actor, { organization_id, name: 'support-1', ...TUNING }),
    may: MANAGERS,
  },
  'own_model.remove': {
    prepare: ({ db, organization_id }) =>
      db.$client.run("UPDATE models SET organization_id = ?1 WHERE id = 'decision-8'", [organization_id]),
    act: ({ context, organization_id }, actor) =>
      removeOwnModel(context, actor, { organization_id, id: 'decision-8' }),
    may: MANAGERS,
  },
  'model.add': {
    act: ({ context }, actor) => addModel(context, actor, { ...MODEL, id: 'decision-9' }),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.open': {
    act: ({ context }, actor) => openModel(context, actor, 'decision-1'),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.close': {
    act: ({ context }, actor) => closeModel(context, actor, 'decision-1'),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.remove': {
    act: ({ context }, actor) => removeModel(context, actor, 'decision-8'),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.drain': {
    prepare: ({ db }) =>
      db.$client.run("UPDATE models SET upstreams = ?1 WHERE id = 'decision-1'", [
        JSON.stringify({ addresses: ['http://10.0.0.2:8080'], draining: [] }),
      ]),
    act: ({ context }, actor) =>
      drainUpstream(context, actor, 'decision-1', { address: 'http://10.0.0.2:8080', is_draining: true }),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.calibrate': {
    prepare: ({ db }) =>
      db.$client.run("UPDATE models SET upstreams = ?1 WHERE id = 'decision-1'", [
        JSON.stringify({ protocol: 'systemone', addresses: ['http://10.0.0.2:8080'], model: null }),
      ]),
    act: async ({ context }, actor) => {
      const upstreams = (await context.store.catalog.findModel('decision-1'))?.upstreams ?? null;
      return await setUpstreamCalibration(context, actor, { id: 'decision-1', upstreams }, CALIBRATION);
    },
    may: OPERATORS,
    is_of_service: true,
  },
  'model.price': {
    act: ({ context }, actor) => setModelPrice(context, actor, 'decision-1', 7),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.reload': {
    act: ({ context }, actor) => new Reloads(context, () => Promise.resolve()).begin(actor, 'decision-1'),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.weights': {
    act: async ({ context }, actor) => {
      const before = await context.store.catalog.findModel('decision-1');
      if (before === undefined) throw new Error('there is no decision-1');
      const given = { weights: '/new.gguf', weights_sha256: null, profile: null };
      return await setModelWeights(context, actor, before, given);
    },
    may: OPERATORS,
    is_of_service: true,
  },
  'model.alias': {
    act: ({ context }, actor) => setModelAlias(context, actor, { alias: 'newest', model_id: 'decision-1' }),
    may: OPERATORS,
    is_of_service: true,
  },
  'model.unalias': {
    act: ({ context }, actor) => removeModelAlias(context, actor, 'latest'),
    may: OPERATORS,
    is_of_service: true,
  },
};

const KINDS = Object.keys(AUDIT_LOG_ACTIONS).filter((name): name is AuditLogAction =>
  Object.hasOwn(ACTS, name),
);

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.remove());

const entries = () => world.db.select().from(auditLogEntries).all();

describe.each(KINDS)('%s', (action) => {
  const { prepare, act, may, besides = [], is_of_service } = ACTS[action];

  test.each(EVERYONE)(`by %s leaves an entry exactly where it is allowed`, async (who) => {
    const actor = world.everyone[who];
    prepare?.(world, actor);
    const before = entries();
    const result = await outcome(() => act(world, actor));
    expect(result === 'ok').toBe(may.includes(who));
    const written = entries().slice(before.length);
    if (result !== 'ok') {
      expect(written).toEqual([]);
      return;
    }
    const own = written.filter((entry) => entry.action === action);
    expect(own).toHaveLength(1);
    expect(own[0]).toMatchObject({
      user_id: actor.user_id,
      object_kind: AUDIT_LOG_ACTIONS[action].object,
      created_at_ms: world.clock.now_ms(),
    });
    expect(own[0]?.organization_id === null).toBe(is_of_service === true);
    expect(SERVICE_ACTIONS.includes(action)).toBe(is_of_service === true);
    expect(JSON.parse(own[0]?.detail ?? '{}').by_operator).toBe(who === 'operator' ? true : undefined);
    const others = written.filter((entry) => entry.action !== action).map((entry) => entry.action);
    expect(others.filter((other) => !besides.some((name) => name === other))).toEqual([]);
  });

  test('is not done when its entry cannot be written', async () => {
    const actor = world.everyone[may[0] ?? 'operator'];
    prepare?.(world, actor);
    const before = everythingInSqlite(world.db);
    world.db.$client.run(
      "CREATE TEMP TRIGGER refuse BEFORE INSERT ON trail_entries BEGIN SELECT RAISE(ABORT, 'no entry'); END",
    );
    await expect(act(world, actor)).rejects.toThrow('no entry');
    expect(everythingInSqlite(world.db)).toEqual(before);
  });
});

test('an entry does not outlive a change that is rolled back', async () => {
  const before = everythingInSqlite(world.db);
  world.db.$client.run(
    "CREATE TEMP TRIGGER refuse AFTER INSERT ON trail_entries BEGIN SELECT RAISE(ABORT, 'later'); END",
  );
  const { context, organization_id } = world;
  await expect(renameOrganization(context, OPERATOR, { organization_id, name: 'New' })).rejects.toThrow();
  world.db.$client.run('DROP TRIGGER refuse');
  world.db.$client.run(
    "CREATE TEMP TRIGGER refuse AFTER UPDATE ON projects BEGIN SELECT RAISE(ABORT, 'later'); END",
  );
  await expect(archiveProject(context, OPERATOR, world.project_id)).rejects.toThrow();
  expect(everythingInSqlite(world.db)).toEqual(before);
});

test('what changes nothing leaves no entry', async () => {
  const { context, organization_id, project_id, member, key_id } = world;
  await revokeKey(context, OPERATOR, key_id);
  const before = entries().length;
  await renameOrganization(context, OPERATOR, { organization_id, name: 'Acme' });
  await changeProject(context, OPERATOR, { project_id, name: 'Default' });
  await changeProject(context, OPERATOR, { project_id, spend_limit_micros: null });
  await changeRole(context, OPERATOR, { organization_id, user_id: member.user_id, role: 'reader' });
  await revokeKey(context, OPERATOR, key_id);
  await setSuspended(context, OPERATOR, { organization_id, is_suspended: false });
  await setTierSettings(context, OPERATOR, organization_id, {});
  await setOperator(context, OPERATOR, { user_id: member.user_id, is_operator: false });
  expect(entries()).toHaveLength(before);
});

test('an operator who is created is one by an entry of the service', async () => {
  const { user } = await createOperator(world.context, OPERATOR, { email: 'new@example.com', name: 'New' });
  expect(entries().at(-1)).toMatchObject({
    action: 'operator.grant',
    organization_id: null,
    object_id: user.id,
  });
});

test('entries of one action are found alone', async () => {
  const { context, organization_id } = world;
  await createProject(context, OPERATOR, { organization_id, name: 'One' });
  await createKey(context, OPERATOR, { project_id: world.project_id, name: 'k' });
  await createProject(context, OPERATOR, { organization_id, name: 'Two' });
  const found = await listAuditLog(context, OPERATOR, {
    organization_id,
    action: 'project.create',
    limit: 1,
  });
  expect(found.items.map(({ object_name }) => object_name)).toEqual(['Two']);
  const rest = await listAuditLog(context, OPERATOR, {
    organization_id,
    action: 'project.create',
    cursor: found.next,
  });
  expect(rest.items.map(({ object_name }) => object_name)).toEqual(['One']);
});

test('neither a key, a link nor an address is in the audit log', async () => {
  const { key } = await createKey(world.context, world.everyone.owner, {
    project_id: world.project_id,
    name: 'k',
  });
  const text = JSON.stringify(entries());
  for (const secret of [key, world.invitation.token, 'example.com']) expect(text).not.toContain(secret);
});

describe('the list', () => {
  const read = (who: Who, given: { cursor?: number | null; limit?: number } = {}) =>
    listAuditLog(world.context, world.everyone[who], { organization_id: world.organization_id, ...given });

  test.each(EVERYONE)('%s: owners and the operator see it', async (who) => {
    const may = who === 'owner' || who === 'operator';
    expect(await outcome(() => read(who))).toBe(
      may ? 'ok' : who === 'stranger' ? 'not_found' : 'permission_denied',
    );
    expect(
      await outcome(() => listAuditLog(world.context, world.everyone[who], { organization_id: null })),
    ).toBe(who === 'operator' ? 'ok' : 'permission_denied');
  });

  test('is newest first, in pages that miss nothing and repeat nothing', async () => {
    const { context, organization_id } = world;
    for (let number = 0; number < 7; number += 1) {
      await createProject(context, world.everyone.admin, { organization_id, name: `P${number}` });
    }
    const whole = await read('owner');
    expect(whole.next).toBeNull();
    const paged: unknown[] = [];
    let cursor: number | null = null;
    do {
      const page: Awaited<ReturnType<typeof read>> = await read('owner', { cursor, limit: 3 });
      expect(page.items.length).toBeLessThanOrEqual(3);
      paged.push(...page.items);
      cursor = page.next;
    } while (cursor !== null);
    expect(paged).toEqual([...whole.items]);
    const ids = whole.items.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort((left, right) => right - left));
    expect(whole.items[0]).toMatchObject({
      by: 'user',
      user_name: 'admin',
      user_email: 'admin@example.com',
      action: 'project.create',
      sentence: 'Created a project.',
      object_name: 'P6',
      detail: { name: 'P6' },
    });
  });

  test('has nothing of another organization', async () => {
    const { context, everyone } = world;
    const { id } = await createOrganization(context, everyone.owner, { name: 'Other' });
    const { items } = await listAuditLog(context, everyone.owner, { organization_id: id });
    expect(items).toMatchObject([{ action: 'organization.create', object_id: id, object_name: 'Other' }]);
  });

  test('does not tell owners which operator it was', async () => {
    const { context, organization_id, everyone, guest } = world;
    const operator: Actor = { kind: 'operator', user_id: guest.user_id };
    await setSuspended(context, operator, { organization_id, is_suspended: true });
    const hidden = { by: 'operator', user_id: null, user_name: null, user_email: null };
    expect((await read('owner')).items[0]).toMatchObject(hidden);
    const shown = await listAuditLog(context, operator, { organization_id });
    expect(shown.items[0]).toMatchObject({ by: 'operator', user_id: guest.user_id, user_name: 'guest' });
    expect(shown.items[0]?.detail).toEqual({});
    await renameOrganization(context, everyone.owner, { organization_id, name: 'New' });
    expect((await read('owner')).items[0]).toMatchObject({ by: 'user', user_name: 'owner' });
  });

  test('names a deleted user no more', async () => {
    const { context, everyone } = world;
    await renameOrganization(context, everyone.admin, {
      organization_id: world.organization_id,
      name: 'New',
    });
    await deleteAccount(context, everyone.admin);
    const { items } = await read('owner');
    expect(items[0]).toMatchObject({ action: 'member.leave', user_name: 'Deleted user' });
    expect(JSON.stringify(items)).not.toContain('admin@example.com');
    expect(
      world.db
        .select()
        .from(users)
        .all()
        .map(({ email }) => email),
    ).not.toContain('admin@example.com');
  });

  test('shows the entries of a newer version as they are', async () => {
    world.db.$client.run(
      "INSERT INTO trail_entries (organization_id, action, object_kind, detail, created_at_ms) VALUES (?1, 'key.polish', 'key', '{}', 1)",
      [world.organization_id],
    );
    expect((await read('owner')).items[0]).toMatchObject({ action: 'key.polish', sentence: 'key.polish' });
  });
});

function passkeyOf(user_id: string) {
  return {
    id: 'passkey_1',
    user_id,
    name: 'Passkey',
    credential_id: 'credential_1',
    public_key: 'x',
    signatures: 0,
    device_type: 'singleDevice',
    is_backed_up: false,
    transports: '',
    model_id: 'x',
    created_at_ms: 1,
  };
}
