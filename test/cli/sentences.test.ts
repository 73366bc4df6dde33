import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { newestMigration_ms } from '../../db/schema-state.ts';
import { runAudit } from '../../db/sqlite/audit.ts';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { knownMigrations } from '../../db/sqlite/migrate.ts';
import { noteVersion } from '../../db/sqlite/program-versions.ts';
import { organizations } from '../../db/sqlite/schema.ts';
import { EMBEDDED_WEIGHTS } from '../../native/engine.ts';
import { clockWarning } from '../../src/cli/clock-check.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { startChildServer } from '../support/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { finished } from '../support/finished.ts';
import { MAIN } from '../support/program.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { expectRefused, firstAsProcess, initializeData, tds } from './support.ts';

/** Every common fault of operation gets one sentence with advice. */

setDefaultTimeout(120_000);

const ON_TINY = ['--gpu', 'none', '--model', TINY_WEIGHTS];
const SERVE = ['serve', '--port', '0', ...ON_TINY, '--threads', '1', '--log-level', 'silent'];
const PAGE_BYTES = 4_096;

const { command } = firstAsProcess();
let root: ReturnType<typeof temporaryDirectory>;
let data: string;
let database: string;
beforeEach(async () => {
  root = temporaryDirectory();
  data = join(root.path, 'data');
  database = join(data, 'tds.sqlite');
  await initializeData(data);
});
afterEach(() => root.remove());

const serve = (...flags: string[]) => tds([...SERVE, '--data', data, ...flags]);

/** The findings of tds doctor, by their subjects. */
async function findings(...flags: string[]): Promise<ReadonlyMap<string, unknown>> {
  const { stdout } = await command(['doctor', '--json', ...ON_TINY, '--data', data, ...flags]);
  const all: readonly { readonly subject: string }[] = JSON.parse(stdout);
  return new Map(all.map((one) => [one.subject, one]));
}

describe('a damaged database', () => {
  function damage(offset: number, bytes: Uint8Array): void {
    const file = readFileSync(database);
    file.set(bytes, offset);
    writeFileSync(database, file);
  }

  test('in its header', async () => {
    damage(0, randomBytes(32));
    expectRefused(
      await serve(),
      `${database} is not a database: move it away or name another directory with --data.`,
    );
  });

  test('in its pages is not served, not backed up, and found by tds doctor', async () => {
    damage(2 * PAGE_BYTES, randomBytes(8 * PAGE_BYTES));
    expectRefused(
      await serve(),
      `${database} is damaged: move it away and restore a backup with "tds restore FILE --replace".`,
    );
    expectRefused(
      await tds(['backup', join(root.path, 'a.zst'), '--data', data]),
      'The database is damaged, so that no backup was made of it: restore an earlier one with "tds restore FILE --replace".',
    );
    expect(existsSync(join(root.path, 'a.zst'))).toBe(false);
    expect((await findings()).get('data')).toMatchObject({ state: 'broken' });
  });

  test('that was cut short', async () => {
    truncateSync(database, 2 * PAGE_BYTES);
    expectRefused(
      await serve(),
      `${database} is damaged: restore it from a backup ("tds restore FILE --replace").`,
    );
  });

  test('in its log goes on from the last commit before the damage, with right books', () => {
    const db = openDatabase(database);
    const client = db.$client;
    const wal = `${database}-wal`;
    for (const name of ['First', 'Second']) client.run('UPDATE organizations SET name = ?', [name]);
    const after_second = readFileSync(wal).length;
    client.run('UPDATE organizations SET name = ?', ['Third']);
    const log = readFileSync(wal);
    log.set(randomBytes(64), after_second + 40);
    const copy = join(root.path, 'copy');
    cpSync(data, copy, { recursive: true });
    client.close();
    writeFileSync(join(copy, 'tds.sqlite-wal'), log);
    const damaged = openDatabase(join(copy, 'tds.sqlite'));
    expect(damaged.select().from(organizations).all()).toMatchObject([{ name: 'Second' }]);
    expect(runAudit(damaged).ok).toBe(true);
    damaged.$client.close();
  });
});

describe('weights', () => {
  test('that are missing', async () => {
    const missing = join(root.path, 'missing.gguf');
    expectRefused(
      await serve('--model', missing),
      `The weights file ${missing} is missing: check the path, or copy or download it again.`,
    );
  });

  test('whose second part is missing, or cut', async () => {
    const first = join(root.path, 'decision-1-00001-of-00002.gguf');
    const second = join(root.path, 'decision-1-00002-of-00002.gguf');
    cpSync(EMBEDDED_WEIGHTS, first);
    expectRefused(
      await serve('--model', first),
      `The weights file ${second} is missing: check the path, or copy or download it again.`,
    );
    cpSync(EMBEDDED_WEIGHTS.replace('00001-of', '00002-of'), second);
    truncateSync(second, 5_000_000);
    const { code, stdout, stderr } = await serve('--model', first);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toStartWith(`tds: ${second} is not a usable GGUF model (it has no room for the tensor `);
    expect(stderr).toEndWith('): download it again.\n');
  });
});

