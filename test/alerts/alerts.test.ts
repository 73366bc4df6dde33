import { afterEach, beforeEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { deleteAccount } from '../../src/accounts/delete-account.ts';
import { createKey, revokeKey, rotateKey, setKeyExpiry, setKeyLimit } from '../../src/accounts/keys.ts';
import { removeMember } from '../../src/accounts/members.ts';
import { createOrganization, setTierSettings } from '../../src/accounts/organizations.ts';
import { archiveProject, changeProject, createProject } from '../../src/accounts/projects.ts';
import { setCreditAlert } from '../../src/alerts/credit-alert.ts';
import { LimitRefusals } from '../../src/alerts/limit-refusals.ts';
import { markAlertsRead, receivedAlerts } from '../../src/alerts/received.ts';
import { AlertRuns } from '../../src/alerts/runs.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import type { AlertKind, DueAlertMail } from '../../src/store/alert-records.ts';
import type { Store } from '../../src/store/store.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/time/clock.ts';
import { monthOf } from '../../src/time/month.ts';
import { addEveryone, newUser, outcome, type UserActor, verifyEmail } from '../accounts/everyone.ts';
import { TestClock } from '../accounts/support.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { noProblemsExpected } from './support.ts';

setDefaultTimeout(120_000);

const DOLLAR = 1_000_000;
const PAYERS: readonly Role[] = ['owner', 'admin', 'billing'];
const KEY_MAKERS: readonly Role[] = ['owner', 'admin', 'developer'];

describe.each(DATABASES)('alerts, $name', ({ open }) => {
  let database: OpenDatabase;
  let clock: TestClock;
  let context: AccountContext;
  let organization_id: string;
  let project_id: string;
  let everyone: Awaited<ReturnType<typeof addEveryone>>;
  let mails: DueAlertMail[];

  beforeEach(async () => {
    database = await open();
    clock = new TestClock();
    context = { store: database.store, clock, identifiers: randomIdentifiers };
    const created = await createOrganization(context, OPERATOR, { name: 'Acme' });
    organization_id = created.id;
    project_id = created.default_project_id;
    everyone = await addEveryone(context, organization_id);
    for (const role of ROLES) await verifyEmail(database, everyone[role]);
    mails = [];
  });

  afterEach(() => database.close());

  const keep = (mail: DueAlertMail) => {
    mails.push(mail);
    return Promise.resolve();
  };
  const now_ms = () => Promise.resolve(clock.now_ms());
  const runsOn = (
    store: Store,
    mail: ((mail: DueAlertMail) => Promise<void>) | null = keep,
    limit_refusals = new LimitRefusals(),
  ) => new AlertRuns({ store, now_ms, problems: noProblemsExpected, limit_refusals, mail });
  /** A new service each time, so that nothing is remembered but what is stored. */
  const run = (store = database.store) => runsOn(store).run();
  /** The same, of a service whose limits have refused requests of these costs. */
  const runAfterRefusals = async (...refused: [subject_id: string, amount_micros: number][]) => {
    const limit_refusals = new LimitRefusals();
    for (const [subject_id, amount_micros] of refused) limit_refusals.note(subject_id, amount_micros);
    await runsOn(database.store, keep, limit_refusals).run();
  };
  const setCredit = (micros: number) =>
    database.run(`UPDATE organizations SET credit_micros = ${micros} WHERE id = '${organization_id}'`);
  const setSpent = (micros: number, api_key_id = '') =>
    database.run(`INSERT INTO project_months (project_id, month, api_key_id, spent_micros, held_micros)
      VALUES ('${project_id}', '${monthOf(clock.now_ms())}', '${api_key_id}', ${micros}, 0)
      ON CONFLICT (project_id, month, api_key_id) DO UPDATE SET spent_micros = ${micros}`);
  const listed = () =>
    context.store.keys.listKeys({ organization_id, revoked: false, month: monthOf(clock.now_ms()) });
  /** Returns the key with a limit of $10, made at the first call. */
  const limitedKey = async () =>
    (await listed()).find(({ name }) => name === 'limited') ??
    (await createKey(context, owner(), { project_id, name: 'limited' }));
  const spendOfLimitedKey = async (micros: number) => {
    const { id: key_id } = await limitedKey();
    await setKeyLimit(context, owner(), { key_id, monthly_limit_micros: 10 * DOLLAR });
    await setSpent(micros, key_id);
  };
  const kindsOf = async ({ user_id }: UserActor) =>
    (await receivedAlerts(context, user_id)).items.map(({ kind }) => kind);
  const owner = () => everyone.owner;

  interface Row {
    readonly kind: AlertKind;
    readonly to: readonly Role[];
    readonly begin: () => Promise<unknown>;
    /** The numbers and names that the alert has then; the others are null. */
    readonly facts: object;
    /** Ends the condition; undefined for an event, which has none. */
    readonly end?: () => Promise<unknown>;
  }

  const TABLE: readonly Row[] = [
    {
      kind: 'credit_low',
      to: PAYERS,
      begin: async () => {
        await setCredit(5 * DOLLAR - 1);
        await setCreditAlert(context, owner(), { organization_id, credit_alert_micros: 5 * DOLLAR });
      },
      facts: { amount_micros: 5 * DOLLAR - 1, limit_micros: 5 * DOLLAR },
      end: () => setCredit(5 * DOLLAR),
    },
    {
      kind: 'spend_limit_near',
      to: PAYERS,
      begin: async () => {
        await changeProject(context, owner(), { project_id, spend_limit_micros: 10 * DOLLAR });
        await setSpent(8 * DOLLAR);
      },
      facts: { subject_name: 'Default', amount_micros: 8 * DOLLAR, limit_micros: 10 * DOLLAR },
      // The next month begins with nothing spent.
      end: () => Promise.resolve(clock.advance(31 * DAY_MS)),
    },
    {
      kind: 'spend_limit_reached',
      to: PAYERS,
      begin: async () => {
        await changeProject(context, owner(), { project_id, spend_limit_micros: 10 * DOLLAR });
        await setSpent(9_950_000);
      },
      facts: { subject_name: 'Default', amount_micros: 9_950_000, limit_micros: 10 * DOLLAR },
      end: () => changeProject(context, owner(), { project_id, spend_limit_micros: 100 * DOLLAR }),
    },
    {
      kind: 'key_spend_limit_near',
      to: KEY_MAKERS,
      begin: () => spendOfLimitedKey(8 * DOLLAR),
      facts: { subject_name: 'limited', amount_micros: 8 * DOLLAR, limit_micros: 10 * DOLLAR },
      end: () => Promise.resolve(clock.advance(31 * DAY_MS)),
    },
    {
      kind: 'key_spend_limit_reached',
      to: KEY_MAKERS,
      begin: () => spendOfLimitedKey(9_950_000),
      facts: { subject_name: 'limited', amount_micros: 9_950_000, limit_micros: 10 * DOLLAR },
      end: async () => {
        const { id: key_id } = await limitedKey();
        await setKeyLimit(context, owner(), { key_id, monthly_limit_micros: 100 * DOLLAR });
      },
    },
    {
      kind: 'key_expires',
      to: KEY_MAKERS,
      begin: async () => {
        const expires_at_ms = clock.now_ms() + 30 * DAY_MS;
        await createKey(context, owner(), { project_id, name: 'ci', expires_at_ms });
        clock.advance(23 * DAY_MS);
      },
      facts: { subject_name: 'ci' },
      end: async () => {
        const [key] = await listed();
        await setKeyExpiry(context, owner(), {
          key_id: key?.id ?? '',
          expires_at_ms: clock.now_ms() + 8 * DAY_MS,
        });
      },
    },
    {
      kind: 'payment_credited',
      to: PAYERS,
      begin: async () => {
        await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 5 });
        await database.run('DELETE FROM alerts');
        await creditByHand(context, OPERATOR, { organization_id, amount_micros: 25 * DOLLAR });
      },
      facts: { amount_micros: 25 * DOLLAR },
    },
    {
      kind: 'tier_changed',
      to: PAYERS,
      begin: () => setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 2 }),
      facts: { from_tier: 0, to_tier: 2 },
    },
  ];

  test.each(TABLE)('$kind: to whom it concerns, once', async ({ kind, to, begin, facts }) => {
    await run();
    expect(await kindsOf(owner())).toEqual([]);
    await begin();
    await run();
    await run();
    for (const role of ROLES) {
      expect({ role, kinds: await kindsOf(everyone[role]) }).toEqual({
        role,
        kinds: to.includes(role) ? [kind] : [],
      });
    }
    expect(await kindsOf(everyone.stranger)).toEqual([]);
    const { unread, items } = await receivedAlerts(context, owner().user_id);
    expect(unread).toBe(1);
    expect(items).toMatchObject([
      { kind, organization_id, organization_name: 'Acme', read_at_ms: null, ...facts },
    ]);
    expect(mails.map(({ email }) => email).sort()).toEqual(to.map((role) => `${role}@example.com`).sort());
    expect(new Set(mails.map((mail) => mail.kind))).toEqual(new Set([kind]));
  });

  test.each(TABLE.filter(({ end }) => end !== undefined))(
    '$kind: again when it ended and comes back, and not while it lasts',
    async ({ kind, to, begin, end }) => {
      await begin();
      await run();
      await end?.();
      await run();
      expect(mails).toHaveLength(to.length);
      if (kind === 'key_expires') clock.advance(DAY_MS + MINUTE_MS);
      else await begin();
      await run();
      await run();
      expect((await kindsOf(owner())).filter((one) => one === kind)).toHaveLength(2);
      expect(mails.filter((mail) => mail.kind === kind)).toHaveLength(2 * to.length);
    },
  );

  test('nothing where there is no threshold, no limit, a limit of nothing, and an archived project', async () => {
    await setCredit(-1);
    await setSpent(5 * DOLLAR);
    await run();
    await changeProject(context, owner(), { project_id, spend_limit_micros: 0 });
    await run();
    await changeProject(context, owner(), { project_id, spend_limit_micros: DOLLAR });
    await archiveProject(context, owner(), project_id);
    await run();
    expect(await kindsOf(owner())).toEqual([]);
  });

  test('many that begin and end at once are a transaction each, so that requests need not wait for all', async () => {
    await createProject(context, owner(), { organization_id, name: 'Other' });
    await database.run(
      `UPDATE projects SET spend_limit_micros = ${DOLLAR} WHERE organization_id = '${organization_id}'`,
    );
    await database.run(`INSERT INTO project_months (project_id, month, spent_micros)
      SELECT id, '${monthOf(clock.now_ms())}', ${DOLLAR} FROM projects`);
    const transactions = spyOn(database.store, 'transaction');
    await run();
    expect(await kindsOf(owner())).toEqual(['spend_limit_reached', 'spend_limit_reached']);
    expect(transactions).toHaveBeenCalledTimes(2);
    await database.run('UPDATE projects SET spend_limit_micros = NULL');
    await run();
    expect(transactions).toHaveBeenCalledTimes(4);
    transactions.mockRestore();
  });

  test('below 80% nothing, from 80% one alert, and at the limit the other', async () => {
    await changeProject(context, owner(), { project_id, spend_limit_micros: 10 * DOLLAR });
    const seen: unknown[] = [];
    for (const spent of [8 * DOLLAR - 1, 8 * DOLLAR, 9_949_999, 9_950_000, 10 * DOLLAR]) {
      await setSpent(spent);
      await run();
      seen.push(await kindsOf(owner()));
    }
    const near = ['spend_limit_near'];
    const both = ['spend_limit_reached', 'spend_limit_near'];
    expect(seen).toEqual([[], near, near, both, both]);
  });

  test('a request that costs more than is left of a limit makes it reached, once, until the month ends', async () => {
    await changeProject(context, owner(), { project_id, spend_limit_micros: 10 * DOLLAR });
    await setSpent(6 * DOLLAR);
    // Others were under way, which held what was left.
    await runAfterRefusals([project_id, 4 * DOLLAR]);
    expect(await kindsOf(owner())).toEqual([]);
    await runAfterRefusals([project_id, 5 * DOLLAR], [project_id, 4 * DOLLAR + 1]);
    await run();
    await setSpent(9 * DOLLAR);
    await run();
    expect(await kindsOf(owner())).toEqual(['spend_limit_reached']);
    expect(mails).toHaveLength(PAYERS.length);
    clock.advance(31 * DAY_MS);
    await setSpent(8 * DOLLAR);
    await run();
    expect(await kindsOf(owner())).toEqual(['spend_limit_near', 'spend_limit_reached']);
  });

  test('a request that costs more than is left of the limit of a key makes it reached, until the limit is raised', async () => {
    await spendOfLimitedKey(9 * DOLLAR);
    const { id: key_id } = await limitedKey();
    await runAfterRefusals([key_id, DOLLAR + 1]);
    await setKeyLimit(context, owner(), { key_id, monthly_limit_micros: 11 * DOLLAR });
    await run();
    expect(await kindsOf(owner())).toEqual(['key_spend_limit_near', 'key_spend_limit_reached']);
  });

  test('a limit of a key is that of all its rotations, alerts once for them, and no more when all are revoked', async () => {
    await spendOfLimitedKey(0);
    const { id: key_id } = await limitedKey();
    const { id: newer } = await rotateKey(context, owner(), { key_id, overlap_ms: DAY_MS });
    // The project's own limit is compared with what all of its keys spent.
    await changeProject(context, owner(), { project_id, spend_limit_micros: 20 * DOLLAR });
    await setSpent(8 * DOLLAR, key_id);
    await setSpent(16 * DOLLAR - 1);
    await run();
    expect(await kindsOf(owner())).toEqual(['key_spend_limit_near']);
    await setSpent(16 * DOLLAR);
    await revokeKey(context, owner(), newer);
    await revokeKey(context, owner(), key_id);
    await run();
    await setSpent(10 * DOLLAR, key_id);
    await run();
    expect(await kindsOf(owner())).toEqual(['spend_limit_near', 'key_spend_limit_near']);
  });

  test('a key without an end, a short-lived one, a rotated one and an ended one are not announced', async () => {
    await createKey(context, owner(), { project_id, name: 'endless' });
    await createKey(context, owner(), {
      project_id,
      name: 'short',
      expires_at_ms: clock.now_ms() + 7 * DAY_MS,
    });
    const { id } = await createKey(context, owner(), { project_id, name: 'rotated' });
    await rotateKey(context, owner(), { key_id: id, overlap_ms: 20 * DAY_MS });
    for (let hours = 0; hours < 24; hours++) {
      await run();
      clock.advance(24 * HOUR_MS);
    }
    expect(await kindsOf(owner())).toEqual([]);
  });

  test('two nodes that find and mail at the same time raise it once and mail it once', async () => {
    await setCredit(0);
    await setCreditAlert(context, owner(), { organization_id, credit_alert_micros: DOLLAR });
    const another = await database.another();
    const nodes = [runsOn(database.store), runsOn(another)];
    await Promise.all(nodes.map((node) => node.run()));
    await Promise.all(nodes.map((node) => node.run()));
    expect(await kindsOf(owner())).toEqual(['credit_low']);
    expect(mails.map(({ email }) => email).sort()).toEqual(
      PAYERS.map((role) => `${role}@example.com`).sort(),
    );
  });

  test('a mail whose server is down is sent later, and no longer after a day', async () => {
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    const reported: unknown[] = [];
    const failing = new AlertRuns({
      store: database.store,
      now_ms,
      problems: { ...noProblemsExpected, report: (problem) => void reported.push(problem) },
      limit_refusals: new LimitRefusals(),
      mail: () => Promise.reject(new Error('down')),
    });
    await failing.run();
    expect(reported).toMatchObject([{ step: 'mail' }, { step: 'mail' }]);
    // The others are due, those that failed are not.
    await run();
    expect(mails).toHaveLength(PAYERS.length - 2);
    clock.advance(10 * MINUTE_MS);
    await run();
    expect(mails).toHaveLength(PAYERS.length);

    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 2 });
    clock.advance(DAY_MS + 1);
    await run();
    expect(mails).toHaveLength(PAYERS.length);
    expect((await kindsOf(owner())).length).toBe(2);
  });

  test('a look that fails keeps no mail back, and the next finds what limits refused before; two at once are one', async () => {
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    await changeProject(context, owner(), { project_id, spend_limit_micros: 10 * DOLLAR });
    await setSpent(9 * DOLLAR);
    const limit_refusals = new LimitRefusals();
    limit_refusals.note(project_id, 2 * DOLLAR);
    const reported: unknown[] = [];
    const one = new AlertRuns({
      ...{ store: database.store, now_ms, limit_refusals, mail: keep },
      problems: { ...noProblemsExpected, report: (problem) => void reported.push(problem) },
    });
    using looks = spyOn(database.store, 'snapshot').mockRejectedValueOnce(new Error('away'));
    await one.run();
    expect(reported).toMatchObject([{ step: 'alerts', error: { message: 'away' } }]);
    expect(mails.map(({ kind }) => kind)).toEqual(PAYERS.map(() => 'tier_changed'));
    await Promise.all([one.run(), one.run()]);
    expect(looks).toHaveBeenCalledTimes(2);
    expect(await kindsOf(owner())).toEqual(['spend_limit_reached', 'tier_changed']);
  });

  test('an address that the server refuses keeps no mail from the others', async () => {
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    const reported: unknown[] = [];
    const sent: string[] = [];
    const refusing = new AlertRuns({
      store: database.store,
      now_ms,
      problems: { ...noProblemsExpected, report: (problem) => void reported.push(problem) },
      limit_refusals: new LimitRefusals(),
      mail: ({ email }) => {
        if (email === 'owner@example.com') return Promise.reject(new Error('refused'));
        sent.push(email);
        return Promise.resolve();
      },
    });
    await refusing.run();
    expect(reported).toHaveLength(1);
    expect(sent.sort()).toEqual(['admin@example.com', 'billing@example.com']);
  });

  test('a condition that is over before its mail is sent is not mailed', async () => {
    await setCredit(0);
    await setCreditAlert(context, owner(), { organization_id, credit_alert_micros: DOLLAR });
    await runsOn(database.store, null).run();
    await setCredit(10 * DOLLAR);
    clock.advance(MINUTE_MS);
    await run();
    expect(mails).toEqual([]);
    expect(await kindsOf(owner())).toEqual(['credit_low']);
  });

  test('no mail without a mail server, to an unverified address, and to who turned them off', async () => {
    await database.run(`UPDATE users SET email_verified = false WHERE id = '${everyone.billing.user_id}'`);
    await context.store.alerts.writeAlertMails(everyone.admin.user_id, false);
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    await runsOn(database.store, null).run();
    expect(mails).toEqual([]);
    await run();
    expect(mails.map(({ email }) => email)).toEqual(['owner@example.com']);
    expect(await kindsOf(everyone.admin)).toEqual(['tier_changed']);
    expect((await receivedAlerts(context, everyone.admin.user_id)).gets_mails).toBe(false);
    expect((await receivedAlerts(context, owner().user_id)).gets_mails).toBe(true);

    // Off is at once, on is for later alerts.
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 2 });
    await context.store.alerts.writeAlertMails(owner().user_id, false);
    await context.store.alerts.writeAlertMails(everyone.admin.user_id, true);
    await run();
    expect(mails).toHaveLength(1);
  });

  test('is read by one person alone, up to the newest that they saw', async () => {
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    const { items } = await receivedAlerts(context, owner().user_id);
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 2 });
    await markAlertsRead(context, owner().user_id, items[0]?.id ?? 0);
    expect((await receivedAlerts(context, owner().user_id)).unread).toBe(1);
    expect((await receivedAlerts(context, everyone.admin.user_id)).unread).toBe(2);
  });

  test('goes with the membership, with the account, and with an organization that closes', async () => {
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    await removeMember(context, owner(), { organization_id, user_id: everyone.billing.user_id });
    expect(await kindsOf(everyone.billing)).toEqual([]);
    await deleteAccount(context, everyone.admin);
    expect(await database.count('alert_recipients')).toBe(1);

    const alone = await newUser(context, 'alone');
    const own = await createOrganization(context, alone, { name: 'Own' });
    await setCreditAlert(context, alone, { organization_id: own.id, credit_alert_micros: DOLLAR });
    await run();
    expect(await kindsOf(alone)).toEqual(['credit_low']);
    await deleteAccount(context, alone);
    await run();
    expect(await database.count(`alerts WHERE organization_id = '${own.id}'`)).toBe(0);
    expect(await database.count('alert_recipients')).toBe(1);
  });

  test('an old alert is forgotten, unless its condition lasts', async () => {
    await setTierSettings(context, OPERATOR, organization_id, { minimum_tier: 1 });
    await setCreditAlert(context, owner(), { organization_id, credit_alert_micros: DOLLAR });
    await run();
    clock.advance(DAY_MS);
    await context.store.alerts.forgetEnded(clock.now_ms());
    await run();
    expect(await kindsOf(owner())).toEqual(['credit_low']);
  });

  test.each([0, -1, 0.5, 1e15 + 1])(
    'an amount of %p micro-dollars is refused',
    async (credit_alert_micros) => {
      const set = () => setCreditAlert(context, owner(), { organization_id, credit_alert_micros });
      expect(await outcome(set)).toBe('invalid_amount');
    },
  );
});
