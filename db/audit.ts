import { type Database, SQLiteError } from 'bun:sqlite';
import type { Db } from './connection.ts';

/** A row that breaks a guarantee: its ids and amounts, as the check's query names them. */
export type Violation = Readonly<Record<string, string | number | null>>;

export interface AuditCheck {
  readonly name: string;
  /** What holds in a sound database. */
  readonly guarantee: string;
  /** The rows that break it, at most `VIOLATIONS_MAX` of them. */
  readonly violations: readonly Violation[];
}

export interface AuditReport {
  readonly ok: boolean;
  readonly checks: readonly AuditCheck[];
  /** Holds that have no end: requests that are being served, or what an unclean stop left to the next start. */
  readonly open_holds: number;
}

export interface AuditOptions {
  /** Holds placed before this time must have ended; without it a hold may be open as long as its request is. */
  readonly ended_before_ms?: number;
}

/** The most violations that a check names. */
export const VIOLATIONS_MAX = 100;

interface Check {
  readonly name: string;
  readonly guarantee: string;
  readonly sql: string;
}

/** Holds without an end, of `ledger_entries AS hold`. */
const OPEN_HOLDS = `ledger_entries AS hold
  LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = hold.id
  WHERE hold.kind = 'hold' AND ended.id IS NULL`;

/**
 * The design's five invariants and what they stand on. Every query gives the rows that break its guarantee. They read
 * the tables only: they share no code with what writes them.
 */
