import { getTableName, is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as schema from './sqlite/schema.ts';
import { ROW_NUMBER } from './sqlite/sqlite-table.ts';

/** The JSON type that carries a column's values from one database to the other. */
export type ColumnKind = 'integer' | 'real' | 'text' | 'boolean' | 'json';

export interface CopiedColumn {
  readonly name: string;
  readonly kind: ColumnKind;
}

/** A table that both databases have. */
export interface CopiedTable {
  readonly name: string;
  readonly columns: readonly CopiedColumn[];
  /** The columns of the primary key. */
  readonly key: readonly string[];
  /** The column that refers to another row of the table; null for none. */
  readonly refers_to_itself: string | null;
  /** The column in which the database numbers new rows; null for none. */
  readonly number: string | null;
}

/** A row by its columns. */
export type CopiedRow = Readonly<Record<string, unknown>>;

/** The tables whose numbers are copied: an audit continues from them, and new keys are found by them. */
const NUMBERED_BESIDE = ['usage_records', 'api_keys'];

const KINDS: Readonly<Record<string, ColumnKind>> = {
  SQLiteText: 'text',
  SQLiteTextJson: 'json',
  SQLiteInteger: 'integer',
  SQLiteBoolean: 'boolean',
  SQLiteReal: 'real',
};

let tables: readonly CopiedTable[] | undefined;

/**
 * Returns every table of SQLite's schema, each after the tables that it refers to. They are made at the first call,
 * because every command loads this file and few copy.
 */
export function copiedTables(): readonly CopiedTable[] {
  tables ??= inOrderOfReferences(
    Object.values(schema)
      .filter((value) => is(value, SQLiteTable))
      .map(copiedTable),
  );
  return tables;
}

function copiedTable(table: SQLiteTable) {
  const { name, columns, primaryKeys, foreignKeys } = getTableConfig(table);
  const references = foreignKeys.map((key) => {
    const { columns: from, foreignTable } = key.reference();
    return { column: from[0]?.name, to: getTableName(foreignTable) };
  });
  const numbered = columns.find((column) => 'autoIncrement' in column && column.autoIncrement === true);
  const beside = NUMBERED_BESIDE.includes(name) ? [{ name: ROW_NUMBER, kind: 'integer' as const }] : [];
  return {
    name,
    columns: [...columns.map((column) => ({ name: column.name, kind: kindOf(column) })), ...beside],
    key: [
      ...columns.filter(({ primary }) => primary),
      ...primaryKeys.flatMap((primary) => primary.columns),
    ].map((column) => column.name),
    refers_to_itself: references.find(({ to }) => to === name)?.column ?? null,
    number: numbered?.name ?? beside[0]?.name ?? null,
    refers_to: references.map(({ to }) => to).filter((to) => to !== name),
  };
}

function kindOf(column: { readonly name: string; readonly columnType: string }): ColumnKind {
  const kind = KINDS[column.columnType];
  if (kind === undefined) throw new TypeError(`the column ${column.name} is of no kind that can be copied`);
  return kind;
}

function inOrderOfReferences<Table extends { readonly name: string; readonly refers_to: readonly string[] }>(
  tables: readonly Table[],
): readonly Table[] {
  const ordered: Table[] = [];
  while (ordered.length < tables.length) {
    const names = new Set(ordered.map(({ name }) => name));
    const next = tables.find(
      (table) => !names.has(table.name) && table.refers_to.every((to) => names.has(to)),
    );
    if (next === undefined) throw new TypeError('tables refer to each other in a circle');
    ordered.push(next);
  }
  return ordered;
}
