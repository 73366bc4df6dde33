import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BACKUPS_KEPT, backupNames } from '../../db/sqlite/backup.ts';
import { connectDatabase, openDatabase } from '../../db/sqlite/connection.ts';
import { knownMigrations, schemaVersion } from '../../db/sqlite/migrate.ts';
import { CommandFailed } from '../../src/cli/command-failed.ts';
import { claimDataDirectory, openDataDirectory } from '../../src/cli/data-directory.ts';
import { judgeReach } from '../../src/cli/file-modes.ts';
import { newerMigrations } from '../crash/migration.ts';
import { startChildServer } from '../support/child-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { holdWriteLock } from '../support/write-lock.ts';
import { expectRefused, firstAsProcess, initializeData, tds } from './support.ts';

setDefaultTimeout(120_000);

const { command, commandJson } = firstAsProcess();

/** An initialised data directory in a new folder. */
async function initialized() {
  const root = temporaryDirectory();
  const data = join(root.path, 'data');
  await initializeData(data);
  return { ...root, data };
}

/** The version of the schema in the directory. */
function versionOf(data: string): number {
  const { $client: client } = connectDatabase(join(data, 'tds.sqlite'));
  const version = schemaVersion(client);
  client.close();
  return version;
}

function openAsNewer(data: string): void {
  openDataDirectory(data, { create: false, migrations: newerMigrations() }).$client.close();
}

describe('an older database', () => {
  test('is updated after a backup that only its owner can read', async () => {
    const { data, remove } = await initialized();
    const before = versionOf(data);
    openAsNewer(data);
    expect(versionOf(data)).toBe(before + 1);
    const [backup = '', ...others] = backupNames(data);
    expect(others).toEqual([]);
    expect(statSync(join(data, backup)).mode & 0o777).toBe(0o600);
    const kept = openDatabase(join(data, backup));
    expect(schemaVersion(kept.$client)).toBe(before);
    expect(kept.$client.query('SELECT name, credit_micros FROM organizations').all()).toEqual([
      { name: 'My organization', credit_micros: 25_000_000 },
    ]);
    kept.$client.close();
    openAsNewer(data);
    expect(backupNames(data)).toHaveLength(1);
    remove();
  });

  test('is left as it is by tds doctor, which says what the next start does', async () => {
    using root = temporaryDirectory();
    const data = join(root.path, 'data');
    const migrations = knownMigrations().slice(0, -1);
    openDataDirectory(data, { create: true, migrations }).$client.close();
    const flags = ['--gpu', 'none', '--model', TINY_WEIGHTS, '--port', '0', '--data', data];
    const { stdout } = await command(['doctor', '--json', ...flags]);
    expect(JSON.parse(stdout)).toContainEqual({
      subject: 'data',
      state: 'warning',
      detail: `${data} is of an older version: the next start, or another command, backs it up and updates it.`,
    });
    expect([versionOf(data), backupNames(data)]).toEqual([migrations.length, []]);
  });

  test('is not updated beneath a running server', async () => {
    const { data, remove } = await initialized();
    const before = versionOf(data);
    const unclaim = claimDataDirectory(data);
    expect(() => openAsNewer(data)).toThrow(
      new CommandFailed(
        `This version has to update the database in ${data}, which a server or an update by another command uses: stop the server or wait for the command, then run this one again.`,
      ),
    );
    expect([versionOf(data), backupNames(data)]).toEqual([before, []]);
    openDataDirectory(data, { create: true, claimed: true, migrations: newerMigrations() }).$client.close();
    unclaim();
    expect(versionOf(data)).toBe(before + 1);
    remove();
  });

  test('leaves no more than the newest backups behind where its update fails with every start', async () => {
    const { data, remove } = await initialized();
    const before = versionOf(data);
    const migrations = newerMigrations().map((migration, index) =>
      index < before ? migration : { ...migration, sql: ['INSERT INTO missing_table VALUES (1)'] },
    );
    for (let start = 0; start <= BACKUPS_KEPT; start += 1) {
      expect(() => openDataDirectory(data, { create: false, migrations })).toThrow('no such table');
    }
    expect([versionOf(data), backupNames(data).length]).toEqual([before, BACKUPS_KEPT]);
    remove();
  });

  test('leaves no more than the newest backups behind', async () => {
    const { data, remove } = await initialized();
    const old = Array.from(
      { length: 5 },
      (_, day) => `backup-2001-01-0${day + 1}T00-00-00.000Z-schema-1.sqlite`,
    );
    for (const name of old) writeFileSync(join(data, name), '', { mode: 0o600 });
    writeFileSync(join(data, 'backup-of-mine.sqlite'), '');
    writeFileSync(join(data, `${old[0]}.partial`), '', { mode: 0o600 });
    openAsNewer(data);
    const backups = backupNames(data);
    expect(backups).toHaveLength(BACKUPS_KEPT);
    expect(backups.slice(0, -1)).toEqual(old.slice(1 - BACKUPS_KEPT));
    expect(statSync(join(data, 'backup-of-mine.sqlite')).size).toBe(0);
    expect(statSync(join(data, `${old[0]}.partial`), { throwIfNoEntry: false })).toBeUndefined();
    remove();
  });
});

