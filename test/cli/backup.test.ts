import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { backUp, backupNames, copyDatabase } from '../../db/sqlite/backup.ts';
import { connectDatabase, openDatabase } from '../../db/sqlite/connection.ts';
import { lockFile } from '../../db/sqlite/lock.ts';
import { bringUpToDate, knownMigrations } from '../../db/sqlite/migrate.ts';
import { newerMigrations } from '../crash/migration.ts';
import { startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { openFiles } from '../support/process-files.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { expectRefused, firstAsProcess, initializeData, tds, withoutRootsRights } from './support.ts';

setDefaultTimeout(120_000);

let root: ReturnType<typeof temporaryDirectory>;
let data: string;
let file: string;
let other: string;
beforeEach(async () => {
  root = temporaryDirectory();
  data = join(root.path, 'data');
  file = join(root.path, 'backup.sqlite.zst');
  other = join(root.path, 'other');
  await initializeData(data);
});
afterEach(() => root.remove());

const { command, commandJson } = firstAsProcess();
const backup = () => command(['backup', file, '--data', data]);
const restore = () => command(['restore', file, '--data', other]);
const organizations = (directory: string) => commandJson(['org', 'list', '--data', directory]);

/** The file of the database of a data directory that another schema was put into. */
function databaseWith(migrations: ReturnType<typeof knownMigrations>): string {
  const path = join(root.path, 'schema.sqlite');
  const { $client: client } = connectDatabase(path);
  bringUpToDate(client, migrations);
  const copy = backUp(client, 0);
  client.close();
  return copy;
}

describe('tds backup', () => {
  test('writes a file for the owner only, which tds restore puts into a new data directory', async () => {
    expect(await backup()).toMatchObject({ code: 0, stderr: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(file).size).toBeLessThan(statSync(join(data, 'tds.sqlite')).size / 4);
    expect((await restore()).code).toBe(0);
    expect(statSync(other).mode & 0o777).toBe(0o700);
    expect(await organizations(other)).toEqual(await organizations(data));
    expect((await command(['audit', '--data', other])).code).toBe(0);
  });

  test('never overwrites a file', async () => {
    writeFileSync(file, 'mine');
    expectRefused(await backup(), `${file} exists already, and nothing is overwritten: name another file.`);
    expect(readFileSync(file, 'utf8')).toBe('mine');
  });

  test('in a missing folder is refused', async () => {
    file = join(root.path, 'missing', 'a.zst');
    expectRefused(
      await backup(),
      `${join(root.path, 'missing')} does not exist: make it first, or name another file.`,
    );
  });

  test('on a full disk leaves nothing behind but a sentence', async () => {
    const before = readdirSync(root.path);
    // Room for what SQLite keeps beside the database, and for no copy of it.
    const line = `trap '' XFSZ; ulimit -f 100; exec "$0" "$@"`;
    const child = Bun.spawn(['sh', '-c', line, process.execPath, MAIN, 'backup', file, '--data', data], {
      stdout: 'ignore',
      stderr: 'pipe',
    });
    expect(await new Response(child.stderr).text()).toBe(
      `tds: ${root.path} has no room left: make room on its disk, or name another file.\n`,
    );
    expect(await child.exited).toBe(1);
    expect(readdirSync(root.path)).toEqual(before);
  });

  test('of a database whose books are not right is refused', async () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
    client.close();
    expectRefused(
      await backup(),
      'The database is not sound (balance_equals_ledger), so that no backup was made of it: run "tds audit".',
    );
    expect(existsSync(file)).toBe(false);
  });

  test('that another command is writing is refused and left alone, and what a killed one left is replaced', async () => {
    const folder = `${file}.copy.partial`;
    mkdirSync(folder);
    writeFileSync(join(folder, 'copy.sqlite'), 'unfinished');
    const unlock = lockFile(join(folder, 'lock'));
    expectRefused(
      await tds(['backup', file, '--data', data]),
      `Another command writes ${file}: wait for it, or name another file.`,
    );
    unlock();
    expect(await backup()).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(root.path).sort()).toEqual(['backup.sqlite.zst', 'data']);
  });

  test.skipIf(process.platform !== 'linux')(
    'that is stopped while another command writes it leaves the files of that one alone',
    async () => {
      const folder = `${file}.copy.partial`;
      mkdirSync(folder);
      writeFileSync(join(folder, 'copy.sqlite'), 'unfinished');
      const unlock = lockFile(join(folder, 'lock'));
      const child = Bun.spawn([process.execPath, MAIN, 'backup', file, '--data', data], { stderr: 'ignore' });
      const { ino } = statSync(join(folder, 'lock'));
      const isLock = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino === ino;
      await eventually(() => openFiles(child.pid).some(isLock));
      child.kill('SIGINT');
      expect(await child.exited).toBe(130);
      expect(readFileSync(join(folder, 'copy.sqlite'), 'utf8')).toBe('unfinished');
      unlock();
    },
  );

  test('is refused beside a folder that others can write, who could read the copy there', async () => {
    const folder = `${file}.copy.partial`;
    const sentence = `${folder} is in the way, and others can write it: remove it, or name another file.`;
    mkdirSync(folder);
    chmodSync(folder, 0o777);
    expectRefused(await backup(), sentence);
    rmSync(folder, { recursive: true });
    // A link to a folder of this user can be turned to another one later.
    symlinkSync(data, folder);
    expectRefused(await backup(), sentence);
    expect(readdirSync(root.path).sort()).toEqual(['backup.sqlite.zst.copy.partial', 'data']);
  });

  test('writes no copy into a file that is there, whose owner could read it', () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    writeFileSync(other, '');
    expect(() => copyDatabase(client, other)).toThrow('EEXIST');
    client.close();
    expect(statSync(other).size).toBe(0);
  });

  test('that is stopped in the middle leaves nothing behind but a sentence', async () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    // So large that it is still being copied when the signal comes.
    client.run('CREATE TABLE large (bytes BLOB)');
    for (let row = 0; row < 100; row += 1) client.run('INSERT INTO large VALUES (randomblob(2000000))');
    client.close();
    const child = Bun.spawn([process.execPath, MAIN, 'backup', file, '--data', data], { stderr: 'pipe' });
    await eventually(() => existsSync(`${file}.copy.partial`));
    child.kill('SIGINT');
    expect(await child.exited).toBe(130);
    expect(await new Response(child.stderr).text()).toBe(
      'tds: The backup was stopped: nothing is left of it.\n',
    );
    expect(readdirSync(root.path)).toEqual(['data']);
  });
});

