import type { CheckName } from '../../src/maintenance/audit-checks.ts';

/** A query that finds the violations of a guarantee. */
export interface Check {
  readonly name: CheckName;
  readonly sql: string;
}

/** A database's own words in the text of the checks. A value is a number or the name of a parameter. */
export interface AuditWords {
  /** The last entry, and the last row of usage, before the start of the audit. */
  readonly after_entry: string;
  readonly after_usage: string;
  /** The time in milliseconds before which every hold must have ended. */
  readonly ended_before: string;
  /** The column with the number of a row of usage. */
  readonly usage_row: string;
  /** Returns the condition that a text is no UTC month. */
  notAMonth(column: string): string;
}

/** Open holds, as `ledger_entries AS hold`. None is at or before the checkpoint. */
export const openHolds = (after_entry: string) => `ledger_entries AS hold
  LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id
  WHERE hold.id > ${after_entry} AND hold.kind = 'hold' AND ended.id IS NULL`;

const PAID = `CASE WHEN kind IN ('top_up', 'refund') THEN credit_delta_micros ELSE 0 END`;

/**
 * All movements of credit. Within an organization their ids have the order of their commits, because a writer takes an
 * id while it has the organization's row. On SQLite it has the whole database. Movements before the start are one sum
 * for each organization. The charges of an old day stand at its last entry.
 */
const movements = (after_entry: string) => `
  SELECT id, organization_id, request_id, kind,
    credit_delta_micros AS credit_micros, held_delta_micros AS held_micros, ${PAID} AS paid_micros
  FROM ledger_entries WHERE id > ${after_entry}
  UNION ALL
  SELECT last_entry_id, organization_id, NULL, 'day', -charged_micros, 0, 0
  FROM ledger_days WHERE last_entry_id > ${after_entry}
  UNION ALL
  SELECT ${after_entry}, organization_id, NULL, 'checked', credit_micros, held_micros, paid_micros
  FROM audited_organizations WHERE ${after_entry} > 0`;

/** Spent and held micros by project, month and key. Sums of old days have no key. */
const months = (after_entry: string) => `
  SELECT project_id, month, api_key_id, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
  FROM (
    SELECT project_id, month, coalesce(api_key_id, '') AS api_key_id, -credit_delta_micros AS spent_micros,
      held_delta_micros AS held_micros
    FROM ledger_entries WHERE id > ${after_entry} AND kind IN ('hold', 'charge', 'release')
    UNION ALL
    SELECT project_id, substr(day, 1, 7), '', charged_micros, 0
    FROM ledger_days WHERE last_entry_id > ${after_entry}
    UNION ALL
    SELECT project_id, month, api_key_id, spent_micros, held_micros FROM audited_project_months
    WHERE ${after_entry} > 0
  ) AS spending
  GROUP BY project_id, month, api_key_id`;

/**
 * The ledger's five invariants, and the checks that they depend on. Each query returns the rows after the start that
 * break its guarantee. The queries share no code with the writers.
 */
