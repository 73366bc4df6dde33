import { type SQL, sql } from 'drizzle-orm';
import {
  type AnyPgColumn,
  bigint,
  check,
  customType,
  doublePrecision,
  index,
  pgTable,
  primaryKey,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { ROLES } from '../src/contract/roles.ts';
import { TIERS } from '../src/contract/tiers.ts';
import { MODES } from '../src/questions/types-and-modes.ts';
import { TIER_CHANGE_REASONS } from '../src/store/account-records.ts';
import { ALERT_KINDS } from '../src/store/alert-records.ts';
import { MODEL_KINDS, MODEL_STATUSES, type UpstreamPool } from '../src/store/catalog-records.ts';
import {
  PAYMENT_EVENT_KINDS,
  PAYMENT_EVENT_OUTCOMES,
  PAYMENT_KINDS,
  PAYMENT_STATUSES,
} from '../src/store/payment-records.ts';

/**
 * All tables of the service, as the queries of `db/records/` see them in either database. The migrations of both are
 * made of them, those of SQLite through `db/sqlite/schema.ts`. Times are Unix milliseconds (`_ms`), money is integer
 * micro-dollars (`_micros`).
 */

export const LEDGER_KINDS = ['top_up', 'refund', 'hold', 'charge', 'release'] as const;

/**
 * A text column that is compared byte by byte, as in SQLite. So the order of rows and indexes does not depend on the
 * server's locale. PostgreSQL refuses U+0000, also in a search. The client sends a lone surrogate as U+FFFD, so U+0000
 * becomes the same.
 */
export const text = customType<{ data: string }>({
  dataType: () => 'text COLLATE "C"',
  toDriver: (value) => value.replaceAll('\u0000', '\ufffd'),
});

/**
 * A JSON column, which is text in SQLite. drizzle's `jsonb` would store a JSON string in PostgreSQL, because the client
 * encodes the value again.
 */
const json = <T extends object>() =>
  customType<{ data: T; driverData: T | string }>({
    dataType: () => 'jsonb',
    toDriver: (value) => value,
    fromDriver: (value) => (typeof value === 'string' ? JSON.parse(value) : value),
  })();

/** A column of true and false, which are 1 and 0 in SQLite. */
const boolean = customType<{ data: boolean; driverData: boolean | number }>({
  dataType: () => 'boolean',
  fromDriver: Boolean,
});

/** A 64-bit integer column. PostgreSQL would silently round a fraction, which SQLite's STRICT tables refuse. */
export const integer = customType<{ data: number; driverData: number | string }>({
  dataType: () => 'bigint',
  fromDriver: Number,
  toDriver: (value) => {
    if (Number.isSafeInteger(value)) return value;
    throw new TypeError('a column of integers takes nothing else');
  },
});

/** A 64-bit identity column; an insert may give its own number. */
const rowNumber = () => bigint({ mode: 'number' }).generatedByDefaultAsIdentity();

/** The column of a row that belongs to one organization. */
const organizationReference = () =>
  text()
    .notNull()
    .references(() => organizations.id);

/** The column of a row that belongs to one project. */
const projectReference = () =>
  text()
    .notNull()
    .references(() => projects.id);

/** The column of a row that belongs to one API key. */
const apiKeyReference = () =>
  text()
    .notNull()
    .references(() => apiKeys.id);

/** The column of a row that belongs to one user. */
const userReference = () =>
  text()
    .notNull()
    .references(() => users.id);

/** Returns the condition of a check that the column has one of the values. */
function isOneOf(column: AnyPgColumn, values: readonly string[]): SQL {
  return sql`${column} IN (${sql.raw(values.map((value) => `'${value}'`).join(', '))})`;
}

/** Returns the condition of a check that the column has the number of a tier. */
function isTier(column: AnyPgColumn): SQL {
  return sql`${column} BETWEEN 0 AND ${sql.raw(String(TIERS.length - 1))}`;
}

/** People who can be members of organizations. The row of a deleted one stays, without name and address. */
export const users = pgTable('users', {
  id: text().primaryKey(),
  email: text().notNull().unique(),
  name: text().notNull(),
  created_at_ms: integer().notNull(),
  /** True once the user has followed a link mailed to the address. */
  email_verified: boolean().notNull().default(false),
  /** True if the user may do in the console everything that the command line can do. */
  is_operator: boolean().notNull().default(false),
  updated_at_ms: integer().notNull().default(0),
  deleted_at_ms: integer(),
  /** True if a sign-in needs a code beside the password. */
  has_second_factor: boolean().notNull().default(false),
  /** True if alerts are mailed to the user; the console shows them either way. */
  gets_alert_mails: boolean().notNull().default(true),
});

/** Owners of credit and tier. The audit checks the stored balances against the ledger. */
export const organizations = pgTable(
  'organizations',
  {
    id: text().primaryKey(),
    name: text().notNull(),
    /** The user of a personal organization; null for others. */
    personal_user_id: text()
      .unique()
      .references(() => users.id),
    tier: integer().notNull().default(0),
    /** May be negative: a refund can take back credit that was already spent. */
    credit_micros: integer().notNull().default(0),
    /** The credit that open holds reserve. */
    held_micros: integer().notNull().default(0),
    /** The number of open holds, so that a start finds them without reading the whole history. */
    open_holds: integer().notNull().default(0),
    /** Lifetime purchases minus refunds, from which the tier is computed. */
    paid_micros: integer().notNull().default(0),
    /** The first payment after `paid_micros` was last 0; null while it is 0. */
    first_paid_at_ms: integer(),
    /** The lowest `tier`, set by the operator. */
    minimum_tier: integer(),
    /** Dedicated limits, set by the operator; null where the tier's value applies. */
    requests_per_minute: integer(),
    tokens_per_minute: integer(),
    questions_per_request: integer(),
    top_up_max_micros: integer(),
    created_at_ms: integer().notNull(),
    /** The time at which the operator suspended the organization's keys; null while they work. */
    suspended_at_ms: integer(),
    /** The credit below which members are alerted; null for no alert. */
    credit_alert_micros: integer(),
  },
  (table) => [
    index('organizations_credit_alert')
      .on(table.credit_alert_micros)
      .where(sql`${table.credit_alert_micros} IS NOT NULL`),
    index('organizations_created').on(table.created_at_ms, table.id),
    index('organizations_paid').on(table.paid_micros).where(sql`${table.paid_micros} > 0`),
    check('organizations_tier', isTier(table.tier)),
    check('organizations_minimum_tier', sql`${table.minimum_tier} IS NULL OR ${isTier(table.minimum_tier)}`),
    check('organizations_held', sql`${table.held_micros} >= 0`),
    check('organizations_open_holds', sql`${table.open_holds} >= 0`),
    check('organizations_paid', sql`${table.paid_micros} >= 0`),
  ],
);

/** The members of organizations. Each has exactly one role. */
export const members = pgTable(
  'members',
  {
    organization_id: organizationReference(),
    user_id: text()
      .notNull()
      .references(() => users.id),
    role: text().$type<(typeof ROLES)[number]>().notNull(),
    created_at_ms: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.organization_id, table.user_id] }),
    index('members_user').on(table.user_id),
    check('members_role', isOneOf(table.role, ROLES)),
  ],
);

