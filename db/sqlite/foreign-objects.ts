import { Database } from 'bun:sqlite';
import { bringUpToDate, knownMigrations, schemaVersion } from './migrate.ts';

/** The tables that Litestream creates in every database that it replicates. */
const LITESTREAM_TABLES = ['_litestream_seq', '_litestream_lock'];

interface SchemaObject {
  readonly type: string;
  readonly name: string;
}

/**
 * Returns the first table, view or trigger that no migration of the database's version creates, such as `trigger "x"`;
 * null for none. A trigger or view could change the effect of this program's statements. Call it once `schemaState` has
 * found only known migrations.
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

/** Returns the objects of the schema without indexes, which change no result. */
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
