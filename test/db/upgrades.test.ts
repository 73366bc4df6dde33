import type { Database } from 'bun:sqlite';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { runAudit } from '../../db/sqlite/audit.ts';
import { backupNames } from '../../db/sqlite/backup.ts';
import { connectDatabase, openDatabase } from '../../db/sqlite/connection.ts';
import { bringUpToDate, knownMigrations, schemaVersion } from '../../db/sqlite/migrate.ts';
import { lastWriter } from '../../db/sqlite/program-versions.ts';
import { organizations, programVersions } from '../../db/sqlite/schema.ts';
import { openDataDirectory } from '../../src/cli/data-directory.ts';
import { PROGRAM_VERSION } from '../../src/cli/program-version.ts';
import { temporaryDirectory } from '../accounts/support.ts';
import { tds } from '../cli/support.ts';
import { newerMigrations } from '../crash/migration.ts';
import { startChildServer } from '../support/child-server.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const AT_MS = Date.UTC(2026, 5, 15);

/** Rows that all versions write alike: a payment, a charged request, and an open one. */
const ROWS = [
  `INSERT INTO organizations (id, name, tier, credit_micros, held_micros, open_holds, paid_micros, first_paid_at_ms, created_at_ms)
    VALUES ('org_1', 'Old', 1, 24999993, 20, 1, 25000000, ${AT_MS}, ${AT_MS})`,
  `INSERT INTO projects (id, organization_id, name, created_at_ms) VALUES ('proj_1', 'org_1', 'Default', ${AT_MS})`,
  `INSERT INTO api_keys (id, project_id, name, secret_sha256, display_prefix, created_at_ms)
    VALUES ('key_1', 'proj_1', 'Old key', 'aa', 'sk_svc_old', ${AT_MS})`,
  `INSERT INTO payments (id, organization_id, provider, external_id, kind, amount_micros, status, created_at_ms, settled_at_ms)
    VALUES ('pay_1', 'org_1', 'manual', 'pay_1', 'top_up', 25000000, 'completed', ${AT_MS}, ${AT_MS})`,
  `INSERT INTO ledger_entries (id, organization_id, project_id, kind, credit_delta_micros, held_delta_micros, hold_entry_id, request_id, month, payment_id, created_at_ms)
    VALUES (1, 'org_1', NULL, 'top_up', 25000000, 0, NULL, NULL, NULL, 'pay_1', ${AT_MS}),
      (2, 'org_1', 'proj_1', 'hold', 0, 20, NULL, 'req_1', '2026-06', NULL, ${AT_MS}),
      (3, 'org_1', 'proj_1', 'charge', -7, -20, 2, NULL, '2026-06', NULL, ${AT_MS}),
      (4, 'org_1', 'proj_1', 'hold', 0, 20, NULL, 'req_2', '2026-06', NULL, ${AT_MS})`,
  "INSERT INTO project_months (project_id, month, spent_micros, held_micros) VALUES ('proj_1', '2026-06', 7, 20)",
  `INSERT INTO usage_records (request_id, time_ms, organization_id, project_id, api_key_id, model, mode, endpoint, status, questions, input_tokens, cost_micros, latency_ms)
    VALUES ('req_1', ${AT_MS}, 'org_1', 'proj_1', 'key_1', 'decision-1', 'fast', '/v1/decisions', 200, 1, 70, 7, 1.5)`,
];

function fill(client: Database): void {
  for (const row of ROWS) client.run(row);
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
    await service.close();
    const served = openDatabase(join(path, 'tds.sqlite'));
    expect(runAudit(served, { ended_before_ms: Date.now() + 1 }).ok).toBe(true);
    served.$client.close();
    directory.remove();
  },
);

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