/** Groups of keys and usage. A null limit means none. */
export const projects = pgTable(
  'projects',
  {
    id: text().primaryKey(),
    organization_id: organizationReference(),
    name: text().notNull(),
    spend_limit_micros: integer(),
    archived_at_ms: integer(),
    created_at_ms: integer().notNull(),
  },
  (table) => [
    index('projects_organization').on(table.organization_id),
    index('projects_limited')
      .on(table.spend_limit_micros)
      .where(sql`${table.spend_limit_micros} IS NOT NULL`),
    uniqueIndex('projects_active_name')
      .on(table.organization_id, table.name)
      .where(sql`${table.archived_at_ms} IS NULL`),
    check(
      'projects_spend_limit',
      sql`${table.spend_limit_micros} IS NULL OR ${table.spend_limit_micros} >= 0`,
    ),
  ],
);

/** The `api_key_id` of a row of `project_months` that counts for the whole project. */
export const WHOLE_PROJECT = '';

/**
 * The spent and held micros in a UTC month (`YYYY-MM`): a row for the whole project, and one for each of its keys. So a
 * limit is compared with one row, however many keys there are. A charge counts in its hold's month.
 */
export const projectMonths = pgTable(
  'project_months',
  {
    project_id: projectReference(),
    month: text().notNull(),
    spent_micros: integer().notNull().default(0),
    held_micros: integer().notNull().default(0),
    /** The first of a key's rotations, or `WHOLE_PROJECT`, which also counts requests of versions without keys here. */
    api_key_id: text().notNull().default(WHOLE_PROJECT),
  },
  (table) => [
    primaryKey({ columns: [table.project_id, table.month, table.api_key_id] }),
    check('project_months_spent', sql`${table.spent_micros} >= 0`),
    check('project_months_held', sql`${table.held_micros} >= 0`),
  ],
);

