import type { ReservedSQL, SQL } from 'bun';
import type { Hold } from '../../src/store/hold.ts';
import type { IdempotencyClaim } from '../../src/store/idempotency-records.ts';
import { monthOf } from '../../src/time/month.ts';
import {
  type AskedWrite,
  type CountedMonth,
  claimKey,
  countedMonths,
  type HoldEntry,
  type LedgerChanges,
  type LockedLedger,
  monthKey,
} from './ledger-writes.ts';

/**
 * The statements of a batch. Each takes any number of rows as one JSON parameter, in which their integers are exact.
 * PostgreSQL returns `bigint` values as strings.
 */

/** A statement that was sent. */
type Sent<Row = unknown> = Promise<Row[]>;
type Connection = SQL | ReservedSQL;

const NOTHING: Sent<never> = Promise.resolve([]);

const rowsOf = (rows: unknown) => JSON.stringify(rows);

/** This takes no key lock, so rows that refer to the organization can be inserted meanwhile. */
const LOCK_ORGANIZATIONS = `
  SELECT id, credit_micros, held_micros FROM organizations
  WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)))
  ORDER BY id FOR NO KEY UPDATE`;

/** This waits for no row, and locks the free ones only until it ends. */
const FIND_LOCKED = `
  WITH free AS MATERIALIZED (
    SELECT id FROM organizations WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)))
    FOR NO KEY UPDATE SKIP LOCKED
  )
  SELECT organizations.id FROM organizations
  WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb))) AND id NOT IN (SELECT id FROM free)`;

/** The limits of the keys are read with their projects, because every batch of holds needs both. */
const READ_PROJECTS = `
  SELECT projects.id, projects.organization_id, projects.name, projects.spend_limit_micros, asked.api_key_id,
    api_keys.name AS api_key, api_keys.monthly_limit_micros
  FROM jsonb_to_recordset($1::text::jsonb) AS asked(project_id text, api_key_id text)
  JOIN projects ON projects.id = asked.project_id
  LEFT JOIN api_keys ON api_keys.id = asked.api_key_id`;

const READ_MONTHS = `
  SELECT stored.project_id, stored.month, stored.api_key_id, stored.spent_micros, stored.held_micros
  FROM jsonb_to_recordset($1::text::jsonb) AS asked(project_id text, month text, api_key_id text)
  JOIN project_months AS stored ON stored.project_id = asked.project_id AND stored.month = asked.month
    AND stored.api_key_id = asked.api_key_id`;

const HOLD_COLUMNS = `
  held.id, held.organization_id, held.project_id, held.month, held.api_key_id, held.held_delta_micros, held.request_id,
  ended.kind AS ended_by
  FROM ledger_entries AS held LEFT JOIN ledger_entries AS ended ON ended.hold_entry_id = held.id`;

const READ_HOLDS = `
  SELECT ${HOLD_COLUMNS}
  WHERE held.id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)::bigint)) AND held.kind = 'hold'`;

const READ_PLACED = `
  SELECT ${HOLD_COLUMNS}
  WHERE held.request_id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb))) AND held.kind = 'hold'`;

const READ_CLAIMS = `
  SELECT stored.api_key_id, stored.key_hash, stored.created_at_ms, stored.hold_entry_id
  FROM jsonb_to_recordset($1::text::jsonb) AS asked(api_key_id text, key_hash text)
  JOIN idempotent_requests AS stored ON stored.api_key_id = asked.api_key_id AND stored.key_hash = asked.key_hash`;

const READ_KEPT_BYTES = `
  SELECT asked.id, (
    SELECT max(bytes_so_far) FROM idempotent_requests WHERE idempotent_requests.organization_id = asked.id
  ) AS bytes_so_far
  FROM jsonb_array_elements_text($1::text::jsonb) AS asked(id)`;

