import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { bringUpToDate, knownMigrations } from '../../db/sqlite/migrate.ts';
import { organizations } from '../../db/sqlite/schema.ts';
import { temporaryDirectory } from '../accounts/support.ts';

test('an organization that an earlier version refunded in full starts its days anew', () => {
  const directory = temporaryDirectory();
  const path = join(directory.path, 'tds.sqlite');
  const earlier = new Database(path, { create: true, readwrite: true, strict: true });
  bringUpToDate(earlier, knownMigrations().slice(0, 1));
  earlier.run(
    "INSERT INTO organizations (id, name, first_paid_at_ms, created_at_ms) VALUES ('org_1', 'Refunded', 5, 0)",
  );
  bringUpToDate(earlier);
  earlier.close();
  const db = openDatabase(path);
  expect(db.select().from(organizations).get()?.first_paid_at_ms).toBeNull();
  expect(runAudit(db).ok).toBe(true);
  db.$client.close();
  directory.remove();
});