/** API keys. The secret itself is never stored: only its SHA-256 (hex) and its first 12 characters. */
export const apiKeys = pgTable(
  'api_keys',
  {
    id: text().primaryKey(),
    project_id: projectReference(),
    name: text().notNull(),
    secret_sha256: text().notNull().unique(),
    display_prefix: text().notNull(),
    /** Null for a key from the operator's command line. */
    created_by_user_id: text().references(() => users.id),
    created_at_ms: integer().notNull(),
    last_used_at_ms: integer(),
    revoked_at_ms: integer(),
    /** The number of the key in the order of creation, as SQLite's rowid. */
    row_id: rowNumber().notNull(),
    /** The time from which the key is refused as a revoked one is; null for a key without an end. */
    expires_at_ms: integer(),
    /** The first key of the rotations that made this one; null for a key that replaced none. */
    first_key_id: text().references((): AnyPgColumn => apiKeys.id),
    /** The most that the key and those that replace it may spend in a UTC month, in a first key's row; null for none. */
    monthly_limit_micros: integer(),
  },
  (table) => [
    // A project may have any number of revoked keys: its active ones, and the last revoked, are found without the others.
    index('api_keys_project').on(table.project_id, table.revoked_at_ms, table.id),
    index('api_keys_limited')
      .on(table.monthly_limit_micros)
      .where(sql`${table.monthly_limit_micros} IS NOT NULL AND ${table.revoked_at_ms} IS NULL`),
    index('api_keys_rotated')
      .on(table.first_key_id)
      .where(sql`${table.first_key_id} IS NOT NULL AND ${table.revoked_at_ms} IS NULL`),
    index('api_keys_expiry').on(table.expires_at_ms).where(sql`${table.revoked_at_ms} IS NULL`),
    uniqueIndex('api_keys_row').on(table.row_id),
  ],
);

/**
 * Payments and refunds as a provider reports them; one row for each external event, so that a replay changes nothing.
 */
export const payments = pgTable(
  'payments',
  {
    id: text().primaryKey(),
    organization_id: organizationReference(),
    provider: text().notNull(),
    /** The provider's own id of the payment or refund. */
    external_id: text().notNull(),
    kind: text().$type<(typeof PAYMENT_KINDS)[number]>().notNull(),
    amount_micros: integer().notNull(),
    status: text().$type<(typeof PAYMENT_STATUSES)[number]>().notNull(),
    /** The top-up that a refund takes back, if the provider names one. */
    refunds_payment_id: text().references((): AnyPgColumn => payments.id),
    created_by_user_id: text().references(() => users.id),
    created_at_ms: integer().notNull(),
    settled_at_ms: integer(),
  },
  (table) => [
    uniqueIndex('payments_external').on(table.provider, table.external_id),
    index('payments_organization').on(table.organization_id, table.created_at_ms),
    index('payments_pending').on(table.provider, table.created_at_ms).where(sql`${table.status} = 'pending'`),
    index('payments_refunds')
      .on(table.refunds_payment_id)
      .where(sql`${table.refunds_payment_id} IS NOT NULL`),
    check('payments_amount', sql`${table.amount_micros} > 0`),
    check('payments_kind', isOneOf(table.kind, PAYMENT_KINDS)),
    check('payments_status', isOneOf(table.status, PAYMENT_STATUSES)),
  ],
);

/**
 * Every movement of credit. `credit_delta_micros` changes the balance, `held_delta_micros` its reserved part. A hold
 * (0, +h) is open until it is charged (−c, −h) with c ≤ h, or deleted by its release. Earlier versions wrote a release
 * (0, −h) instead. Entries are never changed. Old holds and their ends are replaced by `ledger_days`.
 */
