import { is, sql } from 'drizzle-orm';
import { getTableConfig, PgTable } from 'drizzle-orm/pg-core';
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
  failedChecks,
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
import type { Executor } from './connection.ts';
import { FileUnread, postgresError } from './errors.ts';
import { AUDIT_LOCK } from './locks.ts';
import { ONE_STATE } from './one-state.ts';
import * as schema from './schema.ts';

/** Returns the words of PostgreSQL in an audit. */
const words = ({ last_entry_id, last_usage_row_id }: AuditStart, options: AuditOptions): AuditWords => ({
  after_entry: `${last_entry_id}`,
  after_usage: `${last_usage_row_id}`,
  ended_before: `${options.ended_before_ms ?? 0}`,
  usage_row: 'row_id',
  notAMonth: (column) => `${column} !~ '^[0-9]{4}-[01][0-9]$'`,
});

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

/** Returns the time of the last clean `continueAudit`; null for never. */
export async function auditedAt_ms(executor: Executor): Promise<number | null> {
  return (await checkpointOf(executor))?.checked_at_ms ?? null;
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
  const asked = [
    ...bookChecks(words(start, options)),
    referencesCheck(start),
    ...(is_whole ? [CHECKPOINT_CHECK] : []),
  ];
  const checks = file === null ? [] : [file];
  for (const check of asked) checks.push(await audited(snapshot, check));
  const warnings: AuditCheck[] = [];
  for (const check of WARNINGS) warnings.push(await audited(snapshot, check));
  warnings.push(...failedChecks([await audited(snapshot, INVALID_INDEXES)]));
  const open = await rowOf<{ holds: number }>(
    snapshot,
    `SELECT count(*) AS holds FROM ${openHolds(`${start.last_entry_id}`)}`,
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
  readonly checked_at_ms: number;
  readonly checked_whole_at_ms: number;
}

function checkpointOf(executor: Executor): Promise<Checkpoint | null> {
  return rowOf<Checkpoint>(
    executor,
    'SELECT last_entry_id, last_usage_row_id, checked_at_ms, checked_whole_at_ms FROM audit_checkpoints',
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

/**
 * The result of a clean audit: its end, and the sums that it adds to those before its start. One of everything has those
 * that replace the kept ones instead, or null where none is to be kept.
 */
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
  const after = `${start.last_entry_id}`;
  const end = await rowOf<{ last_entry_id: number }>(
    snapshot,
    `SELECT greatest(${after},
      least(${written.last_entry_id}, (SELECT min(hold.id) - 1 FROM ${openHolds(after)})),
      (SELECT max(last_entry_id) FROM ledger_days)) AS last_entry_id`,
  );
  const last_entry_id = end?.last_entry_id ?? start.last_entry_id;
  const usage = await rowOf<{ last_usage_row_id: number }>(
    snapshot,
    `SELECT least(${written.last_usage_row_id}, (
        SELECT min(usage.row_id) - 1 FROM ledger_entries AS hold
        JOIN usage_records AS usage ON usage.request_id = hold.request_id
        WHERE hold.id > ${last_entry_id})) AS last_usage_row_id`,
  );
  const is_whole = start === BEGINNING;
  const [organizations, months] = is_whole
    ? [changedOrganizations, changedMonths]
    : [checkedOrganizations, checkedMonths];
  return {
    last_entry_id,
    last_usage_row_id: usage?.last_usage_row_id ?? 0,
    is_whole,
    organizations: await rowsOf(snapshot, organizations(after, `${last_entry_id}`)),
    months: await rowsOf(snapshot, months(after, `${last_entry_id}`)),
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
    const organizations = sql`json_to_recordset(${JSON.stringify(checked.organizations)}::text::json)
      AS added (organization_id text, credit_micros bigint, held_micros bigint, paid_micros bigint)`;
    const months = sql`json_to_recordset(${JSON.stringify(checked.months)}::text::json)
      AS added (project_id text, month text, api_key_id text, spent_micros bigint, held_micros bigint)`;
    if (is_whole) {
      await transaction.execute(sql`DELETE FROM audited_organizations AS kept USING ${organizations}
        WHERE kept.organization_id = added.organization_id`);
      await transaction.execute(sql`DELETE FROM audited_project_months AS kept USING ${months}
        WHERE kept.project_id = added.project_id AND kept.month = added.month AND kept.api_key_id = added.api_key_id`);
    }
    await transaction.execute(sql`INSERT INTO audited_organizations AS kept
        (organization_id, credit_micros, held_micros, paid_micros)
      SELECT organization_id, credit_micros, held_micros, paid_micros FROM ${organizations}
      WHERE credit_micros IS NOT NULL
      ON CONFLICT (organization_id) DO UPDATE SET credit_micros = kept.credit_micros + excluded.credit_micros,
        held_micros = kept.held_micros + excluded.held_micros, paid_micros = kept.paid_micros + excluded.paid_micros`);
    await transaction.execute(sql`INSERT INTO audited_project_months AS kept
        (project_id, month, api_key_id, spent_micros, held_micros)
      SELECT project_id, month, api_key_id, spent_micros, held_micros FROM ${months}
      WHERE spent_micros IS NOT NULL
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

const INDEXES = `pg_index JOIN pg_class AS of_table ON of_table.oid = indrelid
  JOIN pg_class AS of_index ON of_index.oid = indexrelid
  WHERE of_table.relnamespace = current_schema()::regnamespace`;

/** The indexes that amcheck can check. */
const CHECKABLE = `SELECT indexrelid::bigint AS oid, indexrelid::regclass::text AS name FROM ${INDEXES}
  AND of_index.relam = (SELECT oid FROM pg_am WHERE amname = 'btree') AND indisvalid AND indisready`;

/** An invalid index is no damage, because PostgreSQL never reads it. */
const INVALID_INDEXES: Check = {
  name: 'indexes_are_valid',
  sql: `SELECT indexrelid::regclass::text AS "index" FROM ${INDEXES} AND NOT indisvalid`,
};

/**
 * Reads every row of every table. It also checks the order of every index, if the user may call the extension
 * `amcheck`.
 */
async function fileAudited(executor: Executor): Promise<AuditCheck> {
  const name = 'file_is_sound';
  let place = 'the catalog';
  try {
    await executor.transaction(async (snapshot) => {
      await snapshot.execute(sql`SELECT set_config('statement_timeout', '0', true)`);
      for (const table of TABLES) {
        place = `the table ${table.name}`;
        // The whole row is counted, so that PostgreSQL reads the table and its TOAST data instead of an index.
        await rowOf(snapshot, `SELECT count(whole) AS rows FROM ${table.name} AS whole`);
      }
      place = 'the catalog';
      const amcheck = await rowOf<{ is_callable: boolean }>(
        snapshot,
        `SELECT coalesce(has_function_privilege(to_regprocedure('bt_index_check(regclass)'), 'EXECUTE'), false)
          AS is_callable`,
      );
      if (amcheck?.is_callable !== true) return;
      for (const index of await rowsOf<{ oid: number; name: string }>(snapshot, CHECKABLE)) {
        place = `the index ${index.name}`;
        await rowsOf(snapshot, `SELECT bt_index_check(${index.oid}::regclass)::text AS checked`);
      }
    }, ONE_STATE);
    return { name, guarantee: GUARANTEES[name], violations: [] };
  } catch (error) {
    const cause = postgresError(error);
    if (cause === null) throw error;
    if (!DAMAGE.test(cause.errno ?? '')) throw new FileUnread(`${place} cannot be read`, { cause: error });
    return { name, guarantee: GUARANTEES[name], violations: [{ problem: `${place}: ${cause.message}` }] };
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
