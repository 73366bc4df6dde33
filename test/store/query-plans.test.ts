import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Store } from '../../src/store/store.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';

/** Rows are found by an index where a table has many: a webhook keeps the lock of all writes meanwhile. */

setDefaultTimeout(120_000);

const ROWS = 5_000;

/** `ROWS` rows with the numbers `i`, in the words of both databases. */
const many = (into: string, columns: string) => `INSERT INTO ${into}
  WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < ${ROWS})
  SELECT ${columns} FROM numbers`;

const FILLED = [
  many('users (id, email, name, created_at_ms)', "'user_' || i, 'user_' || i || '@example.com', 'Ada', i"),
  many('organizations (id, name, created_at_ms)', "'org_' || i, 'Acme', i"),
  many('members (organization_id, user_id, role, created_at_ms)', "'org_' || i, 'user_' || i, 'owner', i"),
  many('projects (id, organization_id, name, created_at_ms)', "'proj_' || i, 'org_' || i, 'Default', i"),
  many('project_months (project_id, month)', "'proj_' || i, '2026-01'"),
  many(
    'api_keys (id, project_id, name, secret_sha256, display_prefix, created_at_ms)',
    "'key_' || i, 'proj_' || i, 'Key', 'hash_' || i, 'sk_svc_old', i",
  ),
  // Keys that were made for one job each.
  many(
    'api_keys (id, project_id, name, secret_sha256, display_prefix, created_at_ms, revoked_at_ms, monthly_limit_micros)',
    "'job_' || i, 'proj_7', 'Job', 'job_hash_' || i, 'sk_svc_job', i, i, 1000000",
  ),
  many('project_months (project_id, month, api_key_id)', "'proj_7', '2026-01', 'job_' || i"),
  many(
    'alerts (id, organization_id, kind, subject_id, created_at_ms, ended_at_ms)',
    "1000000 + i, 'org_' || i, 'payment_credited', 'pay_' || i, i, i",
  ),
  many('alert_recipients (alert_id, user_id, mail_due_ms)', "1000000 + i, 'user_' || i, i"),
  many(
    'payments (id, organization_id, provider, external_id, kind, amount_micros, status, created_at_ms)',
    "'pay_' || i, 'org_' || i, 'paddle', 'txn_' || i, 'top_up', 5000000, 'completed', i",
  ),
  `INSERT INTO payments (id, organization_id, provider, external_id, kind, amount_micros, status, refunds_payment_id,
      created_at_ms)
    SELECT 'refund_of_' || id, organization_id, provider, 'adj_' || id, 'refund', 1000000, status, id, created_at_ms
    FROM payments`,
  many(
    'trail_entries (organization_id, action, object_kind, detail, created_at_ms)',
    "'org_7', 'key.create', 'key', '{}', i",
  ),
  many(
    'payment_events (provider, event_id, type, kind, external_id, payment_external_id, organization_id, outcome, received_at_ms, decided_at_ms)',
    "'paddle', 'evt_' || i, 'transaction.completed', 'completed', 'txn_' || i, 'txn_' || i, 'org_' || i, 'applied', i, i",
  ),
];

const READS: readonly (readonly [name: string, read: (store: Store) => Promise<unknown>])[] = [
  ['the refunds of a payment', ({ payments }) => payments.returnsOf('pay_7')],
  ['the organizations of a user', ({ accounts }) => accounts.organizationsOf('user_7')],
  ['how many organizations a user owns', ({ accounts }) => accounts.countOwned('user_7')],
  [
    'the projects that a user can see',
    ({ accounts }) => accounts.listProjects({ member_user_id: 'user_7', archived: false, month: '2026-01' }),
  ],
  [
    'the archived projects of an organization',
    ({ accounts }) => accounts.listProjects({ organization_id: 'org_7', archived: true, month: '2026-01' }),
  ],
  [
    'the keys of an organization',
    ({ keys }) => keys.listKeys({ organization_id: 'org_7', revoked: false, month: '2026-01' }),
  ],
  ['the revoked keys of an organization', ({ keys }) => keys.revokedKeysOf('org_7', null, 100, '2026-01')],
  ['how many keys an organization has', ({ keys }) => keys.countActive('org_7')],
  ['the mails that are due', ({ alerts }) => alerts.dueMails(ROWS, ROWS - 100, 10)],
  [
    'the payments that wait for the operator',
    ({ payments }) => payments.pendingPayments(undefined, 'manual'),
  ],
  ['when an organization made its first key', ({ keys }) => keys.firstCreated_ms('org_7')],
  [
    'an organization, for the operator',
    ({ accounts }) => accounts.searchOrganizations({ ...SEARCHED, id: 'org_7' }),
  ],
  ['the organizations that time may raise', ({ accounts }) => accounts.paidOrganizations()],
  ['the events that wait for the operator', ({ payments }) => payments.listEvents(100, 'unresolved')],
  ['how many events wait for the operator', ({ payments }) => payments.countEvents('unresolved')],
];

const SEARCHED = { text: '', after: null, limit: 50 } as const;