export const ledgerEntries = pgTable(
  'ledger_entries',
  {
    id: rowNumber().primaryKey(),
    organization_id: organizationReference(),
    project_id: text().references(() => projects.id),
    kind: text().$type<(typeof LEDGER_KINDS)[number]>().notNull(),
    credit_delta_micros: integer().notNull(),
    held_delta_micros: integer().notNull(),
    /** The hold that a charge or release ends. */
    hold_entry_id: integer().references((): AnyPgColumn => ledgerEntries.id),
    /** The request of a hold. */
    request_id: text(),
    /** The UTC month (`YYYY-MM`) of the hold, for a hold, charge or release. */
    month: text(),
    payment_id: text().references(() => payments.id),
    created_at_ms: integer().notNull(),
    /** The process that placed the hold and must end it; null for holds of earlier versions. */
    process_id: text(),
    /** The first key of the request's, of a hold or charge; null for those of earlier versions. */
    api_key_id: text(),
  },
  (table) => [
    uniqueIndex('ledger_one_end_a_hold')
      .on(table.hold_entry_id)
      .where(sql`${table.hold_entry_id} IS NOT NULL`),
    uniqueIndex('ledger_one_hold_a_request').on(table.request_id).where(sql`${table.request_id} IS NOT NULL`),
    uniqueIndex('ledger_one_entry_a_payment')
      .on(table.payment_id)
      .where(sql`${table.payment_id} IS NOT NULL`),
    // This index serves the credit history, which does not list holds.
    index('ledger_organization_ends').on(table.organization_id, table.id).where(sql`${table.kind} <> 'hold'`),
    check('ledger_kind', isOneOf(table.kind, LEDGER_KINDS)),
    check(
      'ledger_signs',
      sql`CASE ${table.kind}
        WHEN 'top_up' THEN ${table.credit_delta_micros} > 0 AND ${table.held_delta_micros} = 0
        WHEN 'refund' THEN ${table.credit_delta_micros} < 0 AND ${table.held_delta_micros} = 0
        WHEN 'hold' THEN ${table.credit_delta_micros} = 0 AND ${table.held_delta_micros} >= 0 AND ${table.request_id} IS NOT NULL
        WHEN 'charge' THEN ${table.credit_delta_micros} <= 0 AND ${table.held_delta_micros} <= ${table.credit_delta_micros} AND ${table.hold_entry_id} IS NOT NULL
        ELSE ${table.credit_delta_micros} = 0 AND ${table.held_delta_micros} <= 0 AND ${table.hold_entry_id} IS NOT NULL
      END`,
    ),
  ],
);

/**
 * Requests with an idempotency key: the running request, and then its answer for a day. It stores hashes and numbers
 * only, and no client's text (`src/idempotency/claim.ts`, `kept-answer.ts`).
 */
export const idempotentRequests = pgTable(
  'idempotent_requests',
  {
    api_key_id: apiKeyReference(),
    key_hash: text().notNull(),
    body_hash: text().notNull(),
    organization_id: organizationReference(),
    /** The hold of a running request, whose deletion deletes the claim. Null once the request is answered. */
    hold_entry_id: integer().references(() => ledgerEntries.id, { onDelete: 'cascade' }),
    /** JSON; null while the request runs. */
    answer: text(),
    /** The bytes of the organization's answers up to this one. The oldest answers above the limit are deleted. */
    bytes_so_far: integer(),
    created_at_ms: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.api_key_id, table.key_hash] }),
    uniqueIndex('idempotent_requests_hold')
      .on(table.hold_entry_id)
      .where(sql`${table.hold_entry_id} IS NOT NULL`),
    index('idempotent_requests_organization').on(table.organization_id, table.bytes_so_far),
    index('idempotent_requests_created').on(table.created_at_ms),
    check(
      'idempotent_requests_runs_or_answered',
      sql`(${table.hold_entry_id} IS NULL) = (${table.answer} IS NOT NULL)
        AND (${table.answer} IS NULL) = (${table.bytes_so_far} IS NULL)`,
    ),
  ],
);

/** Every change of an organization's tier, with its cause. */
export const tierChanges = pgTable(
  'tier_changes',
  {
    id: rowNumber().primaryKey(),
    organization_id: organizationReference(),
    from_tier: integer().notNull(),
    to_tier: integer().notNull(),
    reason: text().$type<(typeof TIER_CHANGE_REASONS)[number]>().notNull(),
    created_at_ms: integer().notNull(),
  },
  (table) => [
    index('tier_changes_organization').on(table.organization_id, table.id),
    check('tier_changes_reason', isOneOf(table.reason, TIER_CHANGE_REASONS)),
  ],
);