describe('tds restore', () => {
  test('refuses the data of a running service', async () => {
    await backup();
    const server = await startChildServer(data, root.path);
    for (const flags of [[], ['--replace']])
      expectRefused(
        await command(['restore', file, '--data', data, ...flags]),
        `Another server is running on ${data}: stop it, or name another directory with --data.`,
      );
    expect(await server.stop()).toBe(0);
  });

  test('refuses to overwrite a database, and with --replace keeps it beside the restored one', async () => {
    await backup();
    await commandJson(['org', 'create', 'Later', '--data', data]);
    const later = await organizations(data);
    other = data;
    expectRefused(
      await restore(),
      `There is a database in ${data} already: name another directory with --data, or add --replace to keep it under another name.`,
    );
    expect(await organizations(data)).toEqual(later);
    // With commits that are still in the log.
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    client.run("UPDATE organizations SET name = 'Latest' WHERE name = 'Later'");
    const restored = await tds(['restore', file, '--data', data, '--replace']);
    client.close();
    expect(restored.code).toBe(0);
    expect(await organizations(data)).toHaveLength(1);
    const [kept = ''] = readdirSync(data).filter(
      (name) => name.includes('replaced') && name.endsWith('.sqlite'),
    );
    expect(statSync(join(data, kept)).mode & 0o777).toBe(0o600);
    const before = openDatabase(join(data, kept));
    expect(before.$client.query('SELECT name FROM organizations ORDER BY name').values()).toEqual([
      ['Latest'],
      ['My organization'],
    ]);
    before.$client.close();
  });

  test('refuses what is missing, damaged, cut or no backup, and puts nothing into place', async () => {
    expectRefused(await restore(), `There is no file ${file}: name a backup.`);
    await backup();
    const whole = readFileSync(file);
    const damaged = Buffer.from(whole);
    damaged.writeUInt8(damaged.readUInt8(whole.length - 2) ^ 1, whole.length - 2);
    for (const bytes of [damaged, whole.subarray(0, whole.length - 100), whole.subarray(0, 50)]) {
      writeFileSync(file, bytes);
      expectRefused(await restore(), `${file} is damaged: restore another backup.`);
    }
    writeFileSync(file, 'a letter');
    expectRefused(await restore(), `${file} is no backup: name a file that "tds backup" wrote.`);
    expect(readdirSync(other)).toEqual(['server.lock']);
  });

  test('refuses a database that was not closed, whose newest commits are in its log only', async () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    client.run("UPDATE organizations SET name = 'Latest'");
    const copy = join(root.path, 'copy');
    mkdirSync(copy, { mode: 0o700 });
    for (const name of ['tds.sqlite', 'tds.sqlite-wal']) copyFileSync(join(data, name), join(copy, name));
    client.close();
    const link = join(root.path, 'link.sqlite');
    symlinkSync(join(copy, 'tds.sqlite'), link);
    for (const path of [join(copy, 'tds.sqlite'), link]) {
      file = path;
      expectRefused(
        await restore(),
        `${path} has a write-ahead log beside it, which a restore would lose: put both into an empty data directory as tds.sqlite and tds.sqlite-wal, or use "tds backup".`,
      );
    }
    expect(readdirSync(other)).toEqual(['server.lock']);
    expect(await organizations(copy)).toEqual([expect.objectContaining({ name: 'Latest' })]);
    // An empty log holds nothing that a restore could lose.
    const { $client: copied } = openDatabase(join(copy, 'tds.sqlite'));
    copied.run('PRAGMA wal_checkpoint(TRUNCATE)');
    file = join(copy, 'tds.sqlite');
    expect((await restore()).code).toBe(0);
    copied.close();
    expect(await organizations(other)).toEqual([expect.objectContaining({ name: 'Latest' })]);
  });

  test.skipIf(withoutRootsRights === null)('names a file that this user cannot read', async () => {
    await backup();
    const refused = () => tds(['restore', file, '--data', other], { within: withoutRootsRights ?? [] });
    const sentence = () =>
      `${file} cannot be read (EACCES): give this user the right to read it, and to enter its folders.`;
    chmodSync(file, 0);
    expectRefused(await refused(), sentence());
    const folder = join(root.path, 'closed');
    mkdirSync(folder, { mode: 0 });
    file = join(folder, 'backup.sqlite.zst');
    expectRefused(await refused(), sentence());
    expect(existsSync(other)).toBe(false);
  });

  test.each([
    ['CREATE TRIGGER extra AFTER INSERT ON organizations BEGIN SELECT 1; END', 'trigger "extra"'],
    ['CREATE VIEW extra AS SELECT * FROM organizations', 'view "extra"'],
    ['CREATE TABLE extra (id INTEGER)', 'table "extra"'],
  ])('refuses a backup after %s, as does tds backup', async (statement, label) => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    client.run(statement);
    file = backUp(client, 0);
    client.close();
    expectRefused(
      await restore(),
      `The backup has the ${label}, which no version of this program made: restore another backup.`,
    );
    expect(readdirSync(other)).toEqual(['server.lock']);
    file = join(root.path, 'new.sqlite.zst');
    expectRefused(
      await backup(),
      `The database has the ${label}, which no version of this program made, so that no backup was made of it: drop it.`,
    );
  });

  test('refuses a view in the place of a table of an older version', async () => {
    const path = join(root.path, 'schema.sqlite');
    const { $client: client } = connectDatabase(path);
    bringUpToDate(client, knownMigrations().slice(0, 1));
    client.run('PRAGMA foreign_keys = OFF');
    client.run('ALTER TABLE models RENAME TO hidden');
    client.run('CREATE VIEW models AS SELECT * FROM hidden');
    file = backUp(client, 0);
    client.close();
    expectRefused(
      await restore(),
      'The backup has the table "hidden", which no version of this program made: restore another backup.',
    );
  });

  test('takes a backup with the tables of Litestream', async () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    client.run('CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)');
    client.run('CREATE TABLE _litestream_lock (id INTEGER)');
    client.close();
    expect((await backup()).code).toBe(0);
    expect((await restore()).code).toBe(0);
  });

  test('names the check that a backup fails', async () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    client.run('UPDATE organizations SET credit_micros = credit_micros + 1');
    file = backUp(client, 0);
    client.close();
    const { code, stderr } = await restore();
    expect(code).toBe(1);
    expect(stderr).toStartWith('tds: The books in the backup are not right (balance_equals_ledger: ');
  });

  test('takes the copy before an update, too, and a cut one not', async () => {
    const { $client: client } = openDatabase(join(data, 'tds.sqlite'));
    file = backUp(client, 0);
    client.close();
    expect(backupNames(data)).toHaveLength(1);
    expect((await restore()).code).toBe(0);
    expect(await organizations(other)).toEqual(await organizations(data));
    truncateSync(file, statSync(file).size - 4_096);
    other = join(root.path, 'another');
    expectRefused(await restore(), `${file} is damaged: restore another backup.`);
  });

  test('refuses a backup of a newer version', async () => {
    file = databaseWith(newerMigrations());
    expectRefused(
      await restore(),
      `${file} was made by a newer version of this program: restore it with the program that made it.`,
    );
    expect(readdirSync(other)).toEqual(['server.lock']);
  });

  // From the oldest: `db/upgrades.test.ts` updates each version's database.
  test('a backup of an older version is updated when it is next opened', async () => {
    file = databaseWith(knownMigrations().slice(0, 1));
    const restored = await restore();
    expect(restored).toMatchObject({ code: 0, stderr: '' });
    expect(restored.stdout).toContain('The next start updates it for this version.');
    expect((await command(['audit', '--data', other])).code).toBe(0);
  });
});

test('a server whose folder of backups is not there is not started', async () => {
  const missing = join(root.path, 'not-mounted');
  const refused = await tds([
    'serve',
    '--port',
    '0',
    '--gpu',
    'none',
    '--data',
    data,
    '--backup-every',
    '6h',
    '--backup-directory',
    missing,
  ]);
  expectRefused(
    refused,
    `There is no folder ${missing}: mount or make it, or name another with --backup-directory.`,
  );
});
