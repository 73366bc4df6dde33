import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { backupName, backupTime_ms } from '../../db/sqlite/backup.ts';
import { openDatabase } from '../../db/sqlite/connection.ts';
import { restoreBackup } from '../../db/sqlite/restore.ts';
import { SqliteBackups } from '../../db/sqlite/sqlite-backups.ts';
import { createLog } from '../../src/log/log.ts';
import { BackupCommand } from '../../src/maintenance/backup-command.ts';
import { BackupSchedule } from '../../src/maintenance/backup-schedule.ts';
import { causesOf } from '../../src/problems/causes.ts';
import type { Problem } from '../../src/problems/problems.ts';
import type { Backups } from '../../src/store/backups.ts';
import { MovableClock } from '../support/clock.ts';
import { Gate } from '../support/faults.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { until } from '../upstreams/support.ts';

const HOUR_MS = 3_600_000;
const EVERY_MS = 6 * HOUR_MS;
const KEPT = 3;

let root: ReturnType<typeof temporaryDirectory>;
let database: string;
let directory: string;
let clock: MovableClock;
let problems: Problem[];
beforeEach(() => {
  root = temporaryDirectory();
  database = join(root.path, 'tds.sqlite');
  directory = join(root.path, 'backups');
  mkdirSync(directory);
  openDatabase(database).$client.close();
  clock = MovableClock.stopped();
  problems = [];
});
afterEach(() => root.remove());

/** A schedule as a process has it that has just started. */
function schedule(
  command: Pick<BackupCommand, 'run' | 'stop'> | null = null,
  backups: Backups = new SqliteBackups(database, directory, KEPT),
  every_ms = EVERY_MS,
): BackupSchedule {
  return new BackupSchedule({
    backups,
    command,
    every_ms,
    clock,
    log: createLog('silent'),
    problems: { report: (problem) => void problems.push(problem), counts: () => ({}) as never },
  });
}

/** Backups that are not made before the gate is passed, and that no stop ends. */
function passing(gate: Gate): Backups {
  const backups = new SqliteBackups(database, directory, KEPT);
  return {
    directory,
    newest: (now_ms) => backups.newest(now_ms),
    make: async (now_ms) => {
      await gate.pass();
      await backups.make(now_ms);
    },
    uncopied: (now_ms) => backups.uncopied(now_ms),
    noteCopied: (path) => backups.noteCopied(path),
    stop: () => undefined,
  };
}

/** The files of the backups, oldest first, without the note of the last one that was copied off. */
function backupFiles(): readonly string[] {
  return readdirSync(directory)
    .filter((name) => name !== 'copied-off')
    .sort();
}

/** How many hours after the test's beginning each backup was made. */
function hours(): readonly number[] {
  const began_ms = MovableClock.stopped().now_ms();
  return backupFiles().map((name) => ((backupTime_ms(name) ?? Number.NaN) - began_ms) / HOUR_MS);
}

test('a backup is due when the newest is older than it may be, whatever process made that one', async () => {
  for (let hour = 0; hour <= 24; hour += 1) {
    // Every hour a restart.
    await schedule().look();
    clock.advance(HOUR_MS);
  }
  expect(hours()).toEqual([12, 18, 24]);
  expect(problems).toEqual([]);
});

test.each([
  [EVERY_MS, 10],
  [30_000, 0.5],
])(
  'one for every %d ms that fails is tried at the start, and again after %d minutes, until the stop',
  async (every_ms, minutes) => {
    let tries = 0;
    const failing: Backups = {
      ...passing(new Gate()),
      newest: () => {
        tries += 1;
        throw new Error('the disk is gone');
      },
    };
    const one = schedule(null, failing, every_ms);
    /** A failed look ends within a few microtasks. */
    const settled = async () => {
      for (let count = 0; count < 20; count += 1) await Promise.resolve();
    };
    const pass = async (duration_ms: number) => {
      for (let passed_ms = 0; passed_ms < duration_ms; passed_ms += 30_000) {
        clock.advance(30_000);
        jest.advanceTimersByTime(30_000);
        await settled();
      }
      return tries;
    };
    jest.useFakeTimers();
    try {
      one.start();
      await settled();
      expect(await pass(minutes * 60_000 - 30_000)).toBe(1);
      expect(await pass(30_000)).toBe(2);
      one.stop();
      expect(await pass(minutes * 60_000)).toBe(2);
    } finally {
      jest.useRealTimers();
    }
  },
);