/** Entries are inserted in the order of the decisions, so that their ids have the same order. */
const INSERT_ENTRIES = `
  INSERT INTO ledger_entries (organization_id, project_id, kind, credit_delta_micros, held_delta_micros, hold_entry_id,
    request_id, month, created_at_ms, process_id, api_key_id)
  SELECT organization_id, project_id, kind, credit_delta_micros, held_delta_micros, hold_entry_id, request_id, month,
    created_at_ms, CASE kind WHEN 'hold' THEN $2 END, api_key_id
  FROM ROWS FROM (jsonb_to_recordset($1::text::jsonb) AS (organization_id text, project_id text, kind text,
    credit_delta_micros bigint, held_delta_micros bigint, hold_entry_id bigint, request_id text, month text,
    created_at_ms bigint, api_key_id text)) WITH ORDINALITY AS entry
  ORDER BY entry.ordinality
  RETURNING id, request_id`;

const DELETE_HOLDS = `
  DELETE FROM ledger_entries WHERE id = ANY (ARRAY(SELECT jsonb_array_elements_text($1::text::jsonb)::bigint))`;

const INSERT_USAGE = `
  INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint,
    status, questions, input_tokens, cost_micros, latency_ms)
  SELECT request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status, questions,
    input_tokens, cost_micros, latency_ms
  FROM jsonb_to_recordset($1::text::jsonb) AS used(request_id text, time_ms bigint, organization_id text,
    project_id text, api_key_id text, model text, mode text, endpoint text, status bigint, questions bigint,
    input_tokens bigint, cost_micros bigint, latency_ms double precision)`;

const CHANGE_ORGANIZATIONS = `
  UPDATE organizations SET
    credit_micros = organizations.credit_micros + change.credit_micros,
    held_micros = organizations.held_micros + change.held_micros,
    open_holds = organizations.open_holds + change.open_holds
  FROM jsonb_to_recordset($1::text::jsonb) AS change(id text, credit_micros bigint, held_micros bigint,
    open_holds bigint)
  WHERE organizations.id = change.id`;

const CHANGE_MONTHS = `
  UPDATE project_months SET
    spent_micros = project_months.spent_micros + change.spent_micros,
    held_micros = project_months.held_micros + change.held_micros
  FROM jsonb_to_recordset($1::text::jsonb) AS change(project_id text, month text, api_key_id text,
    spent_micros bigint, held_micros bigint)
  WHERE project_months.project_id = change.project_id AND project_months.month = change.month
    AND project_months.api_key_id = change.api_key_id`;

const INSERT_MONTHS = `
  INSERT INTO project_months (project_id, month, api_key_id, spent_micros, held_micros)
  SELECT project_id, month, api_key_id, spent_micros, held_micros
  FROM jsonb_to_recordset($1::text::jsonb) AS change(project_id text, month text, api_key_id text,
    spent_micros bigint, held_micros bigint)`;

const FORGET_CLAIMS = `
  DELETE FROM idempotent_requests USING jsonb_to_recordset($1::text::jsonb) AS forgotten(api_key_id text, key_hash text)
  WHERE idempotent_requests.api_key_id = forgotten.api_key_id AND idempotent_requests.key_hash = forgotten.key_hash`;

/** Claims are inserted after the entries, because they need the ids of the holds. */
const INSERT_CLAIMS = `
  INSERT INTO idempotent_requests (api_key_id, key_hash, body_hash, organization_id, hold_entry_id, created_at_ms)
  SELECT claim.api_key_id, claim.key_hash, claim.body_hash, claim.organization_id, held.id, claim.created_at_ms
  FROM jsonb_to_recordset($1::text::jsonb) AS claim(api_key_id text, key_hash text, body_hash text,
    organization_id text, request_id text, created_at_ms bigint)
  JOIN ledger_entries AS held ON held.request_id = claim.request_id`;

const INSERT_ANSWERS = `
  UPDATE idempotent_requests SET hold_entry_id = NULL, answer = given.answer, bytes_so_far = given.bytes_so_far
  FROM jsonb_to_recordset($1::text::jsonb) AS given(hold_entry_id bigint, answer text, bytes_so_far bigint)
  WHERE idempotent_requests.hold_entry_id = given.hold_entry_id`;

const DROP_ANSWERS = `
  DELETE FROM idempotent_requests
  USING jsonb_to_recordset($1::text::jsonb) AS dropped(organization_id text, up_to_bytes bigint)
  WHERE idempotent_requests.organization_id = dropped.organization_id
    AND idempotent_requests.bytes_so_far <= dropped.up_to_bytes`;

