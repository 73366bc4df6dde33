import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { sqlState } from '../../db/postgres/errors.ts';
import { systemErrorCode } from '../../src/errors/system-error-code.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';

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
  organizations: 'id, name, created_at_ms',
  api_keys: 'id, project_id, name, secret_sha256, display_prefix, created_at_ms',
  sessions: 'id, user_id, token_sha256, created_at_ms, last_seen_at_ms, expires_at_ms',
  sign_in_accounts: 'id, user_id, provider, external_id, created_at_ms, updated_at_ms',
  invitations: 'id, organization_id, email, role, token_sha256, created_at_ms, expires_at_ms',
  trail_entries: 'action, object_kind, detail, created_at_ms',
} as const;

/** Rows that no correct program writes, each as the statement that tries, after the rows that it needs. */
const BAD_ROWS: readonly (readonly [what: string, statement: string])[] = [
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
  ['a charge that gives credit', ledger("'charge', 1, -10, 1001, NULL, '2026-01', NULL")],
  ['a charge of more than it frees', ledger("'charge', -11, -10, 1001, NULL, '2026-01', NULL")],
  ['a charge of no hold', ledger("'charge', -1, -10, NULL, NULL, '2026-01', NULL")],
  ['a release that moves credit', ledger("'release', -1, -10, 1001, NULL, '2026-01', NULL")],
  ['an end of a hold that is none', ledger("'release', 0, -10, 99, NULL, '2026-01', NULL")],
  ['a second end of a hold', ledger("'release', 0, -10, 1002, NULL, '2026-01', NULL")],
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
  ['an audit log entry whose detail is no JSON', entry('trail_entries', "'key.create', 'key', 'text', 0")],
  ['a live model without a price', entry('models', "'m', 'decision', 'live', 'd', NULL, NULL, NULL")],
];

function entry(table: keyof typeof COLUMNS, values: string): string {
  return `INSERT INTO ${table} (${COLUMNS[table]}) VALUES (${values})`;
}

/** An entry of the ledger, with the next number where none is given. */
function ledger(values: string, id?: number): string {
  const [column, value] = id === undefined ? ['', ''] : ['id, ', `${id}, `];
  return `INSERT INTO ledger_entries (${column}kind, credit_delta_micros, held_delta_micros, hold_entry_id, request_id,
    month, payment_id, organization_id, project_id, created_at_ms)
    VALUES (${value}${values}, 'org_acme', 'proj_acme', 0)`;
}

/** The valid rows beside the bad ones. */
const GOOD_ROWS: readonly string[] = [
  entry('users', "'user_ada', 'ada@example.com', 'Ada', 0"),
  entry('organizations', "'org_acme', 'acme', 0"),
  entry('projects', "'proj_acme', 'org_acme', 'proj_acme', NULL, NULL, 0"),
  entry('api_keys', `'key_acme', 'proj_acme', 'key', '${'b'.repeat(64)}', 'tds_abcdefgh', 0`),
  entry('payments', "'pay_1', 'org_acme', 'manual', 'pay_1', 'top_up', 5, 'completed', NULL, NULL, 0, 0"),
  entry('audit_checkpoints', '1, 0, 0, NULL, 0, 0'),
  ledger("'hold', 0, 10, NULL, 'req_1', '2026-01', NULL", 1001),
  ledger("'hold', 0, 10, NULL, 'req_0', '2026-01', NULL", 1002),
  ledger("'release', 0, -10, 1002, NULL, '2026-01', NULL", 1003),
];

/** Returns true if the row breaks a constraint, or a value does not fit its column. */
function isRefusalOfRow(error: unknown): boolean {
  const state = sqlState(error);
  return state === null
    ? systemErrorCode(error)?.startsWith('SQLITE_CONSTRAINT') === true
    : state.startsWith('23') || state === '22P02';
}

describe.each(DATABASES)('$name itself', ({ open }) => {
  let database: OpenDatabase;
  beforeAll(async () => {
    database = await open();
    for (const statement of GOOD_ROWS) await database.run(statement);
  });
  afterAll(() => database.close());

  test.each(BAD_ROWS)('refuses %s', async (_, statement) => {
    const error = await database.run(statement).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(isRefusalOfRow(error)).toBe(true);
  });
});