test('a backup that fails is a problem, takes no old one away, and is tried again', async () => {
  const one = schedule();
  for (let count = 0; count < KEPT; count += 1) {
    await one.look();
    clock.advance(EVERY_MS);
  }
  const before = hours();
  writeFileSync(database, 'no database any more, but text of more than a hundred characters'.repeat(3));
  await one.look();
  expect(problems).toMatchObject([{ request_id: null, step: 'backup', code: null }]);
  // The disk may be full or gone: which one is in the line.
  expect(causesOf(problems[0]?.error)[0]).toMatchObject({ message: `No backup was made in ${directory}.` });
  expect(one.state()).toMatchObject({ has_failed: true, newest: { at_ms: clock.now_ms() - EVERY_MS } });
  expect(hours()).toEqual(before);
  // Not at the next look, but soon.
  await one.look();
  expect(problems).toHaveLength(1);
  truncateSync(database);
  openDatabase(database).$client.close();
  clock.advance(HOUR_MS);
  await one.look();
  expect(problems).toHaveLength(1);
  expect(hours()).toEqual([6, 12, 19]);
  const [newest = ''] = readdirSync(directory).sort().toReversed();
  expect(one.state()).toEqual({
    every_ms: EVERY_MS,
    newest: { at_ms: clock.now_ms(), bytes: statSync(join(directory, newest)).size },
    has_failed: false,
  });
});

test('no backup is made of a file that took the place of the database, and none is pushed out', async () => {
  const one = schedule();
  await one.look();
  const before = hours();
  openDatabase(`${database}-other`).$client.close();
  renameSync(`${database}-other`, database);
  clock.advance(EVERY_MS);
  await one.look();
  expect(hours()).toEqual(before);
  expect(causesOf(problems[0]?.error)).toMatchObject([
    { error: 'BackupFailed' },
    { error: 'DatabaseFileGone' },
  ]);
});

test.each([
  [6, 1, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]],
  [48, 24, [0, 0, 1, 2, 3]],
])(
  'one for every %d hours that does not end is told when the next is due, and then so often, or daily',
  async (every_h, look_h, expected) => {
    const gate = new Gate();
    const one = schedule(null, passing(gate), every_h * HOUR_MS);
    const under_way = one.look();
    await gate.reached;
    const told: number[] = [];
    for (const _ of expected) {
      await one.look();
      told.push(problems.length);
      clock.advance(look_h * HOUR_MS);
    }
    expect(told).toEqual(expected);
    expect(causesOf(problems[0]?.error)[0]).toMatchObject({
      message: `A backup in ${directory} does not end, and the next one is due.`,
    });
    gate.open();
    await under_way;
    clock.advance(every_h * HOUR_MS);
    await one.look();
    expect(problems).toHaveLength(expected.at(-1) ?? 0);
  },
);

test('a folder of backups that is gone is a state without a backup, and no failure of who asks', () => {
  rmSync(directory, { recursive: true });
  expect(schedule().state()).toEqual({ every_ms: EVERY_MS, newest: null, has_failed: false });
});

test('a clock that went back is no reason to wait, and what a killed process left is removed', async () => {
  await schedule().look();
  clock.stepWallClock(-48 * HOUR_MS);
  const [name = ''] = readdirSync(directory);
  writeFileSync(join(directory, `${name}.partial`), '');
  mkdirSync(join(directory, `${name}.copy.partial`));
  writeFileSync(join(directory, `${name}.copy.partial`, 'copy.sqlite'), '');
  writeFileSync(join(directory, 'mine.zst'), '');
  await schedule().look();
  expect(readdirSync(directory)).toContain('mine.zst');
  rmSync(join(directory, 'mine.zst'));
  expect(hours()).toEqual([-48, 0]);
  for (const made of readdirSync(directory)) expect(statSync(join(directory, made)).mode & 0o777).toBe(0o600);
});