/** Resolves with the organizations whose rows another transaction has locked. */
export async function findLocked(
  connection: Connection,
  organization_ids: readonly string[],
): Promise<string[]> {
  const rows = await connection.unsafe<{ id: string }[]>(FIND_LOCKED, [rowsOf(organization_ids)]);
  return rows.map(({ id }) => id);
}

/** The first statements of a batch, sent together. They lock the organizations, and then read the protected rows. */
export interface SentReads {
  readonly sent: readonly Promise<unknown>[];
  /** Resolves with the rows, once all statements are answered. */
  read(): Promise<LockedLedger>;
}

/**
 * Locks the organizations of the writes in the order of their ids, and reads the rows that the decisions need. An
 * organization's lock protects its holds, its balance and the months of its projects.
 */
export function sendReads(connection: Connection, asked: readonly AskedWrite[]): SentReads {
  const organizations = new Set<string>();
  const projects = new Map<string, Pick<CountedMonth, 'project_id' | 'api_key_id'>>();
  const months = new Map<string, CountedMonth>();
  const entries: number[] = [];
  const doubtful: string[] = [];
  const claims: Pick<IdempotencyClaim, 'api_key_id' | 'key_hash'>[] = [];
  const keeping = new Set<string>();
  for (const { write, is_doubtful } of asked) {
    const { organization_id, project_id, api_key_id } = write.kind === 'hold' ? write.request : write.hold;
    const month = write.kind === 'hold' ? monthOf(write.request.at_ms) : write.hold.month;
    organizations.add(organization_id);
    for (const counted of countedMonths({ project_id, month, api_key_id: api_key_id ?? null }))
      months.set(monthKey(counted), counted);
    if (write.kind === 'charge' && write.kept !== null) keeping.add(organization_id);
    if (write.kind !== 'hold') entries.push(write.hold.entry_id);
    else {
      const { claim, request_id, api_key_id = '' } = write.request;
      projects.set(`${project_id} ${api_key_id}`, { project_id, api_key_id });
      if (claim !== undefined) claims.push({ api_key_id: claim.api_key_id, key_hash: claim.key_hash });
      if (is_doubtful) doubtful.push(request_id);
    }
  }
  const ask = <Row>(statement: string, rows: readonly unknown[]): Sent<Row> =>
    rows.length === 0 ? Promise.resolve([]) : connection.unsafe<Row[]>(statement, [rowsOf(rows)]).execute();
  const locked = ask<OrganizationRow>(LOCK_ORGANIZATIONS, [...organizations]);
  const of_projects = ask<ProjectRow>(READ_PROJECTS, [...projects.values()]);
  const of_months = ask<MonthRow>(READ_MONTHS, [...months.values()]);
  const holds = ask<HoldEntryRow>(READ_HOLDS, entries);
  const placed = ask<HoldEntryRow>(READ_PLACED, doubtful);
  const claimed = ask<ClaimRow>(READ_CLAIMS, claims);
  const kept = ask<KeptRow>(READ_KEPT_BYTES, [...keeping]);
  return {
    sent: [locked, of_projects, of_months, holds, placed, claimed, kept],
    async read() {
      return {
        organizations: new Map((await locked).map((row) => [row.id, microsOf(row)])),
        projects: new Map((await of_projects).map((row) => [row.id, projectOf(row)])),
        keys: new Map((await of_projects).flatMap(keyOf)),
        months: new Map((await of_months).map((row) => [monthKey(row), amountsOf(row)])),
        holds: new Map((await holds).map((row) => [Number(row.id), entryOf(row)])),
        placed: new Map((await placed).map((row) => [row.request_id, entryOf(row)])),
        claims: new Map((await claimed).map((row) => [claimKey(row), answeredAt(row)])),
        kept_bytes: new Map((await kept).map((row) => [row.id, Number(row.bytes_so_far)])),
      };
    },
  };
}

/** The statements that write a batch, sent together. */
export interface SentChanges {
  readonly sent: readonly Promise<unknown>[];
  /** The entries, with their ids. */
  readonly entered: Promise<EnteredRow[]>;
}