export const bookChecks = ({
  after_entry,
  after_usage,
  ended_before,
  usage_row,
  notAMonth,
}: AuditWords): readonly Check[] => [
  {
    name: 'balance_equals_ledger',
    sql: `WITH ledger AS (
        SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
          sum(paid_micros) AS paid_micros
        FROM (${movements(after_entry)}) AS movements GROUP BY organization_id)
      SELECT organizations.id AS organization_id,
        organizations.credit_micros, coalesce(ledger.credit_micros, 0) AS ledger_credit_micros,
        organizations.held_micros, coalesce(ledger.held_micros, 0) AS ledger_held_micros,
        organizations.paid_micros, coalesce(ledger.paid_micros, 0) AS ledger_paid_micros
      FROM organizations LEFT JOIN ledger ON ledger.organization_id = organizations.id
      WHERE organizations.credit_micros <> coalesce(ledger.credit_micros, 0)
        OR organizations.held_micros <> coalesce(ledger.held_micros, 0)
        OR organizations.paid_micros <> coalesce(ledger.paid_micros, 0)`,
  },
  {
    name: 'held_equals_open_holds',
    sql: `WITH open AS (
        SELECT hold.organization_id, count(*) AS holds, sum(hold.held_delta_micros) AS held_micros
        FROM ${openHolds(after_entry)} GROUP BY hold.organization_id)
      SELECT organizations.id AS organization_id, organizations.open_holds AS counted,
        coalesce(open.holds, 0) AS found, organizations.held_micros,
        coalesce(open.held_micros, 0) AS found_held_micros
      FROM organizations LEFT JOIN open ON open.organization_id = organizations.id
      WHERE organizations.open_holds <> coalesce(open.holds, 0)
        OR organizations.held_micros <> coalesce(open.held_micros, 0)`,
  },
  {
    name: 'project_months_equal_ledger',
    sql: `WITH ledger AS MATERIALIZED (
        SELECT project_id, month, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
        FROM (${months(after_entry)}) AS by_key GROUP BY project_id, month),
      kept AS MATERIALIZED (
        SELECT project_id, month, spent_micros, held_micros FROM project_months WHERE api_key_id = '')
      SELECT ledger.project_id, ledger.month, kept.spent_micros, ledger.spent_micros AS ledger_spent_micros,
        kept.held_micros, ledger.held_micros AS ledger_held_micros
      FROM ledger LEFT JOIN kept ON kept.project_id = ledger.project_id AND kept.month = ledger.month
      WHERE kept.spent_micros IS DISTINCT FROM ledger.spent_micros OR kept.held_micros IS DISTINCT FROM ledger.held_micros
      UNION ALL
      SELECT kept.project_id, kept.month, kept.spent_micros, NULL, kept.held_micros, NULL
      FROM kept LEFT JOIN ledger ON ledger.project_id = kept.project_id AND ledger.month = kept.month
      WHERE ledger.month IS NULL AND (kept.spent_micros <> 0 OR kept.held_micros <> 0)`,
  },
  // A month of which a day is rolled up is left out, because the sum of a day does not say the key. No limit reads it.
  {
    name: 'api_key_months_equal_ledger',
    sql: `WITH ledger AS MATERIALIZED (${months(after_entry)}),
      rolled_up AS (SELECT max(substr(day, 1, 7)) AS last_month FROM ledger_days)
      SELECT coalesce(ledger.api_key_id, kept.api_key_id) AS api_key_id, coalesce(ledger.month, kept.month) AS month,
        kept.spent_micros, ledger.spent_micros AS ledger_spent_micros,
        kept.held_micros, ledger.held_micros AS ledger_held_micros
      FROM ledger FULL JOIN project_months AS kept ON kept.project_id = ledger.project_id
        AND kept.month = ledger.month AND kept.api_key_id = ledger.api_key_id
      WHERE coalesce(ledger.api_key_id, kept.api_key_id) <> ''
        AND coalesce(ledger.month, kept.month) > coalesce((SELECT last_month FROM rolled_up), '')
        AND (coalesce(kept.spent_micros, 0) <> coalesce(ledger.spent_micros, 0)
          OR coalesce(kept.held_micros, 0) <> coalesce(ledger.held_micros, 0))`,
  },
  {
    name: 'entries_are_whole',
    sql: `SELECT entry.id AS entry_id, entry.kind, entry.organization_id, entry.project_id, entry.month,
        entry.payment_id
      FROM ledger_entries AS entry LEFT JOIN projects ON projects.id = entry.project_id
      WHERE entry.id > ${after_entry} AND CASE WHEN entry.kind IN ('hold', 'charge', 'release')
        THEN projects.organization_id IS DISTINCT FROM entry.organization_id OR entry.month IS NULL
          OR ${notAMonth('entry.month')} OR entry.payment_id IS NOT NULL
          OR (entry.kind = 'hold') = (entry.hold_entry_id IS NOT NULL)
        ELSE entry.payment_id IS NULL OR entry.hold_entry_id IS NOT NULL OR entry.project_id IS NOT NULL END`,
  },
  {
    name: 'hold_has_one_end',
    sql: `SELECT ended.id AS entry_id, ended.kind, ended.hold_entry_id, -ended.credit_delta_micros AS charged_micros,
        hold.held_delta_micros AS hold_micros, -ended.held_delta_micros AS freed_micros
      FROM ledger_entries AS ended LEFT JOIN ledger_entries AS hold ON hold.id = ended.hold_entry_id
      WHERE ended.id > ${after_entry} AND ended.kind IN ('charge', 'release')
        AND (hold.kind IS DISTINCT FROM 'hold'
          OR ended.id < hold.id
          OR ended.organization_id <> hold.organization_id
          OR ended.project_id IS DISTINCT FROM hold.project_id
          OR ended.month IS DISTINCT FROM hold.month
          OR ended.held_delta_micros <> -hold.held_delta_micros
          OR -ended.credit_delta_micros > hold.held_delta_micros)
      UNION ALL
      SELECT second.id, 'second end', second.hold_entry_id, -second.credit_delta_micros, NULL,
        -second.held_delta_micros
      FROM ledger_entries AS second
      JOIN ledger_entries AS first ON first.hold_entry_id = second.hold_entry_id AND first.id < second.id
      WHERE second.id > ${after_entry}`,
  },
  {
    name: 'success_has_one_charge',
    sql: `SELECT usage.request_id, usage.status, usage.cost_micros, -charge.credit_delta_micros AS charged_micros,
        charge.id AS entry_id
      FROM usage_records AS usage
      LEFT JOIN ledger_entries AS hold ON hold.request_id = usage.request_id
      LEFT JOIN ledger_entries AS charge ON charge.hold_entry_id = hold.id AND charge.kind = 'charge'
      WHERE usage.${usage_row} > ${after_usage} AND CASE WHEN charge.id IS NULL THEN usage.cost_micros <> 0
        ELSE usage.status <> 200 OR usage.cost_micros <> -charge.credit_delta_micros
          OR usage.organization_id <> charge.organization_id OR usage.project_id <> charge.project_id END
      UNION ALL
      SELECT hold.request_id, NULL, NULL, -charge.credit_delta_micros, charge.id
      FROM ledger_entries AS charge JOIN ledger_entries AS hold ON hold.id = charge.hold_entry_id
      WHERE charge.id > ${after_entry} AND charge.kind = 'charge'
        AND NOT EXISTS (SELECT 1 FROM usage_records WHERE usage_records.request_id = hold.request_id)`,
  },
  {
    name: 'hold_was_covered',
    sql: `SELECT entry_id, organization_id, request_id, hold_micros, available_before_micros
      FROM (
        SELECT id AS entry_id, organization_id, request_id, kind, held_micros AS hold_micros,
          sum(credit_micros - held_micros) OVER running + held_micros AS available_before_micros
        FROM (${movements(after_entry)}) AS movements
        WINDOW running AS (PARTITION BY organization_id ORDER BY id ROWS UNBOUNDED PRECEDING)
      ) AS holds
      WHERE kind = 'hold' AND available_before_micros < hold_micros`,
  },
  {
    name: 'hold_ended_with_its_request',
    sql: `WITH open AS MATERIALIZED (
        SELECT hold.id AS entry_id, hold.organization_id, hold.request_id, hold.held_delta_micros AS hold_micros,
          hold.created_at_ms
        FROM ${openHolds(after_entry)})
      SELECT entry_id, organization_id, request_id, hold_micros, created_at_ms FROM open
      WHERE created_at_ms < ${ended_before}
        OR EXISTS (SELECT 1 FROM usage_records WHERE usage_records.request_id = open.request_id)`,
  },
  {
    name: 'payment_has_one_entry',
    sql: `SELECT payments.id AS payment_id, payments.kind, payments.status, payments.amount_micros,
        entry.id AS entry_id, entry.credit_delta_micros
      FROM payments LEFT JOIN ledger_entries AS entry ON entry.payment_id = payments.id
      WHERE (payments.status = 'completed') <> (entry.id IS NOT NULL)
        OR entry.organization_id <> payments.organization_id
        OR entry.kind <> payments.kind
        OR abs(entry.credit_delta_micros) <> payments.amount_micros`,
  },
  {
    name: 'paid_since_first_payment',
    sql: `SELECT id AS organization_id, paid_micros, first_paid_at_ms FROM organizations
      WHERE (paid_micros > 0) <> (first_paid_at_ms IS NOT NULL)`,
  },
  {
    name: 'days_equal_usage',
    sql: `WITH usage AS (
        SELECT organization_id, project_id, day, sum(cost_micros) AS cost_micros
        FROM usage_days WHERE status = 200 GROUP BY organization_id, project_id, day)
      SELECT coalesce(charged.organization_id, usage.organization_id) AS organization_id,
        coalesce(charged.project_id, usage.project_id) AS project_id, coalesce(charged.day, usage.day) AS day,
        charged.charged_micros, usage.cost_micros
      FROM ledger_days AS charged
      FULL JOIN usage ON usage.organization_id = charged.organization_id
        AND usage.project_id = charged.project_id AND usage.day = charged.day
      WHERE coalesce(charged.charged_micros, 0) <> coalesce(usage.cost_micros, 0)`,
  },
];

