import type { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { backupNames } from '../../db/sqlite/backup.ts';
import { connectDatabase, openDatabase } from '../../db/sqlite/connection.ts';
import { bringUpToDate, knownMigrations, schemaVersion } from '../../db/sqlite/migrate.ts';
import { lastWriter } from '../../db/sqlite/program-versions.ts';
import { organizations, programVersions, projectMonths } from '../../db/sqlite/schema.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { PROGRAM_VERSION } from '../../src/program/build-info.ts';
import { tds } from '../cli/support.ts';
import { newerMigrations } from '../crash/migration.ts';
import { startChildServer } from '../support/child-server.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { COUNT_BY_KEY, COUNTED_BY_KEY, MONTHS_BY_KEY, OLD_ROWS } from './old-rows.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

function fill(client: Database): void {
  for (const row of OLD_ROWS) client.run(row);
}

/** A data directory as the version with that many migrations left it. */
function directoryOf(migrations: number): ReturnType<typeof temporaryDirectory> {
  const directory = temporaryDirectory();
  const { $client: client } = connectDatabase(join(directory.path, 'tds.sqlite'));
  bringUpToDate(client, knownMigrations().slice(0, migrations));
  fill(client);
  client.close();
  chmodSync(join(directory.path, 'tds.sqlite'), 0o600);
  return directory;
}

test.each(knownMigrations().map((_, index) => index + 1))(
  'a database with the first %d migrations is updated after a backup, is right in its books, and is served',
  async (migrations) => {
    const directory = directoryOf(migrations);
    const { path } = directory;
    const db = openDataDirectory(path, { create: false });
    expect(schemaVersion(db.$client)).toBe(knownMigrations().length);
    const is_current = migrations === knownMigrations().length;
    expect(lastWriter(db.$client)?.version).toBe(is_current ? undefined : PROGRAM_VERSION);
    expect(backupNames(path)).toHaveLength(is_current ? 0 : 1);
    const report = runAudit(db);
    expect(report.checks.filter(({ violations }) => violations.length > 0)).toEqual([]);
    expect(report.open_holds).toBe(1);
    // Spend of before belongs to the project, and to none of its keys.
    const month = { project_id: 'proj_1', month: '2026-06', spent_micros: 7, api_key_id: '' };
    expect(db.select().from(projectMonths).all()).toEqual([{ ...month, held_micros: 20 }]);
    db.$client.close();

    const service = await startTestService({ directory: path });
    const account = await addAccount(service);
    expect((await post(service, account.key, SMALL_REQUEST)).status).toBe(200);
    // The hold that the old version left open is released: only the charge is gone.
    const old = service.db
      .select()
      .from(organizations)
      .all()
      .find(({ id }) => id === 'org_1');
    expect(old).toMatchObject({ credit_micros: 24_999_993, held_micros: 0, open_holds: 0 });
    const months = service.db.select().from(projectMonths).all();
    expect(months.filter(({ project_id }) => project_id === 'proj_1')).toEqual([
      { ...month, held_micros: 0 },
    ]);
    await service.close();
    const served = openDatabase(join(path, 'tds.sqlite'));
    expect(runAudit(served, { ended_before_ms: Date.now() + 1 }).ok).toBe(true);
    served.$client.close();
    directory.remove();
  },
);

test.each(Object.values(COUNTED_BY_KEY))(
  'with the first %d migrations, projects get the sums of what was counted for their keys and for none',
  (migrations) => {
    const directory = directoryOf(migrations);
    const db = connectDatabase(join(directory.path, 'tds.sqlite'));
    for (const statement of COUNT_BY_KEY) db.$client.run(statement);
    bringUpToDate(db.$client);
    const { project_id, month, api_key_id } = projectMonths;
    const months = db.select().from(projectMonths).orderBy(project_id, month, api_key_id);
    expect(months.all()).toEqual(MONTHS_BY_KEY);
    expect(runAudit(db)).toMatchObject({ ok: true, open_holds: 1 });
    db.$client.close();
    directory.remove();
  },
);

test('an update that adds kinds of alerts keeps the alerts, their recipients and their numbers', () => {
  const directory = directoryOf(3);
  const { $client: before } = connectDatabase(join(directory.path, 'tds.sqlite'));
  const rows = (client: Database) => [
    client.query('SELECT * FROM alerts').all(),
    client.query('SELECT * FROM alert_recipients').all(),
    client.query("SELECT seq FROM sqlite_sequence WHERE name = 'alerts'").all(),
  ];
  before.run(
    "INSERT INTO users (id, email, name, created_at_ms) VALUES ('user_1', 'a@example.com', 'Ada', 1)",
  );
  before.run(`INSERT INTO alerts (id, organization_id, kind, subject_id, limit_micros, created_at_ms)
    VALUES (7, 'org_1', 'credit_low', 'org_1', 5, 1)`);
  before.run('INSERT INTO alert_recipients (alert_id, user_id, mail_due_ms) VALUES (7, ?, 2)', ['user_1']);
  const stored = rows(before);
  before.close();
  const { $client: after } = openDataDirectory(directory.path, { create: false });
  expect(rows(after)).toEqual(stored);
  after.run("UPDATE alerts SET kind = 'key_spend_limit_near'");
  after.run('DELETE FROM alerts');
  expect(after.query('SELECT * FROM alert_recipients').all()).toEqual([]);
  after.close();
  directory.remove();
});

test('a database names the versions that wrote it; an older one refuses a newer schema and names both', async () => {
  const directory = directoryOf(1);
  const open = (version: string, migrations = knownMigrations()) =>
    openDataDirectory(directory.path, { create: false, version, migrations }).$client.close();
  const newest = newerMigrations().map((migration) => ({
    ...migration,
    sql: [],
    hash: `newest ${migration.hash}`,
  }));
  open('0.0.9', newerMigrations());
  open('9.9.9', [...newerMigrations(), ...newest.slice(-1)]);
  const { $client: client } = connectDatabase(join(directory.path, 'tds.sqlite'));
  expect(lastWriter(client)?.version).toBe('9.9.9');
  expect(client.query('SELECT version FROM program_versions ORDER BY first_ms, rowid').values()).toEqual([
    ['0.0.9'],
    ['9.9.9'],
  ]);
  client.close();
  for (const args of [
    ['org', 'list'],
    ['serve', '--port', '0'],
  ])
    expect(await tds([...args, '--data', directory.path])).toEqual({
      code: 1,
      stdout: '',
      stderr: `tds: ${join(directory.path, 'tds.sqlite')}, last written by version 9.9.9 while this is version ${PROGRAM_VERSION}, was made by a newer version of this program: use the program that made it, or name another directory with --data.\n`,
    });
  directory.remove();
});

test('a start notes its version, and a later one of the same version when it was', async () => {
  const directory = directoryOf(knownMigrations().length);
  const versions: number[] = [];
  for (let start = 0; start < 2; start += 1) {
    const server = await startChildServer(directory.path, directory.path);
    expect(await server.stop()).toBe(0);
    const db = openDatabase(join(directory.path, 'tds.sqlite'));
    const rows = db.select().from(programVersions).all();
    expect(rows.map(({ version }) => version)).toEqual([PROGRAM_VERSION]);
    versions.push(...rows.map(({ last_ms }) => last_ms));
    db.$client.close();
  }
  expect(versions[1]).toBeGreaterThan(versions[0] ?? Number.NaN);
  directory.remove();
});