test('books that are not right are kept under a name that says so, as no backup, until they are right again', async () => {
  const one = schedule();
  await one.look();
  const before = hours();
  const { $client: client } = openDatabase(database);
  client.run(
    "INSERT INTO organizations (id, name, credit_micros, created_at_ms) VALUES ('org_1', 'Acme', 1, 0)",
  );
  for (let count = 0; count <= KEPT; count += 1) {
    clock.advance(EVERY_MS);
    await one.look();
  }
  expect(problems).toHaveLength(KEPT + 1);
  expect(one.state()).toMatchObject({ has_failed: true, newest: { at_ms: MovableClock.stopped().now_ms() } });
  const unsound = join(directory, 'unsound.sqlite.zst');
  const unpacked = join(root.path, 'unpacked.sqlite');
  writeFileSync(unpacked, Bun.zstdDecompressSync(readFileSync(unsound)));
  const { $client: kept } = openDatabase(unpacked);
  expect(kept.query('SELECT name FROM organizations').all()).toEqual([{ name: 'Acme' }]);
  kept.close();
  await expect(restoreBackup(unsound, join(root.path, 'restored.sqlite'), 0)).rejects.toThrow(
    'are not right',
  );
  rmSync(unsound);
  expect(hours()).toEqual(before);
  client.run('DELETE FROM organizations');
  client.close();
  clock.advance(EVERY_MS);
  await one.look();
  expect(one.state().has_failed).toBe(false);
  expect(hours()).toEqual([0, (KEPT + 2) * 6]);
});

test('what a killed process left is removed before the next backup, because both may not have room', async () => {
  const name = backupName(clock.now_ms(), 1, 'compressed');
  mkdirSync(join(directory, `${name}.copy.partial`));
  writeFileSync(join(directory, `${name}.copy.partial`, 'copy.sqlite'), '');
  writeFileSync(join(directory, `${name}.partial`), '');
  // That of somebody's "tds backup", which is in progress.
  writeFileSync(join(directory, 'mine.sqlite.zst.partial'), '');
  rmSync(database);
  await schedule().look();
  expect(problems).toHaveLength(1);
  expect(readdirSync(directory)).toEqual(['mine.sqlite.zst.partial']);
});

test('backups named ahead of the clock push no new one out, and stay', async () => {
  for (let count = 0; count < KEPT; count += 1) {
    await schedule().look();
    clock.advance(EVERY_MS);
  }
  clock.stepWallClock(-96 * HOUR_MS);
  for (let count = 0; count <= KEPT; count += 1) {
    await schedule().look();
    clock.advance(EVERY_MS);
  }
  expect(hours()).toEqual([-72, -66, -60, 0, 6, 12]);
  expect(problems).toEqual([]);
});

test('a stop gives up the backup that is being written, and leaves nothing of it', async () => {
  const one = schedule();
  const looked = one.look();
  one.stop();
  await looked;
  await one.look();
  expect(readdirSync(directory)).toEqual([]);
  expect(problems).toEqual([]);
});

test('after a stop no other backup begins, and no command with the one that was still made', async () => {
  const gate = new Gate();
  const copied: string[] = [];
  const command = {
    run: (path: string) => {
      copied.push(path);
      return Promise.resolve();
    },
    stop: () => undefined,
  };
  const one = schedule(command, passing(gate));
  const looked = one.look();
  await gate.reached;
  one.stop();
  gate.open();
  await looked;
  clock.advance(EVERY_MS);
  await one.look();
  expect(hours()).toEqual([0]);
  expect(copied).toEqual([]);
});

/** The sentence of a problem's line in the log. */
const logged = (problem: Problem | undefined) => causesOf(problem?.error)[0]?.message;

/** A program of the operator that does what the script says with the backup's path, `$1`. */
function program(script: string): string {
  const path = join(root.path, 'copy-backup');
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o700 });
  return path;
}

test('the command gets the path of each backup once it is checked, and none of the service\u2019s own variables', async () => {
  const seen = join(root.path, 'seen');
  const path = program(`test -s "$1" && echo "$1 [$TDS_PADDLE_API_KEY$PGPASSWORD]" >> '${seen}'`);
  const { PGPASSWORD: password } = process.env;
  try {
    process.env.TDS_PADDLE_API_KEY = 'secret';
    process.env.PGPASSWORD = 'secret';
    const one = schedule(new BackupCommand(path));
    for (let count = 0; count < 3; count += 1) {
      await one.look();
      clock.advance(EVERY_MS / 2);
    }
  } finally {
    delete process.env.TDS_PADDLE_API_KEY;
    if (password === undefined) delete process.env.PGPASSWORD;
    else process.env.PGPASSWORD = password;
  }
  const lines = backupFiles().map((name) => `${join(directory, name)} []`);
  expect(lines).toHaveLength(2);
  expect(readFileSync(seen, 'utf8').trim().split('\n')).toEqual(lines);
  expect(problems).toEqual([]);
});