describe('a database that this program does not know', () => {
  // Its sentence is in `db/upgrades.test.ts`.
  test('of a newer version is refused by commands and servers, and stays as it is', async () => {
    const { data, remove } = await initialized();
    openAsNewer(data);
    const version = versionOf(data);
    for (const words of [
      ['org', 'list'],
      ['serve', '--port', '0'],
    ]) {
      expect(await command([...words, '--data', data])).toMatchObject({ code: 1, stdout: '' });
      expect(versionOf(data)).toBe(version);
    }
    remove();
  });

  test('of another program is refused, and nothing is added to it', async () => {
    const { path, remove } = temporaryDirectory();
    const file = join(path, 'tds.sqlite');
    const { $client: client } = connectDatabase(file);
    client.run('CREATE TABLE notes (text TEXT)');
    client.close();
    chmodSync(file, 0o600);
    const refused = await command(['init', '--data', path]);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(/^tds: [^\n]+ is no database of this program[^\n]+\.\n$/);
    const after = connectDatabase(file);
    expect(after.$client.query('SELECT name FROM sqlite_schema').all()).toEqual([{ name: 'notes' }]);
    after.$client.close();
    remove();
  });
});

test('commands that meet on a new data directory all find it made, and made once', async () => {
  const root = temporaryDirectory();
  const data = join(root.path, 'data');
  const finished = await Promise.all(
    Array.from({ length: 5 }, () => tds(['init', '--json', '--data', data])),
  );
  expect(finished.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    finished.map(() => ({ code: 0, stderr: '' })),
  );
  expect(finished.filter(({ stdout }) => JSON.parse(stdout).initialized === true)).toHaveLength(1);
  expect(await commandJson(['org', 'list', '--data', data])).toHaveLength(1);
  expect([versionOf(data), backupNames(data)]).toEqual([knownMigrations().length, []]);
  root.remove();
});

test('a data directory that this user cannot see into is not taken for an empty one', async () => {
  const root = temporaryDirectory();
  const loop = join(root.path, 'loop');
  symlinkSync(loop, loop);
  writeFileSync(join(root.path, 'file'), '');
  for (const [data, sentence] of [
    [
      loop,
      `The data directory ${loop} cannot be written (ELOOP): give this user the right to write it or name another with --data.`,
    ],
    [join(root.path, 'file'), `${join(root.path, 'file')} is not a directory: name another with --data.`],
  ] as const) {
    for (const words of [
      ['org', 'list'],
      ['serve', '--port', '0'],
    ])
      expectRefused(await command([...words, '--data', data]), sentence);
  }
  root.remove();
});

/** Runs a program while the folder `$0` is mounted for reading only. */
const readOnly = (path: string) => [
  ...['unshare', '--map-root-user', '--mount', 'sh', '-c'],
  ...['mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"', path],
];
const can_mount = Bun.spawnSync([...readOnly('/tmp'), 'true']).success;