/** Sends the statements that write the changes. */
export function sendChanges(connection: Connection, changes: LedgerChanges, process_id: string): SentChanges {
  const write = <Row>(statement: string, rows: readonly unknown[], ...more: string[]): Sent<Row>[] =>
    rows.length === 0 ? [] : [connection.unsafe<Row[]>(statement, [rowsOf(rows), ...more]).execute()];
  // Before the entries, because a request that asks again may have only one hold.
  const released = write(DELETE_HOLDS, changes.released);
  const [entered = NOTHING] = write<EnteredRow>(INSERT_ENTRIES, changes.entries, process_id);
  const sent: Promise<unknown>[] = [
    ...released,
    entered,
    ...write(INSERT_USAGE, changes.usage),
    ...write(CHANGE_ORGANIZATIONS, changes.organizations),
    ...write(CHANGE_MONTHS, changes.months),
    ...write(INSERT_MONTHS, changes.new_months),
    ...write(FORGET_CLAIMS, changes.forgotten),
    ...write(INSERT_CLAIMS, changes.claims),
    ...write(INSERT_ANSWERS, changes.answers),
    ...write(DROP_ANSWERS, changes.dropped),
  ];
  return { entered, sent };
}

/** An inserted entry. */
export interface EnteredRow {
  readonly id: string;
  /** The request of a hold; null for a charge. */
  readonly request_id: string | null;
}

interface OrganizationRow {
  readonly id: string;
  readonly credit_micros: string;
  readonly held_micros: string;
}
interface ProjectRow {
  readonly id: string;
  readonly organization_id: string;
  readonly name: string;
  readonly spend_limit_micros: string | null;
  readonly api_key_id: string;
  /** The name of the key; null for a hold without one. */
  readonly api_key: string | null;
  readonly monthly_limit_micros: string | null;
}
interface MonthRow extends CountedMonth {
  readonly spent_micros: string;
  readonly held_micros: string;
}
/** The columns of a hold's entry. */
export interface HoldRow {
  readonly id: string;
  readonly request_id: string;
  readonly organization_id: string;
  readonly project_id: string;
  readonly month: string;
  readonly api_key_id: string | null;
  readonly held_delta_micros: string;
}
interface HoldEntryRow extends HoldRow {
  readonly ended_by: string | null;
}

interface ClaimRow {
  readonly api_key_id: string;
  readonly key_hash: string;
  readonly created_at_ms: string;
  readonly hold_entry_id: string | null;
}
interface KeptRow {
  readonly id: string;
  readonly bytes_so_far: string | null;
}

function answeredAt({ created_at_ms, hold_entry_id }: ClaimRow): number | null {
  return hold_entry_id === null ? Number(created_at_ms) : null;
}

function numberOrNull(value: string | null): number | null {
  return value === null ? null : Number(value);
}

function microsOf(row: Omit<OrganizationRow, 'id'>) {
  return { credit_micros: Number(row.credit_micros), held_micros: Number(row.held_micros) };
}

function projectOf({ organization_id, name, spend_limit_micros }: ProjectRow) {
  return { organization_id, name, spend_limit_micros: numberOrNull(spend_limit_micros) };
}

function amountsOf({ spent_micros, held_micros }: MonthRow) {
  return { spent_micros: Number(spent_micros), held_micros: Number(held_micros) };
}

function keyOf({ api_key_id, api_key: name, monthly_limit_micros }: ProjectRow) {
  if (name === null) return [];
  return [[api_key_id, { name, monthly_limit_micros: numberOrNull(monthly_limit_micros) }] as const];
}

function entryOf(row: HoldEntryRow): HoldEntry {
  return { ...holdOf(row), ended_by: row.ended_by };
}

/** Returns the hold of an entry. */
export function holdOf(row: HoldRow): Hold {
  const { id, request_id, organization_id, project_id, month, api_key_id, held_delta_micros } = row;
  return {
    entry_id: Number(id),
    request_id,
    organization_id,
    project_id,
    month,
    api_key_id,
    amount_micros: Number(held_delta_micros),
  };
}