test('a command that fails is a problem, and gets the same backup again', async () => {
  const seen = join(root.path, 'seen');
  const one = schedule(
    new BackupCommand(program(`echo "$1" >> '${seen}'; test "$(wc -l < '${seen}')" -gt 1`)),
  );
  await one.look();
  expect(problems).toMatchObject([{ step: 'backup', error: { name: 'BackupCommandFailed' } }]);
  expect(logged(problems[0])).toBe(`The backup is made, but ${root.path}/copy-backup ended with code 1.`);
  await one.look();
  clock.advance(HOUR_MS);
  await one.look();
  await one.look();
  expect(hours()).toEqual([0]);
  const [first, second, ...more] = readFileSync(seen, 'utf8').trim().split('\n');
  expect([second, more]).toEqual([first, []]);
  expect(problems).toHaveLength(1);
});

test('a backup whose copy a stop or a failure ended is given to the command after the restart, and then no more', async () => {
  const seen = join(root.path, 'seen');
  const isRunning = join(root.path, 'is-running');
  // The shell makes a file before it writes into it, so that another file tells that the line stands.
  const hanging = schedule(
    new BackupCommand(program(`echo "$1" >> '${seen}'; touch '${isRunning}'; sleep 600`)),
  );
  const looked = hanging.look();
  await until(() => existsSync(isRunning));
  hanging.stop();
  await looked;
  const failing = schedule(new BackupCommand(program(`echo "$1" >> '${seen}'; exit 1`)));
  await failing.look();
  expect(failing.state().has_failed).toBe(true);
  for (let restart = 0; restart < 2; restart += 1) {
    const one = schedule(new BackupCommand(program(`echo "$1" >> '${seen}'`)));
    await one.look();
    expect(one.state().has_failed).toBe(false);
  }
  const [made = ''] = backupFiles();
  const path = join(directory, made);
  expect(hours()).toEqual([0]);
  expect(readFileSync(seen, 'utf8').trim().split('\n')).toEqual([path, path, path]);
  expect(problems).toHaveLength(1);
});

test('a command that hangs holds off no backup, and then gets the newest one', async () => {
  const seen = join(root.path, 'seen');
  const go = join(root.path, 'go');
  const one = schedule(
    new BackupCommand(program(`echo "$1" >> '${seen}'; while ! test -e '${go}'; do sleep 0.1; done`)),
  );
  const first = one.look();
  try {
    await until(() => existsSync(seen));
    for (let count = 0; count < 2; count += 1) {
      clock.advance(EVERY_MS);
      await one.look();
    }
    expect(hours()).toEqual([0, 6, 12]);
    writeFileSync(go, '');
    await first;
    await one.look();
    const [oldest = '', , newest = ''] = backupFiles();
    expect(readFileSync(seen, 'utf8').trim().split('\n')).toEqual([
      join(directory, oldest),
      join(directory, newest),
    ]);
    expect(problems).toEqual([]);
  } finally {
    one.stop();
  }
});

test('a command that hangs is ended with what it has started, and one that is missing is named', async () => {
  const child = join(root.path, 'child');
  const path = program(`sleep 600 & echo $! > '${child}'; wait`);
  const one = schedule(new BackupCommand(path, 2_000));
  await one.look();
  expect(logged(problems[0])).toEndWith('copy-backup was ended, because it took more than 2 seconds.');
  const pid = readFileSync(child, 'utf8').trim();
  // The signal may still be on its way, and a process that has ended may not be waited for yet.
  const isRunning = () =>
    existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(' Z ');
  await until(() => !isRunning());
  rmSync(path);
  clock.advance(HOUR_MS);
  await one.look();
  expect(logged(problems[1])).toEndWith('copy-backup cannot be started (ENOENT).');
});
