import { Database } from 'bun:sqlite';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startCheckpoints } from '../db/sqlite/checkpoint.ts';
import { type Db, neverWait, openDatabase } from '../db/sqlite/connection.ts';
import { GroupCommit } from '../db/sqlite/group-commit.ts';
import { holdWriteLock } from '../test/support/write-lock.ts';
import { median, report, rounded } from './support/statistics.ts';

/**
 * Measures the longest block of the event loop: while another process has the write lock, and while a log is copied
 * that a reader let grow. The service's way and SQLite's own waiting and copying alternate.
 */

const BLOB = new Uint8Array(100_000);
const WRITE_EVERY_MS = 10;
/** The interval at which the service checks its log: shorter than usual, so that the bench need not wait. */
const LOOK_EVERY_MS = 50;

/** Writes continuously until `ended`. Resolves with the longest time without a turn of the event loop. */
async function longestBlock(write: () => Promise<unknown>, ended: Promise<unknown>): Promise<number> {
  let is_over = false;
  void ended.then(() => {
    is_over = true;
  });
  let longest_ms = 0;
  let last_ms = performance.now();
  const turn = setInterval(() => {
    const now_ms = performance.now();
    longest_ms = Math.max(longest_ms, now_ms - last_ms);
    last_ms = now_ms;
  }, 1);
  const writes: Promise<unknown>[] = [];
  while (!is_over) {
    writes.push(write().catch(() => undefined));
    await Bun.sleep(WRITE_EVERY_MS);
  }
  clearInterval(turn);
  await Promise.all(writes);
  return longest_ms;
}

async function withDatabase<T>(use: (db: Db, directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'tds-bench-'));
  const db = openDatabase(join(directory, 'tds.sqlite'));
  db.$client.run('CREATE TABLE blobs (content BLOB)');
  try {
    return await use(db, directory);
  } finally {
    db.$client.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** `waits_in_sqlite` sets SQLite's busy timeout of 5 seconds, as in commands. */
function lockedElsewhere(lock_ms: number, waits_in_sqlite: boolean): Promise<number> {
  return withDatabase(async (db, directory) => {
    if (!waits_in_sqlite) neverWait(db);
    const commits = new GroupCommit(db);
    const lock = await holdWriteLock(directory);
    const released = Bun.sleep(lock_ms).then(() => lock.release());
    return await longestBlock(
      () => commits.run(() => void db.$client.run('INSERT INTO blobs (content) VALUES (1)')),
      released,
    );
  });
}

function logOfAReader(blobs: number, commits_copy: boolean): Promise<number> {
  return withDatabase(async (db) => {
    neverWait(db);
    const ignore = () => undefined;
    const stop = commits_copy
      ? ignore
      : startCheckpoints(db, { onLarge: ignore, onFailure: ignore, look_every_ms: LOOK_EVERY_MS });
    const commits = new GroupCommit(db);
    const reader = new Database(db.$client.filename, { strict: true });
    reader.run('BEGIN');
    reader.query('SELECT count(*) FROM blobs').get();
    for (let blob = 0; blob < blobs; blob += 1)
      await commits.run(() => void db.$client.run('INSERT INTO blobs (content) VALUES (?)', [BLOB]));
    await Bun.sleep(2 * LOOK_EVERY_MS);
    reader.run('COMMIT');
    reader.close();
    const longest_ms = await longestBlock(
      () => commits.run(() => void db.$client.run('INSERT INTO blobs (content) VALUES (1)')),
      Bun.sleep(3_000),
    );
    await stop();
    return longest_ms;
  });
}

/** Measures both ways, alternating. */
async function compare(
  bench: string,
  rounds: number,
  facts: Readonly<Record<string, number>>,
  longest: (by_sqlite: boolean) => Promise<number>,
): Promise<void> {
  const ours: number[] = [];
  const by_sqlite: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await longest(false));
    by_sqlite.push(await longest(true));
  }
  report({
    bench,
    rounds,
    ...facts,
    longest_block_ms: rounded(median(ours)),
    longest_block_by_sqlite_ms: rounded(median(by_sqlite)),
    ratio: rounded(median(ours) / median(by_sqlite)),
  });
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    lock_ms: { type: 'string', default: '6000' },
    log_megabytes: { type: 'string', default: '200' },
  },
});
const rounds = Number(values.rounds);
const lock_ms = Number(values.lock_ms);
const log_megabytes = Number(values.log_megabytes);
await compare('write-lock', rounds, { lock_ms }, (by_sqlite) => lockedElsewhere(lock_ms, by_sqlite));
await compare('log-of-a-reader', rounds, { log_megabytes }, (by_sqlite) =>
  logOfAReader((log_megabytes * 1e6) / BLOB.length, by_sqlite),
);