/**
 * Alerts to members of an organization. One whose condition lasts is open. The unique index lets only one service write
 * it, once. An alert about an event, such as a payment, has ended when it is written.
 */
export const alerts = pgTable(
  'alerts',
  {
    id: rowNumber().primaryKey(),
    organization_id: organizationReference(),
    kind: text().$type<(typeof ALERT_KINDS)[number]>().notNull(),
    /** The id of the project, key or payment; the organization's own id where it is about none. */
    subject_id: text().notNull(),
    /** The name of the project or key at that time. */
    subject_name: text(),
    /** The credit, what was spent, or what was paid. */
    amount_micros: integer(),
    /** The limit that the amount is compared with. */
    limit_micros: integer(),
    from_tier: integer(),
    to_tier: integer(),
    expires_at_ms: integer(),
    created_at_ms: integer().notNull(),
    /** Null while the condition lasts. */
    ended_at_ms: integer(),
  },
  (table) => [
    uniqueIndex('alerts_open')
      .on(table.organization_id, table.kind, table.subject_id)
      .where(sql`${table.ended_at_ms} IS NULL`),
    index('alerts_created').on(table.created_at_ms),
    check('alerts_kind', isOneOf(table.kind, ALERT_KINDS)),
  ],
);

/** The members to whom an alert was given, by their roles at that time. */
export const alertRecipients = pgTable(
  'alert_recipients',
  {
    alert_id: integer()
      .notNull()
      .references(() => alerts.id, { onDelete: 'cascade' }),
    user_id: userReference(),
    read_at_ms: integer(),
    /** The time from which the mail may be sent; null when none is left to send. */
    mail_due_ms: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.alert_id, table.user_id] }),
    index('alert_recipients_user').on(table.user_id, table.alert_id),
    index('alert_recipients_due')
      .on(table.mail_due_ms, table.alert_id)
      .where(sql`${table.mail_due_ms} IS NOT NULL`),
  ],
);

/** One row for each request that got a hold: metadata only (contract: records are never kept). */
export const usageRecords = pgTable(
  'usage_records',
  {
    request_id: text().primaryKey(),
    time_ms: integer().notNull(),
    organization_id: organizationReference(),
    project_id: projectReference(),
    api_key_id: apiKeyReference(),
    model: text().notNull(),
    mode: text().$type<(typeof MODES)[number]>().notNull(),
    endpoint: text().notNull(),
    /** The response's HTTP status. */
    status: integer().notNull(),
    /** The number of answered questions; 0 for a failed request. */
    questions: integer().notNull(),
    input_tokens: integer().notNull(),
    cost_micros: integer().notNull(),
    latency_ms: doublePrecision().notNull(),
    /** The number of the row, from which an audit continues. In SQLite it is the rowid. */
    row_id: rowNumber().notNull(),
  },
  (table) => [
    index('usage_row').on(table.row_id),
    index('usage_organization_time').on(table.organization_id, table.time_ms),
    index('usage_time').on(table.time_ms),
    check('usage_mode', isOneOf(table.mode, MODES)),
    check(
      'usage_failed_is_free',
      sql`${table.status} = 200 OR (${table.questions} = 0 AND ${table.cost_micros} = 0)`,
    ),
  ],
);

/**
 * The charges of old requests: one row for each project and UTC day replaces their ledger entries. The charge is the
 * sum of those entries, so the audit can check the costs of `usage_days` against it.
 */
export const ledgerDays = pgTable(
  'ledger_days',
  {
    project_id: projectReference(),
    /** The UTC day (`YYYY-MM-DD`) of the holds. */
    day: text().notNull(),
    organization_id: organizationReference(),
    /** The last entry that the row replaces, which gives the row's place in the ledger. */
    last_entry_id: integer().notNull(),
    charges: integer().notNull(),
    charged_micros: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.project_id, table.day] }),
    index('ledger_days_organization').on(table.organization_id, table.last_entry_id),
    check('ledger_days_charges', sql`${table.charges} > 0`),
    check('ledger_days_charged', sql`${table.charged_micros} >= 0`),
  ],
);