/** Guarantees that earlier versions did not enforce. */
export const WARNINGS: readonly Check[] = [
  {
    name: 'organization_has_owner',
    sql: `SELECT id AS organization_id, name FROM organizations
      WHERE NOT EXISTS (
        SELECT 1 FROM members WHERE members.organization_id = organizations.id AND members.role = 'owner')`,
  },
];

/** A check that only an audit of the whole history makes. */
export const CHECKPOINT_CHECK: Check = {
  name: 'checkpoint_equals_ledger',
  sql: `WITH movements AS (
      SELECT organization_id, credit_delta_micros AS credit_micros, held_delta_micros AS held_micros,
        ${PAID} AS paid_micros
      FROM ledger_entries WHERE id <= (SELECT last_entry_id FROM audit_checkpoints)
      UNION ALL
      SELECT organization_id, -charged_micros, 0, 0 FROM ledger_days
      WHERE last_entry_id <= (SELECT last_entry_id FROM audit_checkpoints)),
    ledger AS (
      SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
        sum(paid_micros) AS paid_micros
      FROM movements GROUP BY organization_id)
    SELECT coalesce(ledger.organization_id, noted.organization_id) AS organization_id,
      noted.credit_micros, ledger.credit_micros AS ledger_credit_micros,
      noted.held_micros, ledger.held_micros AS ledger_held_micros,
      noted.paid_micros, ledger.paid_micros AS ledger_paid_micros
    FROM ledger FULL JOIN audited_organizations AS noted ON noted.organization_id = ledger.organization_id
    WHERE noted.credit_micros IS DISTINCT FROM ledger.credit_micros
      OR noted.held_micros IS DISTINCT FROM ledger.held_micros
      OR noted.paid_micros IS DISTINCT FROM ledger.paid_micros`,
};