test('a port that is taken', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const address = other.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  expectRefused(
    await serve('--port', String(port)),
    `Port ${port} is taken: stop the program that listens on it, or choose another with --port.`,
  );
  await new Promise((resolve) => other.close(resolve));
});

test.each([
  // TEST-NET-1 is nobody's.
  ['an address of another machine', '--host', '192.0.2.1', '--port'],
  ['an address of another machine', '--metrics-host', '192.0.2.1', '--metrics-port'],
  ['a name without an address', '--host', 'tds.invalid', '--port'],
])('%s as %s %s', async (_, host, value, port) => {
  const { code, stdout, stderr } = await serve(host, value, port, '9999');
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr.replace(/\(\w+\)/, '(CODE)')).toBe(
    `tds: Port 9999 of ${value} cannot be listened on (CODE): choose another address with ${host}, or another port with ${port}.\n`,
  );
});

test('too few file descriptors', async () => {
  const line = 'ulimit -n 64; exec "$0" "$@"';
  const limited = (...args: string[]) =>
    finished(
      Bun.spawn(['sh', '-c', line, process.execPath, MAIN, ...args], { stdout: 'pipe', stderr: 'pipe' }),
    );
  const sentence =
    'This process may open 64 files, and needs 128: raise the limit ("ulimit -n", or LimitNOFILE of systemd).';
  expectRefused(await limited(...SERVE, '--data', data), sentence);
  const doctor = await limited('doctor', '--json', ...ON_TINY, '--data', data);
  expect(JSON.parse(doctor.stdout)).toContainEqual({
    subject: 'file descriptors',
    state: 'broken',
    detail: sentence,
  });
});

describe('a clock that is far off', () => {
  test('behind what was written, or behind the program, is warned of; a day less is not', () => {
    const made_ms = newestMigration_ms(knownMigrations());
    const past = { written_ms: made_ms + 10 * DAY_MS, made_ms };
    expect(clockWarning(past.written_ms - DAY_MS, past)).toBeNull();
    expect(clockWarning(past.written_ms - DAY_MS - 1, past)).toContain('but the database was written at');
    expect(clockWarning(made_ms - DAY_MS, { written_ms: null, made_ms })).toBeNull();
    expect(clockWarning(made_ms - DAY_MS - 1, { written_ms: null, made_ms })).toContain(
      'but this program is of',
    );
  });

  test('is told at the start, which goes on, and by tds doctor', async () => {
    const written_ms = Date.UTC(2200, 0);
    const db = openDatabase(database);
    noteVersion(db.$client, '9.9.9', written_ms);
    db.$client.close();
    const sentence =
      /The clock says \S+, but the database was written at 2200-01-01T00:00:00Z: set the clock, or requests are booked into the wrong day and month\./;
    const server = await startChildServer(data, root.path);
    expect(await server.stop()).toBe(0);
    expect(server.output()).toMatch(sentence);
    expect((await findings()).get('clock')).toEqual({
      subject: 'clock',
      state: 'warning',
      detail: expect.stringMatching(sentence),
    });
  });
});

test('tds doctor tells of the version, the backups and the disk', async () => {
  const found = await findings();
  expect(found.get('version')).toMatchObject({
    state: 'ok',
    detail: expect.stringMatching(/the database is last written by version \d+\.\d+\.\d+, at 20/),
  });
  expect(found.get('disk')).toMatchObject({ detail: expect.stringMatching(/^\d+ MB free for /) });
  expect(found.get('backups')).toMatchObject({
    state: 'warning',
    detail: expect.stringContaining('none in'),
  });
  const folder = join(root.path, 'not-a-folder');
  writeFileSync(folder, '');
  expect((await findings('--backup-directory', folder)).get('backups')).toEqual({
    subject: 'backups',
    state: 'warning',
    detail: `${folder} cannot be read (ENOTDIR): give this user the right to it, or name another with --backup-directory`,
  });
  const server = await startChildServer(data, root.path, ['--backup-every', '6h']);
  await eventually(() => /"msg":"backed up"/.test(server.output()));
  await server.stop();
  expect((await findings()).get('backups')).toMatchObject({
    state: 'ok',
    detail: expect.stringContaining(', 0 hours old'),
  });
});