/** The usage of old requests, summed by UTC day and every column that usage can be grouped by. */
export const usageDays = pgTable(
  'usage_days',
  {
    organization_id: organizationReference(),
    /** The UTC day (`YYYY-MM-DD`) of the requests. */
    day: text().notNull(),
    project_id: projectReference(),
    api_key_id: apiKeyReference(),
    model: text().notNull(),
    mode: text().$type<(typeof MODES)[number]>().notNull(),
    endpoint: text().notNull(),
    status: integer().notNull(),
    requests: integer().notNull(),
    questions: integer().notNull(),
    input_tokens: integer().notNull(),
    cost_micros: integer().notNull(),
  },
  (table) => [
    primaryKey({
      // PostgreSQL's names have at most 63 bytes.
      name: 'usage_days_pk',
      columns: [
        table.organization_id,
        table.day,
        table.project_id,
        table.api_key_id,
        table.model,
        table.mode,
        table.endpoint,
        table.status,
      ],
    }),
    check('usage_days_mode', isOneOf(table.mode, MODES)),
    check('usage_days_requests', sql`${table.requests} > 0`),
    check(
      'usage_days_failed_is_free',
      sql`${table.status} = 200 OR (${table.questions} = 0 AND ${table.cost_micros} = 0)`,
    ),
  ],
);

/**
 * The checkpoint of the audit: one row, or none before the first clean audit. Every hold up to its entry has ended, so
 * no entry up to it is deleted.
 */
export const auditCheckpoints = pgTable(
  'audit_checkpoints',
  {
    id: integer().primaryKey(),
    last_entry_id: integer().notNull(),
    /** The number of the last usage row. */
    last_usage_row_id: integer().notNull(),
    /** The request of that row in SQLite, where a rebuilt file has other rowids; null in PostgreSQL. */
    last_usage_request_id: text(),
    checked_at_ms: integer().notNull(),
    /** The time of the last audit of everything. */
    checked_whole_at_ms: integer().notNull(),
  },
  (table) => [check('audit_checkpoints_one', sql`${table.id} = 1`)],
);

/** The sums of the ledger up to the checkpoint, by organization. */
export const auditedOrganizations = pgTable('audited_organizations', {
  organization_id: text()
    .primaryKey()
    .references(() => organizations.id),
  credit_micros: integer().notNull(),
  held_micros: integer().notNull(),
  paid_micros: integer().notNull(),
});

/** The sums of the ledger up to the checkpoint, by project and month. */
export const auditedProjectMonths = pgTable(
  'audited_project_months',
  {
    project_id: projectReference(),
    month: text().notNull(),
    spent_micros: integer().notNull(),
    held_micros: integer().notNull(),
    /** The first of a key's rotations; empty for entries without one, and for days that were rolled up. */
    api_key_id: text().notNull().default(''),
  },
  (table) => [primaryKey({ columns: [table.project_id, table.month, table.api_key_id] })],
);

/** The catalog: models and their prices. */
export const models = pgTable(
  'models',
  {
    id: text().primaryKey(),
    kind: text().$type<(typeof MODEL_KINDS)[number]>().notNull(),
    status: text().$type<(typeof MODEL_STATUSES)[number]>().notNull(),
    description: text().notNull(),
    context_tokens: integer(),
    input_price_micros_per_million_tokens: integer(),
    released_at_ms: integer(),
    /** The word `embedded`, or the absolute path of a GGUF file; null for a model without an engine. */
    weights: text(),
    /**
     * The SHA-256 of the weights when the model was added; null if any weights are accepted, as for the embedded model.
     */
    weights_sha256: text(),
    profile: text(),
    /** The servers that answer instead of weights, as JSON; null for none. */
    upstreams: json<UpstreamPool>(),
    /** The model whose weights or upstreams a tuned model shares; null for a model of its own. */
    base_id: text().references((): AnyPgColumn => models.id),
    /** The SHA-256 of the text in `model_tunings`; null for a model that is not tuned. */
    tuning_sha256: text(),
    /** The only organization that sees the model; null for all. */
    organization_id: text().references(() => organizations.id),
  },
  (table) => [
    check('models_kind', isOneOf(table.kind, MODEL_KINDS)),
    check('models_status', isOneOf(table.status, MODEL_STATUSES)),
    check(
      'models_live_has_price',
      sql`${table.status} <> 'live' OR ${table.input_price_micros_per_million_tokens} IS NOT NULL`,
    ),
  ],
);

