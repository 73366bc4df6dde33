import { type Database, SQLiteError } from 'bun:sqlite';
import {
  type AuditOptions,
  type AuditStart,
  BEGINNING,
  GUARANTEES,
  VIOLATIONS_MAX,
} from '../../src/maintenance/audit-checks.ts';
import {
  type AuditCheck,
  type AuditReport,
  damagedReport,
  type Violation,
} from '../../src/store/audit-report.ts';
import {
  type AuditWords,
  bookChecks,
  CHECKPOINT_CHECK,
  type Check,
  changedMonths,
  changedOrganizations,
  checkedMonths,
  checkedOrganizations,
  openHolds,
  WARNINGS,
} from '../records/audit-checks.ts';
import { type Db, transact } from './connection.ts';

/** The words of SQLite. The values are parameters. */
const WORDS: AuditWords = {
  after_entry: '$last_entry_id',
  after_usage: '$last_usage_row_id',
  ended_before: '$ended_before_ms',
  usage_row: 'rowid',
  notAMonth: (column) => `${column} NOT GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]'`,
};

const OPEN_HOLDS = openHolds(WORDS.after_entry);

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
  CHECKPOINT_CHECK,
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

/** Returns the time of the last clean `continueAudit`; null for never. */
export function auditedAt_ms(db: Db): number | null {
  return checkpointOf(db.$client)?.checked_at_ms ?? null;
}

function reportOf(
  client: Database,
  start: AuditStart,
  file: AuditCheck | null,
  options: AuditOptions,
): AuditReport {
  const is_whole = start === BEGINNING;
  const values = { ...start, ended_before_ms: options.ended_before_ms ?? 0 };
  const asked = [...bookChecks(WORDS), ...(is_whole ? WHOLE_CHECKS : CONTINUED_CHECKS)];
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

/**
 * The result of a clean audit: its end, and the sums that it adds to those before its start. One of everything has those
 * that replace the kept ones instead, or null where none is to be kept.
 */
interface Checked extends AuditStart {
  readonly last_usage_request_id: string | null;
  readonly is_whole: boolean;
  readonly organizations: readonly SumOfOrganization[];
  readonly months: readonly SumOfMonth[];
}
type SumOfOrganization = Record<'credit_micros' | 'held_micros' | 'paid_micros', number | null> & {
  readonly organization_id: string;
};
type SumOfMonth = Record<'spent_micros' | 'held_micros', number | null> & {
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
  const is_whole = start === BEGINNING;
  const [organizations, months] = is_whole
    ? [changedOrganizations, changedMonths]
    : [checkedOrganizations, checkedMonths];
  return {
    last_entry_id,
    last_usage_row_id: usage?.row_id ?? 0,
    last_usage_request_id: usage?.request_id ?? null,
    is_whole,
    organizations: client
      .query<SumOfOrganization, typeof range>(organizations('$after', '$last_entry_id'))
      .all(range),
    months: client.query<SumOfMonth, typeof range>(months('$after', '$last_entry_id')).all(range),
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
    saveSums(client, checked);
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

/** Adds to the kept sums, or replaces them after an audit of everything. */
function saveSums(client: Database, { is_whole, organizations, months }: Checked): void {
  const forgetOrganization = client.query<never, [string]>(
    'DELETE FROM audited_organizations WHERE organization_id = ?',
  );
  const addOrganization = client.query<never, SumOfOrganization>(
    `INSERT INTO audited_organizations (organization_id, credit_micros, held_micros, paid_micros)
    VALUES ($organization_id, $credit_micros, $held_micros, $paid_micros)
    ON CONFLICT DO UPDATE SET credit_micros = credit_micros + excluded.credit_micros,
      held_micros = held_micros + excluded.held_micros, paid_micros = paid_micros + excluded.paid_micros`,
  );
  for (const row of organizations) {
    if (is_whole) forgetOrganization.run(row.organization_id);
    if (row.credit_micros !== null) addOrganization.run(row);
  }
  const forgetMonth = client.query<never, [string, string, string]>(
    'DELETE FROM audited_project_months WHERE project_id = ? AND month = ? AND api_key_id = ?',
  );
  const addMonth = client.query<never, SumOfMonth>(
    `INSERT INTO audited_project_months (project_id, month, api_key_id, spent_micros, held_micros)
    VALUES ($project_id, $month, $api_key_id, $spent_micros, $held_micros)
    ON CONFLICT DO UPDATE SET spent_micros = spent_micros + excluded.spent_micros,
      held_micros = held_micros + excluded.held_micros`,
  );
  for (const row of months) {
    if (is_whole) forgetMonth.run(row.project_id, row.month, row.api_key_id);
    if (row.spent_micros !== null) addMonth.run(row);
  }
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
