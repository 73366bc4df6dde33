import { is, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
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
import type { Executor } from './connection.ts';
import { postgresError } from './errors.ts';
import { AUDIT_LOCK } from './locks.ts';
import { ONE_STATE } from './one-state.ts';
import * as schema from './schema.ts';

interface Check {
  readonly name: CheckName;
  readonly sql: string;
}

/** Open holds, as `ledger_entries AS hold`. None is at or before the checkpoint. */
const openHolds = (last_entry_id: number) => `ledger_entries AS hold
  LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id
  WHERE hold.id > ${last_entry_id} AND hold.kind = 'hold' AND ended.id IS NULL`;

const PAID = `CASE WHEN kind IN ('top_up', 'refund') THEN credit_delta_micros ELSE 0 END`;

/**
 * All movements of credit. Within an organization their ids have the order of their commits, because a writer takes an
 * id while it has the organization's row. Movements before the start are one sum for each organization. The charges of
 * an old day stand at its last entry.
 */
const movements = (last_entry_id: number) => `SELECT id, organization_id, request_id, kind,
    credit_delta_micros AS credit_micros, held_delta_micros AS held_micros, ${PAID} AS paid_micros
  FROM ledger_entries WHERE id > ${last_entry_id}
  UNION ALL
  SELECT last_entry_id, organization_id, NULL, 'day', -charged_micros, 0, 0
  FROM ledger_days WHERE last_entry_id > ${last_entry_id}
  UNION ALL
  SELECT ${last_entry_id}, organization_id, NULL, 'checked', credit_micros, held_micros, paid_micros
  FROM audited_organizations WHERE ${last_entry_id} > 0`;

/** Spent and held micros by project, month and key. Sums of old days have no key. */
const months = (
  last_entry_id: number,
) => `SELECT project_id, month, api_key_id, sum(spent_micros) AS spent_micros,
    sum(held_micros) AS held_micros
  FROM (
    SELECT project_id, month, coalesce(api_key_id, '') AS api_key_id, -credit_delta_micros AS spent_micros,
      held_delta_micros AS held_micros
    FROM ledger_entries WHERE id > ${last_entry_id} AND kind IN ('hold', 'charge', 'release')
    UNION ALL
    SELECT project_id, substr(day, 1, 7), '', charged_micros, 0
    FROM ledger_days WHERE last_entry_id > ${last_entry_id}
    UNION ALL
    SELECT project_id, month, api_key_id, spent_micros, held_micros FROM audited_project_months
    WHERE ${last_entry_id} > 0
  ) AS spending
  GROUP BY project_id, month, api_key_id`;

/**
 * The ledger's five invariants, and the checks that they depend on. Each query returns the rows after the start that
 * break its guarantee. The queries share no code with the writers.
 */
const bookChecks = (
  { last_entry_id, last_usage_row_id }: AuditStart,
  { ended_before_ms = 0 }: AuditOptions,
): readonly Check[] => [
  {
    name: 'balance_equals_ledger',
    sql: `WITH ledger AS (
        SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
          sum(paid_micros) AS paid_micros
        FROM (${movements(last_entry_id)}) AS movements GROUP BY organization_id)
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
        FROM ${openHolds(last_entry_id)} GROUP BY hold.organization_id)
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
        FROM (${months(last_entry_id)}) AS by_key GROUP BY project_id, month),
      kept AS MATERIALIZED (
        SELECT project_id, month, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
        FROM project_months GROUP BY project_id, month)
      SELECT ledger.project_id, ledger.month, kept.spent_micros, ledger.spent_micros AS ledger_spent_micros,
        kept.held_micros, ledger.held_micros AS ledger_held_micros
      FROM ledger LEFT JOIN kept ON kept.project_id = ledger.project_id AND kept.month = ledger.month
      WHERE kept.spent_micros IS DISTINCT FROM ledger.spent_micros OR kept.held_micros IS DISTINCT FROM ledger.held_micros
      UNION ALL
      SELECT kept.project_id, kept.month, kept.spent_micros, NULL, kept.held_micros, NULL
      FROM kept LEFT JOIN ledger ON ledger.project_id = kept.project_id AND ledger.month = kept.month
      WHERE ledger.month IS NULL AND (kept.spent_micros <> 0 OR kept.held_micros <> 0)`,
  },
  // A month of which a day is rolled up is left out, because the sum of a day does not say the key.
  {
    name: 'api_key_months_equal_ledger',
    sql: `WITH ledger AS MATERIALIZED (${months(last_entry_id)}),
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
      WHERE entry.id > ${last_entry_id} AND CASE WHEN entry.kind IN ('hold', 'charge', 'release')
        THEN projects.organization_id IS DISTINCT FROM entry.organization_id OR entry.month IS NULL
          OR entry.month !~ '^[0-9]{4}-[01][0-9]$' OR entry.payment_id IS NOT NULL
          OR (entry.kind = 'hold') = (entry.hold_entry_id IS NOT NULL)
        ELSE entry.payment_id IS NULL OR entry.hold_entry_id IS NOT NULL OR entry.project_id IS NOT NULL END`,
  },
  {
    name: 'hold_has_one_end',
    sql: `SELECT ended.id AS entry_id, ended.kind, ended.hold_entry_id, -ended.credit_delta_micros AS charged_micros,
        hold.held_delta_micros AS hold_micros, -ended.held_delta_micros AS freed_micros
      FROM ledger_entries AS ended LEFT JOIN ledger_entries AS hold ON hold.id = ended.hold_entry_id
      WHERE ended.id > ${last_entry_id} AND ended.kind IN ('charge', 'release')
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
      WHERE second.id > ${last_entry_id}`,
  },
  {
    name: 'success_has_one_charge',
    sql: `SELECT usage.request_id, usage.status, usage.cost_micros, -charge.credit_delta_micros AS charged_micros,
        charge.id AS entry_id
      FROM usage_records AS usage
      LEFT JOIN ledger_entries AS hold ON hold.request_id = usage.request_id
      LEFT JOIN ledger_entries AS charge ON charge.hold_entry_id = hold.id AND charge.kind = 'charge'
      WHERE usage.row_id > ${last_usage_row_id} AND CASE WHEN charge.id IS NULL THEN usage.cost_micros <> 0
        ELSE usage.status <> 200 OR usage.cost_micros <> -charge.credit_delta_micros
          OR usage.organization_id <> charge.organization_id OR usage.project_id <> charge.project_id END
      UNION ALL
      SELECT hold.request_id, NULL, NULL, -charge.credit_delta_micros, charge.id
      FROM ledger_entries AS charge JOIN ledger_entries AS hold ON hold.id = charge.hold_entry_id
      WHERE charge.id > ${last_entry_id} AND charge.kind = 'charge'
        AND NOT EXISTS (SELECT 1 FROM usage_records WHERE usage_records.request_id = hold.request_id)`,
  },
  {
    name: 'hold_was_covered',
    sql: `SELECT entry_id, organization_id, request_id, hold_micros, available_before_micros
      FROM (
        SELECT id AS entry_id, organization_id, request_id, kind, held_micros AS hold_micros,
          sum(credit_micros - held_micros) OVER running + held_micros AS available_before_micros
        FROM (${movements(last_entry_id)}) AS movements
        WINDOW running AS (PARTITION BY organization_id ORDER BY id ROWS UNBOUNDED PRECEDING)
      ) AS holds
      WHERE kind = 'hold' AND available_before_micros < hold_micros`,
  },
  {
    name: 'hold_ended_with_its_request',
    sql: `WITH open AS MATERIALIZED (
        SELECT hold.id AS entry_id, hold.organization_id, hold.request_id, hold.held_delta_micros AS hold_micros,
          hold.created_at_ms
        FROM ${openHolds(last_entry_id)})
      SELECT entry_id, organization_id, request_id, hold_micros, created_at_ms FROM open
      WHERE created_at_ms < ${ended_before_ms}
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
  referencesCheck({ last_entry_id, last_usage_row_id }),
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

/**
 * Checks every reference of the schema, even if its constraint was dropped or disabled. In tables that grow with every
 * request it reads only rows after the start.
 */
function referencesCheck({ last_entry_id, last_usage_row_id }: AuditStart): Check {
  const behind_start: Readonly<Record<string, string>> = {
    ledger_entries: ` AND child.id > ${last_entry_id}`,
    usage_records: ` AND child.row_id > ${last_usage_row_id}`,
  };
  const missing = TABLES.flatMap(({ name, foreignKeys, ...table }) => {
    const keys = [
      ...table.columns.filter(({ primary }) => primary),
      ...table.primaryKeys.flatMap(({ columns }) => columns),
    ].map((column) => `child.${column.name}`);
    return foreignKeys.map((key) => {
      const { columns, foreignTable, foreignColumns } = key.reference();
      const parent = getTableConfig(foreignTable).name;
      const from = `child.${columns[0]?.name}`;
      const to = `parent.${foreignColumns[0]?.name}`;
      return `SELECT '${name}' AS "table", concat_ws(' ', ${keys.join(', ')}) AS row_id, '${parent}' AS missing_in
        FROM ${name} AS child LEFT JOIN ${parent} AS parent ON ${to} = ${from}
        WHERE ${from} IS NOT NULL AND ${to} IS NULL${behind_start[name] ?? ''}`;
    });
  });
  return { name: 'references_exist', sql: missing.join(' UNION ALL ') };
}

const TABLES = Object.values(schema)
  .filter((value) => is(value, PgTable))
  .map((table) => getTableConfig(table));

/** Checks that only an audit of the whole history makes. */
const CHECKPOINT_CHECK: Check = {
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

/**
 * Checks the stored money against the ledger, the usage and the payments in one snapshot, while nodes serve. Its time
 * grows with the history. If the files are damaged, it checks nothing else.
 */
export async function runAudit(executor: Executor, options: AuditOptions = {}): Promise<AuditReport> {
  const file = await fileAudited(executor);
  if (file.violations.length > 0) return damagedReport(file);
  return await executor.transaction((snapshot) => auditSnapshot(snapshot, options, file), ONE_STATE);
}

/**
 * Runs `runAudit` in an open transaction, without the check of the files. The transaction needs isolation level
 * `repeatable read`, or must be the only writer.
 */
export async function auditSnapshot(
  snapshot: Executor,
  options: AuditOptions = {},
  file: AuditCheck | null = null,
): Promise<AuditReport> {
  return await reportOf(snapshot, BEGINNING, file, options);
}

/**
 * Checks what is new since the last clean audit, and the balances as a whole. Without an earlier one, or with `whole`,
 * checks everything as `runAudit` does. A clean audit moves the checkpoint, where the next one continues. Only
 * `runAudit` finds later changes to rows that were already checked.
 */
export async function continueAudit(
  executor: Executor,
  given: { readonly now_ms: number; readonly whole?: boolean; readonly writers_deadline_ms?: number },
): Promise<AuditReport> {
  const is_whole = given.whole === true || (await checkpointOf(executor)) === null;
  const file = is_whole ? await fileAudited(executor) : null;
  if (file !== null && file.violations.length > 0) return damagedReport(file);
  const written = await writtenUpTo(executor, given.writers_deadline_ms ?? WRITERS_DEADLINE_MS);
  const { report, found, checked } = await executor.transaction(async (snapshot) => {
    const found = await checkpointOf(snapshot);
    const start = is_whole || found === null ? BEGINNING : found;
    const report = await reportOf(snapshot, start, file, {});
    const checked = report.ok && written !== null ? await checkedUpTo(snapshot, start, written) : null;
    return { report, found, checked };
  }, ONE_STATE);
  if (checked !== null) await saveCheckpoint(executor, found, checked, given.now_ms);
  return report;
}

/** Returns the time of the last clean audit of everything by `continueAudit`; null for never. */
export async function auditedWholeAt_ms(executor: Executor): Promise<number | null> {
  return (await checkpointOf(executor))?.checked_whole_at_ms ?? null;
}

async function reportOf(
  snapshot: Executor,
  start: AuditStart,
  file: AuditCheck | null,
  options: AuditOptions,
): Promise<AuditReport> {
  // An audit of a long history takes longer than any request may.
  await snapshot.execute(sql`SELECT set_config('statement_timeout', '0', true)`);
  const is_whole = start === BEGINNING;
  const asked = [...bookChecks(start, options), ...(is_whole ? [CHECKPOINT_CHECK] : [])];
  const checks = file === null ? [] : [file];
  for (const check of asked) checks.push(await audited(snapshot, check));
  const warnings: AuditCheck[] = [];
  for (const check of WARNINGS) warnings.push(await audited(snapshot, check));
  const open = await rowOf<{ holds: number }>(
    snapshot,
    `SELECT count(*) AS holds FROM ${openHolds(start.last_entry_id)}`,
  );
  return {
    ok: checks.every(({ violations }) => violations.length === 0),
    after_entry_id: start.last_entry_id,
    checks,
    warnings,
    open_holds: open?.holds ?? 0,
  };
}

interface Checkpoint extends AuditStart {
  readonly checked_whole_at_ms: number;
}

function checkpointOf(executor: Executor): Promise<Checkpoint | null> {
  return rowOf<Checkpoint>(
    executor,
    'SELECT last_entry_id, last_usage_row_id, checked_whole_at_ms FROM audit_checkpoints',
  );
}

/** The other transactions that write the ledger or the usage now. */
const WRITERS = `SELECT DISTINCT virtualtransaction AS writer FROM pg_locks
  WHERE relation IN ('ledger_entries'::regclass, 'usage_records'::regclass)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND mode = 'RowExclusiveLock' AND granted AND pid <> pg_backend_pid()`;
/** If a node is paused within a transaction, the checkpoint is not moved. */
const WRITERS_DEADLINE_MS = 10_000;
const WRITERS_POLL_MS = 10;

/**
 * Resolves with the numbers up to which no new row can appear; null if a transaction takes too long. PostgreSQL draws
 * numbers before the commit, so a smaller number can appear after a larger one. So this waits for the end of all
 * transactions that write now.
 */
async function writtenUpTo(executor: Executor, deadline_ms: number): Promise<AuditStart | null> {
  const written = await rowOf<AuditStart>(
    executor,
    `SELECT coalesce((SELECT max(id) FROM ledger_entries), 0) AS last_entry_id,
      coalesce((SELECT max(row_id) FROM usage_records), 0) AS last_usage_row_id`,
  );
  const began_ms = performance.now();
  let waited_for: ReadonlySet<string> | undefined;
  for (;;) {
    const writers = new Set(
      (await rowsOf<{ writer: string }>(executor, WRITERS)).map(({ writer }) => writer),
    );
    waited_for = waited_for?.intersection(writers) ?? writers;
    if (waited_for.size === 0) return written;
    if (performance.now() - began_ms > deadline_ms) return null;
    await Bun.sleep(WRITERS_POLL_MS);
  }
}

/** The result of a clean audit: its end, and the sums that it adds to those before its start. */
interface Checked extends AuditStart {
  readonly is_whole: boolean;
  readonly organizations: readonly object[];
  readonly months: readonly object[];
}

/**
 * Returns the range up to the first open hold. Rows before it change no more, except that sums replace old days. The
 * next audit reads the usage of later entries again.
 */
async function checkedUpTo(snapshot: Executor, start: AuditStart, written: AuditStart): Promise<Checked> {
  const after = start.last_entry_id;
  const end = await rowOf<{ last_entry_id: number }>(
    snapshot,
    `SELECT greatest(${after},
      least(${written.last_entry_id}, (SELECT min(hold.id) - 1 FROM ${openHolds(after)})),
      (SELECT max(last_entry_id) FROM ledger_days)) AS last_entry_id`,
  );
  const last_entry_id = end?.last_entry_id ?? after;
  const usage = await rowOf<{ last_usage_row_id: number }>(
    snapshot,
    `SELECT least(${written.last_usage_row_id}, (
        SELECT min(usage.row_id) - 1 FROM ledger_entries AS hold
        JOIN usage_records AS usage ON usage.request_id = hold.request_id
        WHERE hold.id > ${last_entry_id})) AS last_usage_row_id`,
  );
  return {
    last_entry_id,
    last_usage_row_id: usage?.last_usage_row_id ?? 0,
    is_whole: start === BEGINNING,
    organizations: await rowsOf(
      snapshot,
      `SELECT organization_id, sum(credit_micros) AS credit_micros, sum(held_micros) AS held_micros,
        sum(paid_micros) AS paid_micros
      FROM (
        SELECT organization_id, credit_delta_micros AS credit_micros, held_delta_micros AS held_micros,
          ${PAID} AS paid_micros
        FROM ledger_entries WHERE id > ${after} AND id <= ${last_entry_id}
        UNION ALL
        SELECT organization_id, -charged_micros, 0, 0 FROM ledger_days WHERE last_entry_id > ${after}
      ) AS movements
      GROUP BY organization_id`,
    ),
    months: await rowsOf(
      snapshot,
      `SELECT project_id, month, api_key_id, sum(spent_micros) AS spent_micros, sum(held_micros) AS held_micros
      FROM (
        SELECT project_id, month, coalesce(api_key_id, '') AS api_key_id, -credit_delta_micros AS spent_micros,
          held_delta_micros AS held_micros
        FROM ledger_entries
        WHERE id > ${after} AND id <= ${last_entry_id} AND kind IN ('hold', 'charge', 'release')
        UNION ALL
        SELECT project_id, substr(day, 1, 7), '', charged_micros, 0 FROM ledger_days WHERE last_entry_id > ${after}
      ) AS spending
      GROUP BY project_id, month, api_key_id`,
    ),
  };
}

/** Moves the checkpoint, unless another audit has moved it meanwhile. */
async function saveCheckpoint(
  executor: Executor,
  found: Checkpoint | null,
  checked: Checked,
  now_ms: number,
): Promise<void> {
  const { last_entry_id, last_usage_row_id, is_whole } = checked;
  const checked_whole_at_ms = is_whole ? now_ms : (found?.checked_whole_at_ms ?? now_ms);
  await executor.transaction(async (transaction) => {
    await transaction.execute(sql`SELECT pg_advisory_xact_lock(${AUDIT_LOCK}::bigint)`);
    const current = await checkpointOf(transaction);
    if (
      current?.last_entry_id !== found?.last_entry_id ||
      current?.checked_whole_at_ms !== found?.checked_whole_at_ms
    ) {
      return;
    }
    if (is_whole) {
      await transaction.execute(sql`DELETE FROM audited_organizations`);
      await transaction.execute(sql`DELETE FROM audited_project_months`);
    }
    await transaction.execute(sql`INSERT INTO audited_organizations AS kept
        (organization_id, credit_micros, held_micros, paid_micros)
      SELECT organization_id, credit_micros, held_micros, paid_micros
      FROM json_to_recordset(${JSON.stringify(checked.organizations)}::text::json)
        AS added (organization_id text, credit_micros bigint, held_micros bigint, paid_micros bigint)
      ON CONFLICT (organization_id) DO UPDATE SET credit_micros = kept.credit_micros + excluded.credit_micros,
        held_micros = kept.held_micros + excluded.held_micros, paid_micros = kept.paid_micros + excluded.paid_micros`);
    await transaction.execute(sql`INSERT INTO audited_project_months AS kept
        (project_id, month, api_key_id, spent_micros, held_micros)
      SELECT project_id, month, api_key_id, spent_micros, held_micros
      FROM json_to_recordset(${JSON.stringify(checked.months)}::text::json)
        AS added (project_id text, month text, api_key_id text, spent_micros bigint, held_micros bigint)
      ON CONFLICT (project_id, month, api_key_id)
      DO UPDATE SET spent_micros = kept.spent_micros + excluded.spent_micros, held_micros = kept.held_micros + excluded.held_micros`);
    // PostgreSQL gives out no row number twice, so the request's id need not be stored too.
    await transaction.execute(sql`INSERT INTO audit_checkpoints
        (id, last_entry_id, last_usage_row_id, last_usage_request_id, checked_at_ms, checked_whole_at_ms)
      VALUES (1, ${last_entry_id}, ${last_usage_row_id}, NULL, ${now_ms}, ${checked_whole_at_ms})
      ON CONFLICT (id) DO UPDATE SET last_entry_id = excluded.last_entry_id,
        last_usage_row_id = excluded.last_usage_row_id, last_usage_request_id = excluded.last_usage_request_id,
        checked_at_ms = excluded.checked_at_ms, checked_whole_at_ms = excluded.checked_whole_at_ms`);
  });
}

/** SQLSTATEs of damage: a corrupt page or index, or a file that cannot be read. */
const DAMAGE = /^(?:XX00[12]|58)/;

const INDEXES = `pg_index JOIN pg_class ON pg_class.oid = indrelid
  WHERE relnamespace = current_schema()::regnamespace`;

/**
 * Reads every row of every table. It also checks the order of every index, if the user may call the extension
 * `amcheck`.
 */
async function fileAudited(executor: Executor): Promise<AuditCheck> {
  const name = 'file_is_sound';
  try {
    const violations = await executor.transaction(async (snapshot) => {
      await snapshot.execute(sql`SELECT set_config('statement_timeout', '0', true)`);
      // The whole row is counted, so that PostgreSQL reads the table and its TOAST data instead of an index.
      for (const table of TABLES)
        await rowOf(snapshot, `SELECT count(whole) AS rows FROM ${table.name} AS whole`);
      const amcheck = await rowOf<{ is_callable: boolean }>(
        snapshot,
        `SELECT coalesce(has_function_privilege(to_regprocedure('bt_index_check(regclass)'), 'EXECUTE'), false)
          AS is_callable`,
      );
      if (amcheck?.is_callable === true)
        await rowsOf(
          snapshot,
          `SELECT bt_index_check(indexrelid::regclass)::text AS checked FROM ${INDEXES}`,
        );
      return await rowsOf<Violation>(
        snapshot,
        `SELECT 'the index ' || indexrelid::regclass || ' is not valid' AS problem FROM ${INDEXES}
        AND NOT indisvalid LIMIT ${VIOLATIONS_MAX}`,
      );
    }, ONE_STATE);
    return { name, guarantee: GUARANTEES[name], violations };
  } catch (error) {
    const cause = postgresError(error);
    if (cause === null || !DAMAGE.test(cause.errno ?? '')) throw error;
    return { name, guarantee: GUARANTEES[name], violations: [{ problem: cause.message }] };
  }
}

async function audited(snapshot: Executor, check: Check): Promise<AuditCheck> {
  const { name } = check;
  const violations = await rowsOf<Violation>(snapshot, `${check.sql} LIMIT ${VIOLATIONS_MAX}`);
  return { name, guarantee: GUARANTEES[name], violations };
}

async function rowOf<Row extends object>(executor: Executor, query: string): Promise<Row | null> {
  const [row] = await rowsOf<Row>(executor, query);
  return row ?? null;
}

/** Resolves with a query's rows, sent as JSON. Otherwise the client would return 64-bit integers as strings. */
async function rowsOf<Row extends object>(executor: Executor, query: string): Promise<readonly Row[]> {
  const [answer] = await executor.execute<{ rows: Row[] }>(
    sql.raw(`SELECT coalesce(json_agg(answer_row), '[]') AS rows FROM (${query}) AS answer_row`),
  );
  return answer?.rows ?? [];
}
