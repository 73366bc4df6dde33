import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { runAudit } from '../../db/sqlite/audit.ts';
import { BACKUPS_KEPT, backupNames } from '../../db/sqlite/backup.ts';
import { connectDatabase, openDatabase } from '../../db/sqlite/connection.ts';
import { knownMigrations, schemaState, schemaVersion } from '../../db/sqlite/migrate.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { initialize } from '../../src/cli/initialize.ts';
import { propertySeed } from '../ledger/support.ts';
import { contextOn } from '../support/context.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { MIGRATED_ROWS, newerMigrations } from './migration.ts';

const CHILD = join(import.meta.dir, 'migration-child.ts');
const KILLS = 12;

/** Updates the database in a process of its own, which is killed after that time; null lets it finish. */
async function update(directory: string, killed_after_ms: number | null): Promise<number> {
  const child = Bun.spawn([process.execPath, CHILD, directory], { stdout: 'pipe', stderr: 'pipe' });
  await child.stdout.getReader().read();
  const started_ms = performance.now();
  if (killed_after_ms !== null) {
    await Promise.race([child.exited, Bun.sleep(killed_after_ms)]);
    child.kill('SIGKILL');
  }
  const code = await child.exited;
  if (killed_after_ms === null)
    expect([code, await new Response(child.stderr).text()]).toEqual([0, expect.any(String)]);
  return performance.now() - started_ms;
}

/** A data directory as this version leaves it, with an organization. */
async function initialized(): Promise<ReturnType<typeof temporaryDirectory>> {
  const directory = temporaryDirectory();
  const db = openDataDirectory(directory.path, { create: true });
  await initialize(contextOn(db));
  db.$client.close();
  return directory;
}

test('an update that is killed at any moment leaves the database as it was or as it will be, and can be done again', async () => {
  const timed = await initialized();
  let duration_ms = await update(timed.path, null);
  timed.remove();

  let directory = await initialized();
  const before = knownMigrations().length;
  const fractions = fc.sample(fc.double({ min: 0, max: 1, noNaN: true }), {
    seed: propertySeed('killed updates'),
    numRuns: KILLS,
  });
  let left_older = 0;
  for (const fraction of fractions) {
    const lasted_ms = await update(directory.path, fraction * duration_ms);
    const db = connectDatabase(join(directory.path, 'tds.sqlite'));
    const { $client: client } = db;
    const version = schemaVersion(client);
    const added = client
      .query<{ n: number }, []>("SELECT count(*) AS n FROM sqlite_schema WHERE tbl_name = 'added'")
      .get();
    expect([
      { version: before, added: 0 },
      { version: before + 1, added: 2 },
    ]).toContainEqual({ version, added: added?.n ?? -1 });
    expect(runAudit(db).ok).toBe(true);
    client.close();
    if (version === before) {
      left_older += 1;
      continue;
    }
    // The machine may have been slower while the first update was timed.
    duration_ms = Math.min(duration_ms, lasted_ms);
    directory.remove();
    directory = await initialized();
  }
  expect(left_older).toBeGreaterThan(0);

  await update(directory.path, null);
  const { $client: client } = connectDatabase(join(directory.path, 'tds.sqlite'));
  expect(schemaState(client, newerMigrations())).toBe('current');
  expect(client.query('SELECT count(*) AS n FROM added').get()).toEqual({ n: MIGRATED_ROWS });
  client.close();
  const backups = backupNames(directory.path);
  expect(backups.length).toBeGreaterThan(0);
  expect(backups.length).toBeLessThanOrEqual(BACKUPS_KEPT);
  expect(readdirSync(directory.path).filter((name) => name.includes('partial'))).toEqual([]);
  for (const name of backups) {
    const backup = openDatabase(join(directory.path, name));
    expect(runAudit(backup).ok).toBe(true);
    backup.$client.close();
  }
  directory.remove();
}, 120_000);
