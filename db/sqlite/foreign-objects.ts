import { Database } from 'bun:sqlite';
import { bringUpToDate, knownMigrations, schemaVersion } from './migrate.ts';

/** What Litestream makes in every database that it replicates. */
const LITESTREAM_TABLES = ['_litestream_seq', '_litestream_lock'];

interface SchemaObject {
  readonly type: string;
  readonly name: string;
}

/**
 * The first table, view or trigger that no migration of the database's own version makes, such as `trigger "x"`; null
 * where there is none. A trigger or a view would change what later statements of this program do. Call it once
 * `schemaState` has found only known migrations.
 */
export function foreignObject(client: Database): string | null {
  using expected = new Database(':memory:', { strict: true });
  bringUpToDate(expected, knownMigrations().slice(0, schemaVersion(client)));
  const own = new Set([
    ...objectsOf(expected).map(labelOf),
    ...LITESTREAM_TABLES.map((name) => labelOf({ type: 'table', name })),
  ]);
  return (
    objectsOf(client)
      .map(labelOf)
      .find((label) => !own.has(label)) ?? null
  );
}

/** An index is left out: it changes no answer. */
function objectsOf(client: Database): readonly SchemaObject[] {
  return client
    .query<SchemaObject, []>(
      "SELECT type, name FROM sqlite_schema WHERE type <> 'index' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .all();
}

function labelOf({ type, name }: SchemaObject): string {
  return `${type} ${JSON.stringify(name)}`;
}