test.skipIf(!can_mount)(
  'a data directory on a disk that became read-only is told from one without rights',
  async () => {
    const { data, remove } = await initialized();
    expectRefused(
      await tds(['org', 'list', '--data', data], { within: readOnly(data) }),
      `The data directory ${data} is on a disk that cannot be written: mount it for writing, or name another with --data.`,
    );
    remove();
  },
);

test('a second server is told that one is running, whatever the state of the database', async () => {
  const { data, path, remove } = await initialized();
  const server = await startChildServer(data, path);
  const lock = await holdWriteLock(data);
  const second = await command(['serve', '--port', '0', '--data', data]);
  await lock.release();
  expect(second).toEqual({
    code: 1,
    stdout: '',
    stderr: `tds: Another server is running on ${data}: stop it, or name another directory with --data.\n`,
  });
  expect((await command(['org', 'list', '--data', data])).code).toBe(0);
  expect(await server.stop()).toBe(0);
  remove();
});

describe("other users' access", () => {
  const [us, another, root] = [1000, 1001, 0];

  test.each([
    ['directory', '700', us, us, 'private'],
    ['directory', '700', another, us, 'private'],
    ['directory', '755', us, us, 'tighten'],
    ['directory', '711', us, root, 'tighten'],
    ['directory', '755', another, us, 'refuse'],
    ['directory', '775', us, us, 'refuse'],
    ['directory', '1777', root, root, 'refuse'],
    ['file', '600', us, us, 'private'],
    ['file', '644', us, us, 'tighten'],
    ['file', '666', us, us, 'tighten'],
    ['file', '640', us, root, 'tighten'],
    ['file', '666', another, us, 'refuse'],
  ] as const)('a %s of mode %s of user %d, opened by user %d: %s', (kind, mode, uid, user_id, verdict) => {
    expect(judgeReach({ kind, mode: Number.parseInt(mode, 8), uid }, user_id)).toBe(verdict);
  });

  test('is taken away from the directory and all files in it, with a line for each', async () => {
    const { data, remove } = await initialized();
    openAsNewer(data);
    const [backup = ''] = backupNames(data);
    // Open while the command runs, so that the files of the write-ahead log are there.
    const { $client: client } = connectDatabase(join(data, 'tds.sqlite'));
    client.run('DELETE FROM __drizzle_migrations WHERE hash = ?', ['added']);
    const files = ['tds.sqlite', 'tds.sqlite-wal', 'tds.sqlite-shm', 'server.lock', backup];
    for (const name of files) {
      expect([name, statSync(join(data, name)).mode & 0o777]).toEqual([name, 0o600]);
      chmodSync(join(data, name), 0o644);
    }
    chmodSync(data, 0o755);
    const told = await command(['org', 'list', '--data', data]);
    expect(told.code).toBe(0);
    const lines = [`${data} was open to other users (mode 755); now it is not (mode 700).`];
    for (const name of files)
      lines.push(`${join(data, name)} was open to other users (mode 644); now it is not (mode 600).`);
    expect(told.stderr.trimEnd().split('\n').sort()).toEqual(lines.map((line) => `tds: ${line}`).sort());
    expect(statSync(data).mode & 0o777).toBe(0o700);
    for (const name of files) expect(statSync(join(data, name)).mode & 0o777).toBe(0o600);
    expect(await command(['org', 'list', '--data', data])).toMatchObject({ code: 0, stderr: '' });
    client.close();
    remove();
  });

  test('to write the directory is refused, by commands and servers, before anything is made in it', async () => {
    const root = temporaryDirectory();
    const data = join(root.path, 'open');
    mkdirSync(data);
    chmodSync(data, 0o777);
    for (const args of [['init'], ['serve', '--init', '--port', '0']]) {
      const refused = await command([...args, '--data', data]);
      expect(refused).toEqual({
        code: 1,
        stdout: '',
        stderr: `tds: ${data} is open to other users (mode 777): let its owner run "chmod 700 ${data}", or name another directory with --data.\n`,
      });
      expect(readdirSync(data)).toEqual([]);
    }
    root.remove();
  });
});
