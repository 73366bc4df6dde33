import type { AuditReport } from '../src/ops/audit-report.ts';
import { COPIED_TABLES, type CopiedColumn, type CopiedRow, type CopiedTable } from './copied-tables.ts';

const VERSIONS_TABLE = 'program_versions';

/** What both databases count alike in a table: its rows, and what each column adds up to. */
export type Totals = Readonly<Record<string, string>>;

/** The tables of a database as one open transaction sees them. */
export interface TablesRead {
  /** All rows in batches; a row comes after the rows of the table that it refers to. */
  rows(table: CopiedTable): AsyncIterable<readonly CopiedRow[]>;
  /** The last number that the table has given to a row, also to one that is gone; 0 for none. */
  lastNumber(table: CopiedTable): Promise<number>;
  totals(table: CopiedTable): Promise<Totals>;
  audit(): Promise<AuditReport>;
}

/** The tables of a database as one open transaction writes them. */
export interface TablesWritten extends Pick<TablesRead, 'totals' | 'audit'> {
  isEmpty(table: CopiedTable): Promise<boolean>;
  clear(table: CopiedTable): Promise<void>;
  insert(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** The next row of the table gets a number above this one. */
  continueAfter(table: CopiedTable, last_number: number): Promise<void>;
}

/** A database that everything is copied from, while nothing else writes it. */
export interface CopySource {
  read<T>(work: (tables: TablesRead) => Promise<T>): Promise<T>;
}

/** A database that everything is copied into, in one transaction: when `work` rejects, nothing is left of it. */
export interface CopyTarget {
  write<T>(work: (tables: TablesWritten) => Promise<T>): Promise<T>;
}

/** Why nothing was copied: one sentence with what to do. */
export class CopyRefused extends Error {
  override readonly name = 'CopyRefused';
}

/** The copy was told to stop. */
export class CopyStopped extends Error {
  override readonly name = 'CopyStopped';
}

/** What was copied. */
export interface Copied {
  /** How many rows each table has. */
  readonly rows: Readonly<Record<string, number>>;
}

export interface CopyOptions {
  /** Asked between two batches: whether to stop there. */
  readonly isStopped?: () => boolean;
  readonly onProgress?: (progress: { readonly table: string; readonly rows: number }) => void;
}

/**
 * Copies every table. Before the copy is committed, both sides are audited, and their rows and sums are compared. Rejects
 * with `CopyRefused` where they are not right, with `CopyStopped`, and with what the databases throw. Nothing is copied
 * then.
 */
export function copyDatabase(
  source: CopySource,
  target: CopyTarget,
  options: CopyOptions = {},
): Promise<Copied> {
  return source.read(async (from) => {
    // What is wrong already would otherwise be found only after the copy.
    const before = await from.audit();
    if (!before.ok) {
      throw new CopyRefused(
        `The audit of the source finds a violation (${failed(before)}): run "tds audit" on it first.`,
      );
    }
    if (before.open_holds > 0) throw new CopyRefused(openHolds(before.open_holds));
    return await target.write(async (to) => {
      for (const table of COPIED_TABLES) {
        // A database notes who has made it: that is no data yet.
        if (table.name === VERSIONS_TABLE) await to.clear(table);
        else if (!(await to.isEmpty(table)))
          throw new CopyRefused(
            'The target has data already, which a copy would mix with: name an empty one.',
          );
      }
      const rows = await copyTables(from, to, options);
      for (const table of COPIED_TABLES) {
        stopIf(options.isStopped);
        await compare(from, to, table);
      }
      const after = await to.audit();
      if (!after.ok) throw new CopyRefused(`The audit of the copy finds a violation (${failed(after)}).`);
      return { rows };
    });
  });
}

/** Copies the rows of every table as they are, also those that are not right. Resolves with how many each table has. */
export async function copyTables(
  from: TablesRead,
  to: TablesWritten,
  options: CopyOptions = {},
): Promise<Readonly<Record<string, number>>> {
  const rows: Record<string, number> = {};
  for (const table of COPIED_TABLES) rows[table.name] = await copyTable(from, to, table, options);
  return rows;
}

async function copyTable(
  from: TablesRead,
  to: TablesWritten,
  table: CopiedTable,
  { isStopped, onProgress }: CopyOptions,
): Promise<number> {
  let rows = 0;
  for await (const batch of from.rows(table)) {
    stopIf(isStopped);
    await to.insert(table, batch);
    rows += batch.length;
    onProgress?.({ table: table.name, rows });
  }
  if (table.number !== null) await to.continueAfter(table, await from.lastNumber(table));
  return rows;
}

function stopIf(isStopped: CopyOptions['isStopped']): void {
  if (isStopped?.() === true) throw new CopyStopped('the copy was stopped');
}

async function compare(from: TablesRead, to: TablesWritten, table: CopiedTable): Promise<void> {
  const [given, copied] = [await from.totals(table), await to.totals(table)];
  const other = Object.keys({ ...given, ...copied }).filter((name) => given[name] !== copied[name]);
  if (other.length === 0) return;
  const text = other.map((name) => `${name}: ${given[name]} and ${copied[name]}`).join(', ');
  throw new CopyRefused(`The copy of ${table.name} is not the same as the source (${text}).`);
}

function openHolds(holds: number): string {
  return `The source has ${holds} open holds, which its last service left: start the service on it and stop it again, which releases them.`;
}

function failed({ checks }: AuditReport): string {
  return checks
    .filter(({ violations }) => violations.length > 0)
    .map(({ name }) => name)
    .join(', ');
}

/** The names of `Totals`, each with the expression that a query counts it by. */
type Counted = readonly (readonly [name: string, expression: string])[];

/** What a query has to count for `Totals`. What texts and truths add up to is said in its dialect. */
export function totalsOf(
  { columns }: CopiedTable,
  sums: Readonly<Record<'bytes' | 'trues', (column: string) => string>>,
): Counted {
  const sumsOf = ({ name, kind }: CopiedColumn): Counted => {
    // In two parts: the sum of many times is more than an integer holds.
    if (kind === 'integer') {
      return [
        [`${name} (millions)`, `sum("${name}" / 1000000)`],
        [`${name} (rest)`, `sum("${name}" % 1000000)`],
      ];
    }
    if (kind === 'truth') return [[`${name} (true)`, sums.trues(`"${name}"`)]];
    return kind === 'text' ? [[`${name} (bytes)`, sums.bytes(`"${name}"`)]] : [];
  };
  return [
    ['rows', 'count(*)'],
    ...columns.map(({ name }) => [`${name} (values)`, `count(${name})`] as const),
    ...columns.flatMap(sumsOf),
  ];
}

/** What the query found, whose columns are `total_0` and so on in the order of what it counted. */
export function totalsFound(
  counted: Counted,
  row: Readonly<Record<string, string>> | null | undefined,
): Totals {
  return Object.fromEntries(counted.map(([name], index) => [name, String(row?.[`total_${index}`])]));
}
