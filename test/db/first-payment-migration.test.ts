import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/bun-sqlite';
import { migrate } from 'drizzle-orm/bun-sqlite/migrator';
import { runAudit } from '../../db/audit.ts';
import { openDatabase } from '../../db/connection.ts';
import { organizations } from '../../db/schema.ts';
import { temporaryDirectory } from '../accounts/support.ts';

const MIGRATIONS = join(import.meta.dir, '../../db/migrations');
const INITIAL = '0000_initial';

/** A folder with the first migration alone, as the first version had it. */
function initialMigrations(directory: string): string {
  const folder = join(directory, 'migrations');
  mkdirSync(join(folder, 'meta'), { recursive: true });
  cpSync(join(MIGRATIONS, `${INITIAL}.sql`), join(folder, `${INITIAL}.sql`));
  const journal = JSON.parse(readFileSync(join(MIGRATIONS, 'meta/_journal.json'), 'utf8'));
  const entries = journal.entries.filter((entry: { tag: string }) => entry.tag === INITIAL);
  writeFileSync(join(folder, 'meta/_journal.json'), JSON.stringify({ ...journal, entries }));
  return folder;
}

test('an organization that an earlier version refunded in full starts its days anew', () => {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'tds.sqlite');
  const earlier = new Database(path, { create: true, readwrite: true, strict: true });
  migrate(drizzle(earlier), { migrationsFolder: initialMigrations(directory.path) });
  earlier.run(
    "INSERT INTO organizations (id, name, first_paid_at_ms, created_at_ms) VALUES ('org_1', 'Refunded', 5, 0)",
  );
  earlier.close();
  const db = openDatabase(path);
  expect(db.select().from(organizations).get()?.first_paid_at_ms).toBeNull();
  expect(runAudit(db).ok).toBe(true);
  db.$client.close();
  directory.remove();
});