/** Selects the sums by organization that a clean audit adds to those before its start. */
export const checkedOrganizations = (after_entry: string, last_entry: string) => `
  SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
    sum(paid_micros) AS paid_micros
  FROM (
    SELECT organization_id, credit_delta_micros AS credit_micros, held_delta_micros AS held_micros,
      ${PAID} AS paid_micros
    FROM ledger_entries WHERE id > ${after_entry} AND id <= ${last_entry}
    UNION ALL
    SELECT organization_id, -charged_micros, 0, 0 FROM ledger_days WHERE last_entry_id > ${after_entry}
  ) AS movements
  GROUP BY organization_id`;

/** Selects the sums by project, month and key that a clean audit adds to those before its start. */
export const checkedMonths = (after_entry: string, last_entry: string) => `
  SELECT project_id, month, api_key_id, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
  FROM (
    SELECT project_id, month, coalesce(api_key_id, '') AS api_key_id, -credit_delta_micros AS spent_micros,
      held_delta_micros AS held_micros
    FROM ledger_entries
    WHERE id > ${after_entry} AND id <= ${last_entry} AND kind IN ('hold', 'charge', 'release')
    UNION ALL
    SELECT project_id, substr(day, 1, 7), '', charged_micros, 0 FROM ledger_days WHERE last_entry_id > ${after_entry}
  ) AS spending
  GROUP BY project_id, month, api_key_id`;

/**
 * Selects the sums that a clean audit of everything changes among the kept ones; those of a row to be deleted are null.
 * Few change, and whoever writes all of them keeps every request waiting.
 */
const changed = (checked: string, table: string, keys: readonly string[], sums: readonly string[]) => `
  WITH checked AS (${checked})
  SELECT ${keys.map((key) => `coalesce(checked.${key}, kept.${key}) AS ${key}`).join(', ')},
    ${sums.map((sum) => `checked.${sum} AS ${sum}`).join(', ')}
  FROM checked FULL JOIN ${table} AS kept ON ${keys.map((key) => `kept.${key} = checked.${key}`).join(' AND ')}
  WHERE ${sums.map((sum) => `checked.${sum} IS DISTINCT FROM kept.${sum}`).join(' OR ')}`;

export const changedOrganizations = (after_entry: string, last_entry: string) =>
  changed(
    checkedOrganizations(after_entry, last_entry),
    'audited_organizations',
    ['organization_id'],
    ['credit_micros', 'held_micros', 'paid_micros'],
  );

export const changedMonths = (after_entry: string, last_entry: string) =>
  changed(
    checkedMonths(after_entry, last_entry),
    'audited_project_months',
    ['project_id', 'month', 'api_key_id'],
    ['spent_micros', 'held_micros'],
  );
