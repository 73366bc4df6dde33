import type { Database } from 'bun:sqlite';
import type { Writer } from '../../src/database.ts';

/** Notes that this version writes the database, whose schema must be this program's. Throws what SQLite throws. */
export function noteVersion(client: Database, version: string, now_ms: number): void {
  client
    .query<never, { version: string; now_ms: number }>(
      `INSERT INTO program_versions (version, first_ms, last_ms) VALUES ($version, $now_ms, $now_ms)
      ON CONFLICT DO UPDATE SET last_ms = excluded.last_ms`,
    )
    .run({ version, now_ms });
}

/** Which version last wrote the database, whatever its schema; null where versions did not note that yet. */
export function lastWriter(client: Database): Writer | null {
  const has_table = client
    .query<{ found: number }, []>("SELECT 1 AS found FROM sqlite_schema WHERE name = 'program_versions'")
    .get();
  if (has_table === null) return null;
  return client
    .query<Writer, []>(
      'SELECT version, last_ms FROM program_versions ORDER BY last_ms DESC, rowid DESC LIMIT 1',
    )
    .get();
}
