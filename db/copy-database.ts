import { type AuditReport, VIOLATION_ADVICE } from '../src/store/audit-report.ts';
import { type CopiedColumn, type CopiedRow, type CopiedTable, copiedTables } from './copied-tables.ts';

const VERSIONS_TABLE = 'program_versions';

/** The number of a table's rows and the sum of each column, counted alike by both databases. */
export type Totals = Readonly<Record<string, string>>;

/** The tables of a database as one open transaction sees them. */
export interface TablesRead {
  /** All rows in batches; a row comes after the rows of the table that it refers to. */
  rows(table: CopiedTable): AsyncIterable<readonly CopiedRow[]>;
  /** Resolves with the last number given to a row of the table, even if the row was deleted; 0 for none. */
  lastNumber(table: CopiedTable): Promise<number>;
  totals(table: CopiedTable): Promise<Totals>;
  audit(): Promise<AuditReport>;
}

/** The tables of a database as one open transaction writes them. */
export interface TablesWritten extends Pick<TablesRead, 'totals' | 'audit'> {
  isEmpty(table: CopiedTable): Promise<boolean>;
  clear(table: CopiedTable): Promise<void>;
  insert(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>;
  /** Makes the table number its next row above this number. */
  continueAfter(table: CopiedTable, last_number: number): Promise<void>;
}

/** The database that is copied. Nothing else writes to it meanwhile. */
export interface CopySource {
  read<T>(work: (tables: TablesRead) => Promise<T>): Promise<T>;
}

/** The database that receives the copy in one transaction. A rejection of `work` rolls everything back. */
export interface CopyTarget {
  write<T>(work: (tables: TablesWritten) => Promise<T>): Promise<T>;
}

/** Nothing was copied. The message is one sentence that gives the reason and the remedy. */
export class CopyRefused extends Error {
  override readonly name = 'CopyRefused';
}

/** The copy was told to stop. */
export class CopyStopped extends Error {
  override readonly name = 'CopyStopped';
}

/** The result of a copy. */
export interface Copied {
  /** The number of rows of each table. */
  readonly rows: Readonly<Record<string, number>>;
}

export interface CopyOptions {
  /** Returns true to stop the copy. It is called between two batches. */
  readonly isStopped?: () => boolean;
  readonly onProgress?: (progress: { readonly table: string; readonly rows: number }) => void;
}

/**
 * Copies every table. Before the commit it audits both databases and compares their rows and sums. Rejects with
 * `CopyRefused` if a check fails, with `CopyStopped`, and with the databases' own errors. A rejection leaves nothing
 * copied.
 */
export function copyDatabase(
  source: CopySource,
  target: CopyTarget,
  options: CopyOptions = {},
): Promise<Copied> {
  return source.read(async (from) => {
    // An error in the source would otherwise be found only after the copy.
    const before = await from.audit();
    if (!before.ok) {
      throw new CopyRefused(
        `The audit of the source finds a violation (${failed(before)}), whose rows "tds audit" names: ${VIOLATION_ADVICE}.`,
      );
    }
    if (before.open_holds > 0) throw new CopyRefused(openHolds(before.open_holds));
    return await target.write(async (to) => {
      for (const table of copiedTables()) {
        // Every new database has a row with its program's version. The row does not count as data.
        if (table.name === VERSIONS_TABLE) await to.clear(table);
        else if (!(await to.isEmpty(table)))
          throw new CopyRefused(
            'The target has data already, which a copy would mix with: name an empty one.',
          );
      }
      const rows = await copyTables(from, to, options);
      for (const table of copiedTables()) {
        stopIf(options.isStopped);
        await compare(from, to, table);
      }
      const after = await to.audit();
      if (!after.ok) throw new CopyRefused(`The audit of the copy finds a violation (${failed(after)}).`);
      return { rows };
    });
  });
}

/** Copies the rows of every table unchecked. Resolves with the number of rows of each table. */
export async function copyTables(
  from: TablesRead,
  to: TablesWritten,
  options: CopyOptions = {},
): Promise<Readonly<Record<string, number>>> {
  const rows: Record<string, number> = {};
  for (const table of copiedTables()) rows[table.name] = await copyTable(from, to, table, options);
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
  return `The source has ${holds} open holds, which its last service left: start the service on it and stop it half a minute later, which releases them.`;
}

function failed({ checks }: AuditReport): string {
  return checks
    .filter(({ violations }) => violations.length > 0)
    .map(({ name }) => name)
    .join(', ');
}

/** The names of `Totals`, each with the expression that a query counts it by. */
type Counted = readonly (readonly [name: string, expression: string])[];

/** The expressions that a query counts for `Totals`. `sums` has those that differ between SQLite and PostgreSQL. */
export function totalsOf(
  { columns }: CopiedTable,
  sums: Readonly<Record<'bytes' | 'trues', (column: string) => string>>,
): Counted {
  const sumsOf = ({ name, kind }: CopiedColumn): Counted => {
    // The sum has two parts, because a sum of many times overflows an integer.
    if (kind === 'integer') {
      return [
        [`${name} (millions)`, `sum("${name}" / 1000000)`],
        [`${name} (rest)`, `sum("${name}" % 1000000)`],
      ];
    }
    if (kind === 'boolean') return [[`${name} (true)`, sums.trues(`"${name}"`)]];
    return kind === 'text' ? [[`${name} (bytes)`, sums.bytes(`"${name}"`)]] : [];
  };
  return [
    ['rows', 'count(*)'],
    ...columns.map(({ name }) => [`${name} (values)`, `count(${name})`] as const),
    ...columns.flatMap(sumsOf),
  ];
}

/** Reads the query's result, whose columns are `total_0`, `total_1` and so on in the order of `counted`. */
export function totalsFound(
  counted: Counted,
  row: Readonly<Record<string, string>> | null | undefined,
): Totals {
  return Object.fromEntries(counted.map(([name], index) => [name, String(row?.[`total_${index}`])]));
}
