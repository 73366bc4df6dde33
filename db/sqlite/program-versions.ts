import type { Database } from 'bun:sqlite';
import type { Writer } from '../../src/store/database.ts';

/** Records that this version writes the database, whose schema must be this program's. Throws SQLite's errors. */
export function noteVersion(client: Database, version: string, now_ms: number): void {
  client
    .query<never, { version: string; now_ms: number }>(
      `INSERT INTO program_versions (version, first_ms, last_ms) VALUES ($version, $now_ms, $now_ms)
      ON CONFLICT DO UPDATE SET last_ms = excluded.last_ms`,
    )
    .run({ version, now_ms });
}

/** Returns the version that last wrote the database, of any schema; null if none is recorded. */
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
