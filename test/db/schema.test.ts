import { expect, test } from 'bun:test';
import { is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as schema from '../../db/sqlite/schema.ts';
import { addAccount, addPayment, TemporaryDatabase } from '../ledger/support.ts';

const TABLES = Object.values(schema)
  .filter((value) => is(value, SQLiteTable))
  .map((table) => getTableConfig(table));

interface TableListRow {
  readonly name: string;
  readonly type: string;
  readonly strict: number;
}
interface ColumnRow {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
}

test('the migrations make exactly the tables of the schema, and all of them STRICT', () => {
  using file = new TemporaryDatabase();
  const stored = file.db.$client
    .query<TableListRow, []>("SELECT name, type, strict FROM pragma_table_list WHERE schema = 'main'")
    .all()
    .filter(({ name }) => !name.startsWith('sqlite_') && name !== '__drizzle_migrations');
  expect(stored.map(({ name }) => name).sort()).toEqual(TABLES.map(({ name }) => name).sort());
  expect(stored.filter(({ strict }) => strict !== 1)).toEqual([]);
});

test.each(TABLES.map((table) => [table.name, table] as const))(
  '%s has the columns of the schema',
  (name, table) => {
    using file = new TemporaryDatabase();
    const stored = file.db.$client
      .query<ColumnRow, [string]>('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)')
      .all(name);
    const [composite] = table.primaryKeys;
    const primary = composite?.columns.map((column) => column.name) ?? [];
    expect(stored).toEqual(
      table.columns.map((column) => ({
        name: column.name,
        type: column.getSQLType().toUpperCase(),
        notnull: column.notNull ? 1 : 0,
        dflt_value: column.default === undefined ? null : String(column.default),
        pk: column.primary ? 1 : primary.indexOf(column.name) + 1,
      })),
    );
  },
);

test.each(TABLES.map((table) => [table.name, table] as const))(
  '%s has the references, indexes and checks of the schema',
  (name, table) => {
    using file = new TemporaryDatabase();
    const client = file.db.$client;
    const references = client
      .query<{ from: string; table: string; to: string }, [string]>(
        'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)',
      )
      .all(name)
      .map(({ from, table: target, to }) => `${from} → ${target}.${to}`);
    expect(references.sort()).toEqual(
      table.foreignKeys
        .map((key) => {
          const { columns, foreignTable, foreignColumns } = key.reference();
          return `${columns[0]?.name} → ${getTableConfig(foreignTable).name}.${foreignColumns[0]?.name}`;
        })
        .sort(),
    );

    const indexes = client
      .query<{ name: string; unique: number; partial: number }, [string]>(
        `SELECT name, "unique", partial FROM pragma_index_list(?) WHERE origin = 'c'`,
      )
      .all(name)
      .map((index) => {
        const columns = client
          .query<{ name: string }, [string]>('SELECT name FROM pragma_index_info(?) ORDER BY seqno')
          .all(index.name)
          .map((column) => column.name);
        return { name: index.name, columns, unique: index.unique === 1, partial: index.partial === 1 };
      });
    const columnName = (column: unknown) =>
      typeof column === 'object' && column !== null && 'name' in column ? column.name : undefined;
    const declared = [
      ...table.indexes.map(({ config }) => ({
        name: config.name,
        columns: config.columns.map(columnName),
        unique: config.unique,
        partial: config.where !== undefined,
      })),
      ...table.columns
        .filter((column) => column.isUnique)
        .map((column) => ({ name: column.uniqueName, columns: [column.name], unique: true, partial: false })),
    ];
    const byName = (one: { name: string | undefined }, other: { name: string | undefined }) =>
      String(one.name).localeCompare(String(other.name));
    expect<unknown>(indexes.sort(byName)).toEqual(declared.sort(byName));

    const { sql } = client
      .query<{ sql: string }, [string]>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .get(name) ?? { sql: '' };
    expect([...sql.matchAll(/CONSTRAINT "(\w+)" CHECK/g)].map(([, check]) => check).sort()).toEqual(
      table.checks.map((check) => check.name).sort(),
    );
  },
);

/** The columns of `entry`'s tables, in the order of its values. */
const COLUMNS = {
  projects: 'id, organization_id, name, spend_limit_micros, archived_at_ms, created_at_ms',
  project_months: 'project_id, month, spent_micros, held_micros',
  payments:
    'id, organization_id, provider, external_id, kind, amount_micros, status, refunds_payment_id, created_by_user_id, created_at_ms, settled_at_ms',
  usage_records:
    'request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status, questions, input_tokens, cost_micros, latency_ms',
  ledger_days: 'project_id, day, organization_id, last_entry_id, charges, charged_micros',
  usage_days:
    'organization_id, day, project_id, api_key_id, model, mode, endpoint, status, requests, questions, input_tokens, cost_micros',
  models:
    'id, kind, status, description, context_tokens, input_price_micros_per_million_tokens, released_at_ms',
  model_aliases: 'alias, model_id',
  audit_checkpoints:
    'id, last_entry_id, last_usage_row_id, last_usage_request_id, checked_at_ms, checked_whole_at_ms',
  users: 'id, email, name, created_at_ms',
  sessions: 'id, user_id, token_sha256, created_at_ms, last_seen_at_ms, expires_at_ms',
  sign_in_accounts: 'id, user_id, provider, external_id, created_at_ms, updated_at_ms',
  invitations: 'id, organization_id, email, role, token_sha256, created_at_ms, expires_at_ms',
  trail_entries: 'action, object_kind, detail, created_at_ms',
} as const;

/** Rows that no correct program writes, each as the statement that tries, after the rows that it needs. */
const BAD_ROWS: readonly (readonly [what: string, statement: string])[] = [
  ['a balance with a fraction of a micro-dollar', 'UPDATE organizations SET credit_micros = 1.5'],
  ['a balance as text', "UPDATE organizations SET credit_micros = 'ten'"],
  ['held credit below zero', 'UPDATE organizations SET held_micros = -1'],
  ['fewer open holds than none', 'UPDATE organizations SET open_holds = -1'],
  ['payments below zero', 'UPDATE organizations SET paid_micros = -1'],
  ['a tier that does not exist', 'UPDATE organizations SET tier = 6'],
  ['a spend limit below zero', 'UPDATE projects SET spend_limit_micros = -1'],
  ['a second active project of a name', entry('projects', "'p2', 'org_acme', 'proj_acme', NULL, NULL, 0")],
  ['a project of no organization', entry('projects', "'p3', 'org_none', 'p3', NULL, NULL, 0")],
  ['a month that spent less than nothing', entry('project_months', "'proj_acme', '2026-01', -1, 0")],
  ['a month that holds less than nothing', entry('project_months', "'proj_acme', '2026-01', 0, -1")],
  [
    'a payment of nothing',
    entry('payments', "'p', 'org_acme', 'manual', 'x', 'top_up', 0, 'completed', NULL, NULL, 0, 0"),
  ],
  [
    'a payment that the provider reported before',
    entry('payments', "'p', 'org_acme', 'manual', 'pay_1', 'top_up', 1, 'completed', NULL, NULL, 0, 0"),
  ],
  ['an entry of an unknown kind', ledger("'gift', 5, 0, NULL, NULL, NULL, NULL")],
  ['a top-up that takes credit', ledger("'top_up', -5, 0, NULL, NULL, NULL, 'pay_1'")],
  ['a refund that gives credit', ledger("'refund', 5, 0, NULL, NULL, NULL, 'pay_1'")],
  ['a hold that moves credit', ledger("'hold', -1, 1, NULL, 'req_2', '2026-01', NULL")],
  ['a hold below zero', ledger("'hold', 0, -1, NULL, 'req_2', '2026-01', NULL")],
  ['a hold of no request', ledger("'hold', 0, 1, NULL, NULL, '2026-01', NULL")],
  ['a second hold of a request', ledger("'hold', 0, 1, NULL, 'req_1', '2026-01', NULL")],
  ['a charge that gives credit', ledger("'charge', 1, -10, 1, NULL, '2026-01', NULL")],
  ['a charge of more than it frees', ledger("'charge', -11, -10, 1, NULL, '2026-01', NULL")],
  ['a charge of no hold', ledger("'charge', -1, -10, NULL, NULL, '2026-01', NULL")],
  ['a release that moves credit', ledger("'release', -1, -10, 1, NULL, '2026-01', NULL")],
  ['an end of a hold that is none', ledger("'release', 0, -10, 99, NULL, '2026-01', NULL")],
  ['a second end of a hold', ledger("'release', 0, -10, 2, NULL, '2026-01', NULL")],
  [
    'a failed request with a cost',
    entry(
      'usage_records',
      "'r', 0, 'org_acme', 'proj_acme', 'key_acme', 'm', 'fast', '/', 502, 0, 1, 1, 1.5",
    ),
  ],
  [
    'a failed request with answered questions',
    entry(
      'usage_records',
      "'r', 0, 'org_acme', 'proj_acme', 'key_acme', 'm', 'fast', '/', 502, 1, 1, 0, 1.5",
    ),
  ],
  [
    'usage in a mode that does not exist',
    entry(
      'usage_records',
      "'r', 0, 'org_acme', 'proj_acme', 'key_acme', 'm', 'slow', '/', 200, 1, 1, 1, 1.5",
    ),
  ],
  ['a day without charges', entry('ledger_days', "'proj_acme', '2026-01-01', 'org_acme', 1, 0, 0")],
  ['a day that gave credit', entry('ledger_days', "'proj_acme', '2026-01-01', 'org_acme', 1, 1, -1")],
  [
    'a day of failed requests with a cost',
    entry(
      'usage_days',
      "'org_acme', '2026-01-01', 'proj_acme', 'key_acme', 'm', 'fast', '/', 502, 1, 0, 0, 1",
    ),
  ],
  [
    'a day of no requests',
    entry(
      'usage_days',
      "'org_acme', '2026-01-01', 'proj_acme', 'key_acme', 'm', 'fast', '/', 200, 0, 0, 0, 0",
    ),
  ],
  ['a second checkpoint of the audit', entry('audit_checkpoints', '2, 0, 0, NULL, 0, 0')],
  ['an alias of no model', entry('model_aliases', "'latest', 'decision-0'")],
  ['a session of nobody', entry('sessions', `'s', 'user_none', '${'a'.repeat(64)}', 0, 0, 0`)],
  ['the token of a session itself', entry('sessions', "'s', 'user_ada', 'token', 0, 0, 0")],
  ['the way to sign in of nobody', entry('sign_in_accounts', "'a', 'user_none', 'credential', 'x', 0, 0")],
  ['a second user of an address', entry('users', "'user_eve', 'ada@example.com', 'Eve', 0")],
  [
    'an invitation with a role that does not exist',
    entry('invitations', `'i', 'org_acme', 'a@example.com', 'king', '${'a'.repeat(64)}', 0, 0`),
  ],
  [
    'the token of an invitation itself',
    entry('invitations', "'i', 'org_acme', 'a@example.com', 'reader', 'token', 0, 0"),
  ],
  ['a trail entry whose detail is no JSON', entry('trail_entries', "'key.create', 'key', 'text', 0")],
  ['a live model without a price', entry('models', "'m', 'decision', 'live', 'd', NULL, NULL, NULL")],
];

function entry(table: keyof typeof COLUMNS, values: string): string {
  return `INSERT INTO ${table} (${COLUMNS[table]}) VALUES (${values})`;
}

function ledger(values: string): string {
  return `INSERT INTO ledger_entries (kind, credit_delta_micros, held_delta_micros, hold_entry_id, request_id, month,
    payment_id, organization_id, project_id, created_at_ms) VALUES (${values}, 'org_acme', 'proj_acme', 0)`;
}

test.each(BAD_ROWS)('the database itself refuses %s', (_, statement) => {
  using file = new TemporaryDatabase();
  const account = addAccount(file.db, 'acme');
  addPayment(file.db, account, 'pay_1', 'top_up', 5);
  const { $client } = file.db;
  $client.run(entry('users', "'user_ada', 'ada@example.com', 'Ada', 0"));
  $client.run(ledger("'hold', 0, 10, NULL, 'req_1', '2026-01', NULL"));
  $client.run(ledger("'hold', 0, 10, NULL, 'req_0', '2026-01', NULL"));
  $client.run(ledger("'release', 0, -10, 2, NULL, '2026-01', NULL"));
  expect(() => $client.run(statement)).toThrow(/constraint failed|cannot store/);
});