describe.each(DATABASES)('$name finds by an index', ({ name, open }) => {
  let database: OpenDatabase;
  beforeAll(async () => {
    database = await open();
    for (const statement of FILLED) await database.run(statement);
    // PostgreSQL's autovacuum does so by itself; nobody does so for SQLite, which plans without statistics.
    if (name === 'PostgreSQL') await database.run('ANALYZE');
  });
  afterAll(() => database.close());

  test.each(READS)('%s', async (_, read) => {
    const plans = await database.plansOf(read);
    expect(plans).toHaveLength(1);
    expect(plans.filter(({ scanned }) => scanned.length > 0)).toEqual([]);
  });

  test('the events of an organization, and those of its payments', async () => {
    const plans = await database.plansOf(({ payments }) => payments.eventsOf('org_7', 20));
    expect(plans).toHaveLength(2);
    expect(plans.flatMap(({ scanned }) => scanned)).toEqual([]);
  });

  test('the acts of one kind of an organization, and not all of its acts', async () => {
    const [plan] = await database.plansOf(({ audit_log }) =>
      audit_log.listEntries({ organization_id: 'org_7', before_id: null, action: 'key.rotate', limit: 50 }),
    );
    expect(plan?.indexes).toContain('trail_action');
    expect(plan?.sorts).toBe(false);
  });

  test('what the newest organizations have, without the others', async () => {
    const [plan] = await database.plansOf(({ accounts }) => accounts.searchOrganizations(SEARCHED));
    expect(plan?.sorts).toBe(false);
    expect(plan?.scanned.filter((table) => table !== 'organizations')).toEqual([]);
  });

  test('the months of what has a spend limit, and not those of all time', async () => {
    const plans = await database.plansOf(async ({ alerts }) => {
      await alerts.projectSpending('2026-01', 80, []);
      await alerts.keySpending('2026-01', 80, []);
    });
    expect(plans).toHaveLength(2);
    const scanned = plans.flatMap((plan) => plan.scanned);
    for (const table of ['project_months', 'api_keys']) expect(scanned).not.toContain(table);
    // PostgreSQL may read them whole, beside the event loop.
    if (name === 'SQLite') expect(scanned).not.toContain('projects');
  });

  test('the keys to alert to, without the revoked keys of their projects and those keys’ months', async () => {
    const plans = await database.plansOf(async ({ alerts }) => {
      await alerts.keySpending('2026-01', 80, []);
      await alerts.keysExpiring(0, ROWS);
    });
    expect(plans).toHaveLength(2);
    const conditions = plans.flatMap((plan) => plan.conditions);
    const of_project = conditions.filter((one) => /(?<![\w.])project_id ?=/.test(one));
    expect(of_project).not.toEqual([]);
    expect(of_project.filter((one) => !/revoked_at_ms|api_key_id/.test(one))).toEqual([]);
  });

  test('the months that a hold and its end count in, and not those of all keys of the project', async () => {
    await database.run("UPDATE projects SET spend_limit_micros = 1000000 WHERE id = 'proj_7'");
    await database.run("UPDATE organizations SET credit_micros = 10 WHERE id = 'org_7'");
    const account = { organization_id: 'org_7', project_id: 'proj_7', api_key_id: 'job_7' };
    const at_ms = Date.UTC(2026, 0, 15);
    const plans = await database.plansOfPair({ ...account, request_id: 'req_1', amount_micros: 1, at_ms });
    const of_months = plans.filter(({ statement }) => /project_months/.test(statement));
    expect(of_months).not.toEqual([]);
    expect(of_months.flatMap(({ scanned }) => scanned)).not.toContain('project_months');
    const conditions = of_months.flatMap((plan) => plan.conditions).filter((one) => /\bmonth\b/.test(one));
    expect(conditions).not.toEqual([]);
    expect(conditions.filter((one) => !/api_key_id/.test(one))).toEqual([]);
  });

  test('a page of revoked keys, without the months of the keys of other pages', async () => {
    const plans = await database.plansOf(({ keys }) => keys.revokedKeysOf('org_7', 'job_70', 10, '2026-01'));
    const conditions = plans.flatMap((plan) => plan.conditions);
    expect(conditions.filter((one) => /month/.test(one) && !/api_key_id/.test(one))).toEqual([]);
    expect(conditions.filter((one) => /month/.test(one))).not.toEqual([]);
    // PostgreSQL reads rows, beside the event loop, until a vacuum.
    if (name === 'SQLite') expect(plans.flatMap(({ covering }) => covering)).toContain('api_keys_project');
  });

  // PostgreSQL may begin with the alerts, beside the event loop.
  test.skipIf(name === 'PostgreSQL')('the mails that are due in their order, none of long ago', async () => {
    const [plan] = await database.plansOf(({ alerts }) => alerts.dueMails(ROWS, ROWS - 100, 10));
    expect(plan?.conditions.find((one) => /mail_due_ms.*mail_due_ms/.test(one))).toBeDefined();
    expect(plan?.sorts).toBe(false);
  });

  test('and writes an alert to all members of an organization with one statement', async () => {
    await database.run(
      `INSERT INTO members (organization_id, user_id, role, created_at_ms)
      SELECT 'org_7', id, 'admin', 1 FROM users WHERE id <> 'user_7'`,
    );
    const raised = {
      organization_id: 'org_7',
      kind: 'credit_low',
      subject_id: 'org_7',
      subject_name: null,
      amount_micros: 1,
      limit_micros: 2,
      from_tier: null,
      to_tier: null,
      expires_at_ms: null,
      created_at_ms: 1,
    } as const;
    const written = await database.plansOf(({ alerts }) =>
      alerts.raise(raised, { roles: ['owner', 'admin'], has_ended: false }),
    );
    expect(written).toHaveLength(2);
    expect(
      await database.count(
        "alert_recipients INNER JOIN alerts ON id = alert_id WHERE organization_id = 'org_7' AND kind = 'credit_low'",
      ),
    ).toBe(ROWS);
  });
});
