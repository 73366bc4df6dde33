import type { Migrations } from '../../db/schema-state.ts';
import { knownMigrations } from '../../db/sqlite/migrate.ts';

/** How many rows the added migration writes: so many that a kill can hit it at work. */
export const MIGRATED_ROWS = 150_000;

/** Returns the migrations of a newer version: one more, which takes a while. */
export function newerMigrations(): Migrations {
  const known = knownMigrations();
  return [
    ...known,
    {
      sql: [
        'CREATE TABLE added (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT',
        `INSERT INTO added (id, text) WITH RECURSIVE counted(id) AS (
          SELECT 1 UNION ALL SELECT id + 1 FROM counted WHERE id < ${MIGRATED_ROWS}) SELECT id, hex(id) FROM counted`,
        'CREATE INDEX added_text ON added(text)',
        'ALTER TABLE organizations ADD COLUMN added INTEGER',
      ],
      folderMillis: Date.UTC(2100, 0),
      hash: 'added',
      bps: true,
    },
  ];
}
