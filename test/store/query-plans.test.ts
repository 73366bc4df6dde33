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
  many(
    'payments (id, organization_id, provider, external_id, kind, amount_micros, status, created_at_ms)',
    "'pay_' || i, 'org_' || i, 'paddle', 'txn_' || i, 'top_up', 5000000, 'completed', i",
  ),
  `INSERT INTO payments (id, organization_id, provider, external_id, kind, amount_micros, status, refunds_payment_id,
      created_at_ms)
    SELECT 'refund_of_' || id, organization_id, provider, 'adj_' || id, 'refund', 1000000, status, id, created_at_ms
    FROM payments`,
];

const READS: readonly (readonly [name: string, read: (store: Store) => Promise<unknown>])[] = [
  ['the refunds of a payment', ({ payments }) => payments.returnsOf('pay_7')],
  ['the organizations of a user', ({ accounts }) => accounts.organizationsOf('user_7')],
  ['how many organizations a user owns', ({ accounts }) => accounts.countOwned('user_7')],
  [
    'the projects that a user can see',
    ({ accounts }) => accounts.listProjects({ member_user_id: 'user_7', archived: false, month: '2026-01' }),
  ],
];

describe.each(DATABASES)('$name finds by an index', ({ open }) => {
  let database: OpenDatabase;
  beforeAll(async () => {
    database = await open();
    for (const statement of FILLED) await database.run(statement);
    await database.run('ANALYZE');
  });
  afterAll(() => database.close());

  test.each(READS)('%s', async (_, read) => {
    const plans = await database.plansOf(read);
    expect(plans).toHaveLength(1);
    expect(plans.filter(({ scanned }) => scanned.length > 0)).toEqual([]);
  });
});
