import { type Database, SQLiteError } from 'bun:sqlite';
import {
  type AuditOptions,
  type AuditStart,
  BEGINNING,
  type CheckName,
  GUARANTEES,
  VIOLATIONS_MAX,
} from '../../src/maintenance/audit-checks.ts';
import {
  type AuditCheck,
  type AuditReport,
  damagedReport,
  type Violation,
} from '../../src/store/audit-report.ts';
import { type Db, transact } from './connection.ts';

interface Check {
  readonly name: CheckName;
  readonly sql: string;
}

/** Open holds, as `ledger_entries AS hold`. None is at or before the checkpoint. */
const OPEN_HOLDS = `ledger_entries AS hold
  LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id
  WHERE hold.id > $last_entry_id AND hold.kind = 'hold' AND ended.id IS NULL`;

/**
 * All movements of credit in the order of their ids. Movements before the start are one sum for each organization. The
 * charges of an old day stand at its last entry.
 */
const MOVEMENTS = `SELECT id, organization_id, request_id, kind, credit_delta_micros AS credit_micros,
    held_delta_micros AS held_micros, iif(kind IN ('top_up', 'refund'), credit_delta_micros, 0) AS paid_micros
  FROM ledger_entries WHERE id > $last_entry_id
  UNION ALL
  SELECT last_entry_id, organization_id, NULL, 'day', -charged_micros, 0, 0
  FROM ledger_days WHERE last_entry_id > $last_entry_id
  UNION ALL
  SELECT $last_entry_id, organization_id, NULL, 'checked', credit_micros, held_micros, paid_micros
  FROM audited_organizations WHERE $last_entry_id > 0`;

/** Spent and held micros by project, month and key. Sums of old days have no key. */
const MONTHS = `SELECT project_id, month, api_key_id, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
  FROM (
    SELECT project_id, month, coalesce(api_key_id, '') AS api_key_id, -credit_delta_micros AS spent_micros,
      held_delta_micros AS held_micros
    FROM ledger_entries WHERE id > $last_entry_id AND kind IN ('hold', 'charge', 'release')
    UNION ALL
    SELECT project_id, substr(day, 1, 7), '', charged_micros, 0
    FROM ledger_days WHERE last_entry_id > $last_entry_id
    UNION ALL
    SELECT project_id, month, api_key_id, spent_micros, held_micros FROM audited_project_months
    WHERE $last_entry_id > 0)
  GROUP BY project_id, month, api_key_id`;

/**
 * The ledger's five invariants, and the checks that they depend on. Each query returns the rows after the start that
 * break its guarantee. The queries share no code with the writers.
 */