/** The corrections of tuned models: the text of a tuning file. Beside the models, because each request reads those. */
export const modelTunings = pgTable('model_tunings', {
  model_id: text()
    .primaryKey()
    .references(() => models.id),
  tuning: text().notNull(),
});

/** How often tuned models gave which answer on a UTC day, for the comparison with those at tuning: numbers only. */
export const answerCounts = pgTable(
  'answer_counts',
  {
    model_id: text()
      .notNull()
      .references(() => models.id),
    day: text().notNull(),
    /** The question's place in the tuning. */
    question: integer().notNull(),
    /** The answer's place among the question's classes. */
    class: integer().notNull(),
    answers: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.model_id, table.day, table.question, table.class] }),
    check('answer_counts_answers', sql`${table.answers} > 0`),
  ],
);

/** Other names of models. A model's id takes precedence over an alias. */
export const modelAliases = pgTable('model_aliases', {
  alias: text().primaryKey(),
  model_id: text()
    .notNull()
    .references(() => models.id),
});

/**
 * Every authentic event of a payment provider, with its outcome: metadata only, nothing personal. An `unresolved` event
 * has moved no money yet. It waits for its payment, its organization or the operator.
 */
export const paymentEvents = pgTable(
  'payment_events',
  {
    provider: text().notNull(),
    /** The provider's id of the event, the same for all its deliveries. */
    event_id: text().notNull(),
    /** The provider's name of the event type. */
    type: text().notNull(),
    kind: text().$type<(typeof PAYMENT_EVENT_KINDS)[number]>().notNull(),
    occurred_at_ms: integer(),
    /**
     * The provider's id of the payment or refund, and of the payment that a refund belongs to (itself for a payment).
     */
    external_id: text(),
    payment_external_id: text(),
    /** The payment that the event names. There is no foreign key, because a restored backup may lack the row. */
    payment_id: text(),
    organization_id: text(),
    /** Null when the event has no whole number of cents in US dollars. */
    amount_micros: integer(),
    outcome: text().$type<(typeof PAYMENT_EVENT_OUTCOMES)[number]>().notNull(),
    /** The reason for an irrelevant or unresolved event. */
    reason: text(),
    received_at_ms: integer().notNull(),
    /** The time of the last decision on the outcome. */
    decided_at_ms: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.provider, table.event_id] }),
    index('payment_events_payment').on(table.provider, table.payment_external_id),
    index('payment_events_received').on(table.received_at_ms),
    index('payment_events_outcome').on(table.outcome, table.received_at_ms),
    index('payment_events_organization').on(table.organization_id, table.received_at_ms),
    check('payment_events_kind', isOneOf(table.kind, PAYMENT_EVENT_KINDS)),
    check('payment_events_outcome', isOneOf(table.outcome, PAYMENT_EVENT_OUTCOMES)),
  ],
);

/** The versions of this program that have written the database. An older version names the newest in its refusal. */
export const programVersions = pgTable('program_versions', {
  version: text().primaryKey(),
  first_ms: integer().notNull(),
  /** The time at which the version last began to serve, or updated the schema. */
  last_ms: integer().notNull(),
});

/** Sign-ins of users to the console. The token itself is never stored: only its SHA-256 (hex). */
export const sessions = pgTable(
  'sessions',
  {
    id: text().primaryKey(),
    user_id: userReference(),
    token_sha256: text().notNull().unique(),
    ip_address: text(),
    user_agent: text(),
    created_at_ms: integer().notNull(),
    /** Accurate to the interval at which sessions are extended. */
    last_seen_at_ms: integer().notNull(),
    expires_at_ms: integer().notNull(),
  },
  (table) => [
    index('sessions_user').on(table.user_id),
    index('sessions_expiry').on(table.expires_at_ms),
    check('sessions_token_sha256', sql`length(${table.token_sha256}) = 64`),
  ],
);

/** The sign-in methods of users. `credential` is the only provider: a password, stored as a hash. */
export const signInAccounts = pgTable(
  'sign_in_accounts',
  {
    id: text().primaryKey(),
    user_id: userReference(),
    provider: text().notNull(),
    /** The provider's id of the user; for `credential` our own. */
    external_id: text().notNull(),
    password_hash: text(),
    created_at_ms: integer().notNull(),
    updated_at_ms: integer().notNull(),
  },
  (table) => [
    uniqueIndex('sign_in_accounts_external').on(table.provider, table.external_id),
    index('sign_in_accounts_user').on(table.user_id),
  ],
);