const CHECKS: readonly Check[] = [
  {
    name: 'balance_equals_ledger',
    guarantee:
      'an organization has the credit, the held credit and the lifetime payments that its ledger adds up to',
    sql: `WITH ledger AS (
        SELECT organization_id,
          sum(credit_delta_micros) AS credit_micros,
          sum(held_delta_micros) AS held_micros,
          sum(iif(kind IN ('top_up', 'refund'), credit_delta_micros, 0)) AS paid_micros
        FROM ledger_entries GROUP BY organization_id)
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
    guarantee: 'an organization has as many open holds as it counts, and exactly what they reserve is held',
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
    guarantee: 'what a project spent and holds in a month is what the ledger adds up to',
    sql: `WITH ledger AS (
        SELECT project_id, month, -sum(credit_delta_micros) AS spent_micros, sum(held_delta_micros) AS held_micros
        FROM ledger_entries WHERE kind IN ('hold', 'charge', 'release') GROUP BY project_id, month)
      SELECT ledger.project_id, ledger.month, kept.spent_micros, ledger.spent_micros AS ledger_spent_micros,
        kept.held_micros, ledger.held_micros AS ledger_held_micros
      FROM ledger LEFT JOIN project_months AS kept ON kept.project_id = ledger.project_id AND kept.month = ledger.month
      WHERE kept.spent_micros IS NOT ledger.spent_micros OR kept.held_micros IS NOT ledger.held_micros
      UNION ALL
      SELECT kept.project_id, kept.month, kept.spent_micros, NULL, kept.held_micros, NULL
      FROM project_months AS kept
      LEFT JOIN ledger ON ledger.project_id = kept.project_id AND ledger.month = kept.month
      WHERE ledger.month IS NULL AND (kept.spent_micros <> 0 OR kept.held_micros <> 0)`,
  },
  {
    name: 'entries_are_whole',
    guarantee: 'a hold and its end name a project of the organization and a month; payments move credit only',
    sql: `SELECT entry.id AS entry_id, entry.kind, entry.organization_id, entry.project_id, entry.month,
        entry.payment_id
      FROM ledger_entries AS entry LEFT JOIN projects ON projects.id = entry.project_id
      WHERE CASE WHEN entry.kind IN ('hold', 'charge', 'release')
        THEN projects.organization_id IS NOT entry.organization_id OR entry.month IS NULL
          OR entry.month NOT GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]' OR entry.payment_id IS NOT NULL
          OR (entry.kind = 'hold') = (entry.hold_entry_id IS NOT NULL)
        ELSE entry.payment_id IS NULL OR entry.hold_entry_id IS NOT NULL OR entry.project_id IS NOT NULL END`,
  },
  {
    name: 'hold_has_one_end',
    guarantee: 'a hold has at most one end, which frees exactly what was held and charges no more than that',
    sql: `SELECT ended.id AS entry_id, ended.kind, ended.hold_entry_id, -ended.credit_delta_micros AS charged_micros,
        hold.held_delta_micros AS hold_micros, -ended.held_delta_micros AS freed_micros
      FROM ledger_entries AS ended LEFT JOIN ledger_entries AS hold ON hold.id = ended.hold_entry_id
      WHERE ended.kind IN ('charge', 'release') AND (hold.kind IS NOT 'hold'
        OR ended.id < hold.id
        OR ended.organization_id <> hold.organization_id
        OR ended.project_id IS NOT hold.project_id
        OR ended.month IS NOT hold.month
        OR ended.held_delta_micros <> -hold.held_delta_micros
        OR -ended.credit_delta_micros > hold.held_delta_micros)
      UNION ALL
      SELECT max(id), 'second end', hold_entry_id, -sum(credit_delta_micros), NULL, -sum(held_delta_micros)
      FROM ledger_entries WHERE hold_entry_id IS NOT NULL GROUP BY hold_entry_id HAVING count(*) > 1`,
  },
  {
    name: 'success_has_one_charge',
    guarantee: 'a request that was answered with 200 has one charge of its cost; any other request has none',
    sql: `SELECT usage.request_id, usage.status, usage.cost_micros, -charge.credit_delta_micros AS charged_micros,
        charge.id AS entry_id
      FROM usage_records AS usage
      LEFT JOIN ledger_entries AS hold ON hold.request_id = usage.request_id
      LEFT JOIN ledger_entries AS charge ON charge.hold_entry_id = hold.id AND charge.kind = 'charge'
      WHERE CASE WHEN charge.id IS NULL THEN usage.cost_micros <> 0
        ELSE usage.status <> 200 OR usage.cost_micros <> -charge.credit_delta_micros
          OR usage.organization_id <> charge.organization_id OR usage.project_id <> charge.project_id END
      UNION ALL
      SELECT hold.request_id, NULL, NULL, -charge.credit_delta_micros, charge.id
      FROM ledger_entries AS charge JOIN ledger_entries AS hold ON hold.id = charge.hold_entry_id
      WHERE charge.kind = 'charge'
        AND NOT EXISTS (SELECT 1 FROM usage_records WHERE usage_records.request_id = hold.request_id)`,
  },
  {
    name: 'hold_was_covered',
    guarantee: 'no hold was placed that the balance less the open holds could not cover at that time',
    sql: `SELECT entry_id, organization_id, request_id, hold_micros, available_before_micros
      FROM (
        SELECT id AS entry_id, organization_id, request_id, kind, held_delta_micros AS hold_micros,
          sum(credit_delta_micros - held_delta_micros) OVER running + held_delta_micros AS available_before_micros
        FROM ledger_entries
        WINDOW running AS (PARTITION BY organization_id ORDER BY id ROWS UNBOUNDED PRECEDING))
      WHERE kind = 'hold' AND available_before_micros < hold_micros`,
  },
  {
    name: 'hold_ended_with_its_request',
    guarantee: 'no hold is open after its request ended',
    sql: `WITH open AS MATERIALIZED (
        SELECT hold.id AS entry_id, hold.organization_id, hold.request_id, hold.held_delta_micros AS hold_micros,
          hold.created_at_ms
        FROM ${OPEN_HOLDS})
      SELECT * FROM open WHERE created_at_ms < $ended_before_ms
        OR EXISTS (SELECT 1 FROM usage_records WHERE usage_records.request_id = open.request_id)`,
  },
  {
    name: 'payment_has_one_entry',
    guarantee: 'a completed payment or refund has one ledger entry of its amount; any other payment has none',
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
    guarantee: 'an organization has a time of its first payment exactly while something is paid',
    sql: `SELECT id AS organization_id, paid_micros, first_paid_at_ms FROM organizations
      WHERE (paid_micros > 0) <> (first_paid_at_ms IS NOT NULL)`,
  },
  {
    name: 'references_exist',
    guarantee: 'every reference names a row that exists',
    sql: 'SELECT "table", rowid AS row_id, parent AS missing_in FROM pragma_foreign_key_check',
  },
];

/** Asked before all others: in a damaged file the rows mean nothing. */
const FILE_CHECK: Check = {
  name: 'file_is_sound',
  guarantee: "SQLite finds its file's structure sound",
  sql: `SELECT quick_check AS problem FROM pragma_quick_check WHERE quick_check <> 'ok'`,
};

/**
 * Checks the stored money against the ledger, the usage and the payments, all of it in one snapshot. Reads everything:
 * its time grows with the history, so beside a busy server it belongs on a connection of its own, in a worker or process.
 * In a file whose structure is damaged nothing else is checked.
 */
export function runAudit(db: Db, options: AuditOptions = {}): AuditReport {
  const client = db.$client;
  const file = fileAudited(client);
  if (file.violations.length > 0) return { ok: false, checks: [file], open_holds: 0 };
  return db.transaction(
    () => {
      const values = { ended_before_ms: options.ended_before_ms ?? 0 };
      const checks = [file, ...CHECKS.map((check) => audited(client, check, values))];
      const ok = checks.every(({ violations }) => violations.length === 0);
      const open = client.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${OPEN_HOLDS}`).get();
      return { ok, checks, open_holds: open?.count ?? 0 };
    },
    { behavior: 'deferred' },
  );
}

/** SQLite lists most damage, and fails on some. */
function fileAudited(client: Database): AuditCheck {
  try {
    return audited(client, FILE_CHECK);
  } catch (error) {
    if (!(error instanceof SQLiteError && error.code?.startsWith('SQLITE_CORRUPT'))) throw error;
    const { name, guarantee } = FILE_CHECK;
    return { name, guarantee, violations: [{ problem: error.message }] };
  }
}

function audited(client: Database, check: Check, values: Readonly<Record<string, number>> = {}): AuditCheck {
  const { name, guarantee, sql } = check;
  const used = Object.entries(values).filter(([value]) => sql.includes(`$${value}`));
  const query = client.query<Violation, Record<string, number>>(`${sql} LIMIT ${VIOLATIONS_MAX}`);
  return { name, guarantee, violations: query.all(Object.fromEntries(used)) };
}

/** The report as text for a person: one line a check, and one a violation. */
export function formatAudit(report: AuditReport): string {
  const lines = report.checks.flatMap(({ name, guarantee, violations }) => [
    `${violations.length === 0 ? 'ok  ' : 'FAIL'} ${name}: ${guarantee}`,
    ...violations.map((violation) => `     ${JSON.stringify(violation)}`),
  ]);
  return [
    ...lines,
    `${report.open_holds} open holds`,
    report.ok ? 'The audit is clean.' : 'The audit FAILED.',
  ].join('\n');
}