const CHECKS: readonly Check[] = [
  {
    name: 'balance_equals_ledger',
    sql: `WITH ledger AS (
        SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
          sum(paid_micros) AS paid_micros
        FROM (${MOVEMENTS}) GROUP BY organization_id)
      SELECT organizations.id AS organization_id,
        organizations.credit_micros, coalesce(ledger.credit_micros, 0) AS ledger_credit_micros,
        organizations.held_micros, coalesce(ledger.held_micros, 0) AS ledger_held_micros,
        organizations.paid_micros, coalesce(ledger.paid_micros, 0) AS ledger_paid_micros
      FROM organizations LEFT JOIN ledger ON ledger.organization_id = organizations.id
      WHERE organizations.credit_micros <> ledger_credit_micros
        OR organizations.held_micros <> ledger_held_micros
        OR organizations.paid_micros <> ledger_paid_micros`,
  },
  {
    name: 'held_equals_open_holds',
    sql: `WITH open AS (
        SELECT hold.organization_id, count(*) AS holds, sum(hold.held_delta_micros) AS held_micros
        FROM ${OPEN_HOLDS} GROUP BY hold.organization_id)
      SELECT organizations.id AS organization_id, organizations.open_holds AS counted,
        coalesce(open.holds, 0) AS found, organizations.held_micros,
        coalesce(open.held_micros, 0) AS found_held_micros
      FROM organizations LEFT JOIN open ON open.organization_id = organizations.id
      WHERE counted <> found OR organizations.held_micros <> found_held_micros`,
  },
  {
    name: 'project_months_equal_ledger',
    sql: `WITH ledger AS MATERIALIZED (
        SELECT project_id, month, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
        FROM (${MONTHS}) AS by_key GROUP BY project_id, month),
      kept AS MATERIALIZED (
        SELECT project_id, month, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
        FROM project_months GROUP BY project_id, month)
      SELECT ledger.project_id, ledger.month, kept.spent_micros, ledger.spent_micros AS ledger_spent_micros,
        kept.held_micros, ledger.held_micros AS ledger_held_micros
      FROM ledger LEFT JOIN kept ON kept.project_id = ledger.project_id AND kept.month = ledger.month
      WHERE kept.spent_micros IS NOT ledger.spent_micros OR kept.held_micros IS NOT ledger.held_micros
      UNION ALL
      SELECT kept.project_id, kept.month, kept.spent_micros, NULL, kept.held_micros, NULL
      FROM kept LEFT JOIN ledger ON ledger.project_id = kept.project_id AND ledger.month = kept.month
      WHERE ledger.month IS NULL AND (kept.spent_micros <> 0 OR kept.held_micros <> 0)`,
  },
  // A month of which a day is rolled up is left out, because the sum of a day does not say the key.
  {
    name: 'api_key_months_equal_ledger',
    sql: `WITH ledger AS MATERIALIZED (${MONTHS}),
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
      WHERE entry.id > $last_entry_id AND CASE WHEN entry.kind IN ('hold', 'charge', 'release')
        THEN projects.organization_id IS NOT entry.organization_id OR entry.month IS NULL
          OR entry.month NOT GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]' OR entry.payment_id IS NOT NULL
          OR (entry.kind = 'hold') = (entry.hold_entry_id IS NOT NULL)
        ELSE entry.payment_id IS NULL OR entry.hold_entry_id IS NOT NULL OR entry.project_id IS NOT NULL END`,
  },
  {
    name: 'hold_has_one_end',
    sql: `SELECT ended.id AS entry_id, ended.kind, ended.hold_entry_id, -ended.credit_delta_micros AS charged_micros,
        hold.held_delta_micros AS hold_micros, -ended.held_delta_micros AS freed_micros
      FROM ledger_entries AS ended LEFT JOIN ledger_entries AS hold ON hold.id = ended.hold_entry_id
      WHERE ended.id > $last_entry_id AND ended.kind IN ('charge', 'release') AND (hold.kind IS NOT 'hold'
        OR ended.id < hold.id
        OR ended.organization_id <> hold.organization_id
        OR ended.project_id IS NOT hold.project_id
        OR ended.month IS NOT hold.month
        OR ended.held_delta_micros <> -hold.held_delta_micros
        OR -ended.credit_delta_micros > hold.held_delta_micros)
      UNION ALL
      SELECT second.id, 'second end', second.hold_entry_id, -second.credit_delta_micros, NULL,
        -second.held_delta_micros
      FROM ledger_entries AS second
      JOIN ledger_entries AS first ON first.hold_entry_id = second.hold_entry_id AND first.id < second.id
      WHERE second.id > $last_entry_id`,
  },
  {
    name: 'success_has_one_charge',
    sql: `SELECT usage.request_id, usage.status, usage.cost_micros, -charge.credit_delta_micros AS charged_micros,
        charge.id AS entry_id
      FROM usage_records AS usage
      LEFT JOIN ledger_entries AS hold ON hold.request_id = usage.request_id
      LEFT JOIN ledger_entries AS charge ON charge.hold_entry_id = hold.id AND charge.kind = 'charge'
      WHERE usage.rowid > $last_usage_row_id AND CASE WHEN charge.id IS NULL THEN usage.cost_micros <> 0
        ELSE usage.status <> 200 OR usage.cost_micros <> -charge.credit_delta_micros
          OR usage.organization_id <> charge.organization_id OR usage.project_id <> charge.project_id END
      UNION ALL
      SELECT hold.request_id, NULL, NULL, -charge.credit_delta_micros, charge.id
      FROM ledger_entries AS charge JOIN ledger_entries AS hold ON hold.id = charge.hold_entry_id
      WHERE charge.id > $last_entry_id AND charge.kind = 'charge'
        AND NOT EXISTS (SELECT 1 FROM usage_records WHERE usage_records.request_id = hold.request_id)`,
  },
  {
    name: 'hold_was_covered',
    sql: `SELECT entry_id, organization_id, request_id, hold_micros, available_before_micros
      FROM (
        SELECT id AS entry_id, organization_id, request_id, kind, held_micros AS hold_micros,
          sum(credit_micros - held_micros) OVER running + held_micros AS available_before_micros
        FROM (${MOVEMENTS})
        WINDOW running AS (PARTITION BY organization_id ORDER BY id ROWS UNBOUNDED PRECEDING))
      WHERE kind = 'hold' AND available_before_micros < hold_micros`,
  },
  {
    name: 'hold_ended_with_its_request',
    sql: `WITH open AS MATERIALIZED (
        SELECT hold.id AS entry_id, hold.organization_id, hold.request_id, hold.held_delta_micros AS hold_micros,
          hold.created_at_ms
        FROM ${OPEN_HOLDS})
      SELECT entry_id, organization_id, request_id, hold_micros, created_at_ms FROM open WHERE created_at_ms < $ended_before_ms
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
const WARNINGS: readonly Check[] = [
  {
    name: 'organization_has_owner',
    sql: `SELECT id AS organization_id, name FROM organizations
      WHERE NOT EXISTS (
        SELECT 1 FROM members WHERE members.organization_id = organizations.id AND members.role = 'owner')`,
  },
];

/** The first check, because rows of a damaged file mean nothing. */
const FILE_CHECK: Check = {
  name: 'file_is_sound',
  sql: `SELECT quick_check AS problem FROM pragma_quick_check WHERE quick_check <> 'ok'`,
};

/** Checks that only an audit of the whole history makes. */
const WHOLE_CHECKS: readonly Check[] = [
  {
    name: 'references_exist',
    sql: 'SELECT "table", rowid AS row_id, parent AS missing_in FROM pragma_foreign_key_check',
  },
  {
    name: 'checkpoint_equals_ledger',
    sql: `WITH movements AS (
        SELECT organization_id, credit_delta_micros AS credit_micros, held_delta_micros AS held_micros,
          iif(kind IN ('top_up', 'refund'), credit_delta_micros, 0) AS paid_micros
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
      WHERE noted.credit_micros IS NOT ledger.credit_micros OR noted.held_micros IS NOT ledger.held_micros
        OR noted.paid_micros IS NOT ledger.paid_micros`,
  },
];

/** The tables that grow with every request. An audit from a checkpoint checks the references of their new rows only. */
const GROWING_TABLES = ['ledger_entries', 'usage_records'];

/** Checks that only an audit from a checkpoint makes. */
const CONTINUED_CHECKS: readonly Check[] = [
  {
    name: 'references_exist',
    sql: `SELECT violation."table", violation.rowid AS row_id, violation.parent AS missing_in
      FROM pragma_table_list AS tables JOIN pragma_foreign_key_check(tables.name) AS violation
      WHERE tables.schema = 'main' AND tables.type = 'table'
        AND tables.name NOT IN (${GROWING_TABLES.map((name) => `'${name}'`).join(', ')})
      UNION ALL
      SELECT 'ledger_entries', entry.id, CASE
          WHEN organizations.id IS NULL THEN 'organizations'
          WHEN entry.project_id IS NOT NULL AND projects.id IS NULL THEN 'projects'
          WHEN entry.payment_id IS NOT NULL AND payments.id IS NULL THEN 'payments'
          WHEN entry.hold_entry_id IS NOT NULL AND hold.id IS NULL THEN 'ledger_entries' END AS missing_in
      FROM ledger_entries AS entry
      LEFT JOIN organizations ON organizations.id = entry.organization_id
      LEFT JOIN projects ON projects.id = entry.project_id
      LEFT JOIN payments ON payments.id = entry.payment_id
      LEFT JOIN ledger_entries AS hold ON hold.id = entry.hold_entry_id
      WHERE entry.id > $last_entry_id AND missing_in IS NOT NULL
      UNION ALL
      SELECT 'usage_records', usage.rowid, CASE
          WHEN organizations.id IS NULL THEN 'organizations'
          WHEN projects.id IS NULL THEN 'projects'
          WHEN api_keys.id IS NULL THEN 'api_keys' END AS missing_in
      FROM usage_records AS usage
      LEFT JOIN organizations ON organizations.id = usage.organization_id
      LEFT JOIN projects ON projects.id = usage.project_id
      LEFT JOIN api_keys ON api_keys.id = usage.api_key_id
      WHERE usage.rowid > $last_usage_row_id AND missing_in IS NOT NULL`,
  },
];

/**
 * Checks the stored money against the ledger, the usage and the payments, all in one snapshot. Its time grows with the
 * history, so beside a busy server it needs its own thread or process, and connection. If the file's structure is
 * damaged, it checks nothing else.
 */
export function runAudit(db: Db, options: AuditOptions = {}): AuditReport {
  const file = fileAudited(db.$client);
  if (file.violations.length > 0) return damagedReport(file);
  return db.transaction(() => reportOf(db.$client, BEGINNING, file, options), { behavior: 'deferred' });
}

/**
 * Checks what is new since the last clean audit, and the balances as a whole. Without an earlier one, or with `whole`,
 * checks everything as `runAudit` does. A clean audit moves the checkpoint, where the next one continues. Only
 * `runAudit` finds later changes to rows that were already checked.
 */
export function continueAudit(
  db: Db,
  given: { readonly now_ms: number; readonly whole?: boolean },
): AuditReport {
  const client = db.$client;
  const is_whole = given.whole === true || checkpointOf(client) === null;
  const file = is_whole ? fileAudited(client) : null;
  if (file !== null && file.violations.length > 0) return damagedReport(file);
  const { report, found, checked } = db.transaction(
    () => {
      const found = checkpointOf(client);
      const start = is_whole || found === null ? BEGINNING : startOf(client, found);
      const report = reportOf(client, start, file, {});
      return { report, found, checked: report.ok ? checkedUpTo(client, start) : null };
    },
    { behavior: 'deferred' },
  );
  if (checked !== null) saveCheckpoint(db, found, checked, given.now_ms);
  return report;
}

/** Returns the time of the last clean audit of everything by `continueAudit`; null for never. */
export function auditedWholeAt_ms(db: Db): number | null {
  return checkpointOf(db.$client)?.checked_whole_at_ms ?? null;
}

function reportOf(
  client: Database,
  start: AuditStart,
  file: AuditCheck | null,
  options: AuditOptions,
): AuditReport {
  const is_whole = start === BEGINNING;
  const values = { ...start, ended_before_ms: options.ended_before_ms ?? 0 };
  const asked = [...CHECKS, ...(is_whole ? WHOLE_CHECKS : CONTINUED_CHECKS)];
  const audits = asked.map((check) => audited(client, check, values));
  const checks = file === null ? audits : [file, ...audits];
  const open = client
    .query<{ count: number }, { last_entry_id: number }>(`SELECT count(*) AS count FROM ${OPEN_HOLDS}`)
    .get({ last_entry_id: start.last_entry_id });
  return {
    ok: checks.every(({ violations }) => violations.length === 0),
    after_entry_id: start.last_entry_id,
    checks,
    warnings: WARNINGS.map((check) => audited(client, check)),
    open_holds: open?.count ?? 0,
  };
}

interface Checkpoint extends AuditStart {
  readonly last_usage_request_id: string | null;
  readonly checked_at_ms: number;
  readonly checked_whole_at_ms: number;
}

function checkpointOf(client: Database): Checkpoint | null {
  return client
    .query<Checkpoint, []>(
      `SELECT last_entry_id, last_usage_row_id, last_usage_request_id, checked_at_ms, checked_whole_at_ms
      FROM audit_checkpoints`,
    )
    .get();
}

/** Reads all usage again if the row at the checkpoint differs: rows were deleted, or the file was rebuilt. */
function startOf(client: Database, checkpoint: Checkpoint): AuditStart {
  const { last_entry_id, last_usage_row_id, last_usage_request_id } = checkpoint;
  const row = client
    .query<{ request_id: string }, [number]>('SELECT request_id FROM usage_records WHERE rowid = ?')
    .get(last_usage_row_id);
  const is_same = row !== null && row.request_id === last_usage_request_id;
  return { last_entry_id, last_usage_row_id: is_same ? last_usage_row_id : 0 };
}

/** The result of a clean audit: its end, and the sums that it adds to those before its start. */
interface Checked extends AuditStart {
  readonly last_usage_request_id: string | null;
  readonly is_whole: boolean;
  readonly organizations: readonly SumOfOrganization[];
  readonly months: readonly SumOfMonth[];
}
type SumOfOrganization = Record<'credit_micros' | 'held_micros' | 'paid_micros', number> & {
  readonly organization_id: string;
};
type SumOfMonth = Record<'spent_micros' | 'held_micros', number> & {
  readonly project_id: string;
  readonly month: string;
  readonly api_key_id: string;
};

/**
 * Returns the range up to the first open hold. Rows before it change no more, except that sums replace old days. The
 * next audit reads the usage of later entries again.
 */
function checkedUpTo(client: Database, start: AuditStart): Checked {
  const { last_entry_id } = client
    .query<{ last_entry_id: number }, { last_entry_id: number }>(
      `SELECT max($last_entry_id, coalesce((SELECT min(hold.id) - 1 FROM ${OPEN_HOLDS}),
        (SELECT max(id) FROM ledger_entries), 0), coalesce((SELECT max(last_entry_id) FROM ledger_days), 0))
        AS last_entry_id`,
    )
    .get({ last_entry_id: start.last_entry_id }) ?? { last_entry_id: start.last_entry_id };
  const usage = client
    .query<{ row_id: number; request_id: string }, { last_entry_id: number }>(
      `SELECT rowid AS row_id, request_id FROM usage_records
      WHERE rowid < coalesce((
        SELECT min(usage.rowid) FROM ledger_entries AS hold
        JOIN usage_records AS usage ON usage.request_id = hold.request_id
        WHERE hold.id > $last_entry_id), 9223372036854775807)
      ORDER BY rowid DESC LIMIT 1`,
    )
    .get({ last_entry_id });
  const range = { after: start.last_entry_id, last_entry_id };
  return {
    last_entry_id,
    last_usage_row_id: usage?.row_id ?? 0,
    last_usage_request_id: usage?.request_id ?? null,
    is_whole: start === BEGINNING,
    organizations: client
      .query<SumOfOrganization, typeof range>(
        `SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
          sum(paid_micros) AS paid_micros
        FROM (
          SELECT organization_id, credit_delta_micros AS credit_micros, held_delta_micros AS held_micros,
            iif(kind IN ('top_up', 'refund'), credit_delta_micros, 0) AS paid_micros
          FROM ledger_entries WHERE id > $after AND id <= $last_entry_id
          UNION ALL
          SELECT organization_id, -charged_micros, 0, 0 FROM ledger_days WHERE last_entry_id > $after)
        GROUP BY organization_id`,
      )
      .all(range),
    months: client
      .query<SumOfMonth, typeof range>(
        `SELECT project_id, month, api_key_id, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
        FROM (
          SELECT project_id, month, coalesce(api_key_id, '') AS api_key_id, -credit_delta_micros AS spent_micros,
            held_delta_micros AS held_micros
          FROM ledger_entries
          WHERE id > $after AND id <= $last_entry_id AND kind IN ('hold', 'charge', 'release')
          UNION ALL
          SELECT project_id, substr(day, 1, 7), '', charged_micros, 0 FROM ledger_days WHERE last_entry_id > $after)
        GROUP BY project_id, month, api_key_id`,
      )
      .all(range),
  };
}

/** Moves the checkpoint, unless another audit has moved it meanwhile. */
function saveCheckpoint(db: Db, found: Checkpoint | null, checked: Checked, now_ms: number): void {
  const client = db.$client;
  transact(db, () => {
    const current = checkpointOf(client);
    if (
      current?.last_entry_id !== found?.last_entry_id ||
      current?.checked_whole_at_ms !== found?.checked_whole_at_ms
    ) {
      return;
    }
    if (checked.is_whole) {
      client.run('DELETE FROM audited_organizations');
      client.run('DELETE FROM audited_project_months');
    }
    const addOrganization = client.query<never, SumOfOrganization>(
      `INSERT INTO audited_organizations (organization_id, credit_micros, held_micros, paid_micros)
      VALUES ($organization_id, $credit_micros, $held_micros, $paid_micros)
      ON CONFLICT DO UPDATE SET credit_micros = credit_micros + excluded.credit_micros,
        held_micros = held_micros + excluded.held_micros, paid_micros = paid_micros + excluded.paid_micros`,
    );
    for (const sum of checked.organizations) addOrganization.run(sum);
    const addMonth = client.query<never, SumOfMonth>(
      `INSERT INTO audited_project_months (project_id, month, api_key_id, spent_micros, held_micros)
      VALUES ($project_id, $month, $api_key_id, $spent_micros, $held_micros)
      ON CONFLICT DO UPDATE SET spent_micros = spent_micros + excluded.spent_micros,
        held_micros = held_micros + excluded.held_micros`,
    );
    for (const sum of checked.months) addMonth.run(sum);
    client
      .query(`INSERT OR REPLACE INTO audit_checkpoints (id, last_entry_id, last_usage_row_id, last_usage_request_id,
          checked_at_ms, checked_whole_at_ms) VALUES (1, ?, ?, ?, ?, ?)`)
      .run(
        checked.last_entry_id,
        checked.last_usage_row_id,
        checked.last_usage_request_id,
        now_ms,
        checked.is_whole ? now_ms : (found?.checked_whole_at_ms ?? now_ms),
      );
  });
}

/** Checks the file. SQLite lists most damage, and throws on some. */
function fileAudited(client: Database): AuditCheck {
  try {
    return audited(client, FILE_CHECK);
  } catch (error) {
    if (!(error instanceof SQLiteError && error.code?.startsWith('SQLITE_CORRUPT'))) throw error;
    const { name } = FILE_CHECK;
    return { name, guarantee: GUARANTEES[name], violations: [{ problem: error.message }] };
  }
}

function audited(client: Database, check: Check, values: Readonly<Record<string, number>> = {}): AuditCheck {
  const { name, sql } = check;
  const used = Object.entries(values).filter(([value]) => sql.includes(`$${value}`));
  const query = client.query<Violation, Record<string, number>>(`${sql} LIMIT ${VIOLATIONS_MAX}`);
  return { name, guarantee: GUARANTEES[name], violations: query.all(Object.fromEntries(used)) };
}