/**
 * The apps that show codes for sign-in (TOTP), and the codes that replace a lost one. Both are encrypted with the
 * console's secret.
 */
export const secondFactors = pgTable(
  'second_factors',
  {
    id: text().primaryKey(),
    user_id: userReference().unique(),
    secret_encrypted: text().notNull(),
    recovery_codes_encrypted: text().notNull(),
    /** False until a first code has proved that the app has the secret. */
    is_confirmed: boolean().notNull().default(false),
    /** The wrong codes at sign-in since the last right one. */
    failures: integer().notNull().default(0),
    locked_until_ms: integer(),
  },
  (table) => [check('second_factors_failures', sql`${table.failures} >= 0`)],
);

/** Passkeys (WebAuthn): the public keys of authenticators that sign their user in, without a password. */
export const passkeys = pgTable(
  'passkeys',
  {
    id: text().primaryKey(),
    user_id: userReference(),
    name: text().notNull(),
    /** The authenticator's id of it, in base64url. */
    credential_id: text().notNull().unique(),
    /** A COSE key in base64. */
    public_key: text().notNull(),
    /** The signatures that the authenticator has counted; 0 where it counts none. */
    signatures: integer().notNull(),
    device_type: text().notNull(),
    is_backed_up: boolean().notNull(),
    /** The ways to the authenticator, such as `usb`, with commas. */
    transports: text().notNull(),
    /** The authenticator's model (AAGUID). */
    model_id: text().notNull(),
    created_at_ms: integer().notNull(),
    last_used_at_ms: integer(),
  },
  (table) => [
    index('passkeys_user').on(table.user_id),
    check('passkeys_signatures', sql`${table.signatures} >= 0`),
  ],
);

/** Mailed links that were not followed yet, sign-ins that wait for their second factor, and challenges of passkeys. */
export const verifications = pgTable(
  'verifications',
  {
    id: text().primaryKey(),
    /** A hash of the purpose and the token. */
    identifier_hash: text().notNull(),
    /** The id of the user, a number of wrong codes, or a challenge. */
    value: text().notNull(),
    created_at_ms: integer().notNull(),
    updated_at_ms: integer().notNull(),
    expires_at_ms: integer().notNull(),
  },
  (table) => [
    index('verifications_identifier').on(table.identifier_hash),
    index('verifications_expiry').on(table.expires_at_ms),
  ],
);

/** Invitations into organizations, each mailed as a link. The token is stored as its SHA-256 (hex). */
export const invitations = pgTable(
  'invitations',
  {
    id: text().primaryKey(),
    organization_id: organizationReference(),
    email: text().notNull(),
    role: text().$type<(typeof ROLES)[number]>().notNull(),
    /** Null for an invitation from the operator's command line. */
    invited_by_user_id: text().references(() => users.id),
    token_sha256: text().notNull().unique(),
    created_at_ms: integer().notNull(),
    expires_at_ms: integer().notNull(),
    accepted_at_ms: integer(),
    revoked_at_ms: integer(),
  },
  (table) => [
    index('invitations_organization').on(table.organization_id, table.created_at_ms),
    index('invitations_email').on(table.email),
    check('invitations_role', isOneOf(table.role, ROLES)),
    check('invitations_token_sha256', sql`length(${table.token_sha256}) = 64`),
  ],
);

/** The audit log: actor, action and time. It stores metadata only: never a record, a key, a token or a password. */
export const auditLogEntries = pgTable(
  'trail_entries',
  {
    id: rowNumber().primaryKey(),
    /** Null for the operator's actions on the service, and for a user's actions on their own account. */
    organization_id: text().references(() => organizations.id),
    /** Null for the operator at the command line. */
    user_id: text().references(() => users.id),
    /** The action, such as `key.create`. */
    action: text().notNull(),
    /** The kind of the action's object. */
    object_kind: text().notNull(),
    object_id: text(),
    /** A short JSON object. */
    detail: text().notNull(),
    created_at_ms: integer().notNull(),
  },
  (table) => [
    index('trail_organization').on(table.organization_id, table.id),
    index('trail_action').on(table.organization_id, table.action, table.id),
    check('trail_detail', sql`${table.detail}::json IS NOT NULL`),
  ],
);
