import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { renameSync, statSync } from 'node:fs';
import { startCheckpoints } from '../../db/sqlite/checkpoint.ts';
import { neverWait } from '../../db/sqlite/connection.ts';
import { GroupCommit } from '../../db/sqlite/group-commit.ts';
import { causesOf } from '../../src/problems/causes.ts';
import { TemporaryDatabase } from '../ledger/support.ts';
import { eventually } from '../support/eventually.ts';
import { POLL_MS } from '../support/service.ts';

const BLOBS = 250;
const BLOB = new Uint8Array(100_000);

function failed(error: Error): void {
  throw error;
}

/** A database whose write-ahead log is larger than commits may copy, because a reader keeps an old state of it. */
class PinnedLog extends TemporaryDatabase {
  readonly commits = new GroupCommit(this.db);
  readonly sizes: number[] = [];
  readonly reader: Database;

  constructor() {
    super();
    neverWait(this.db);
    this.db.$client.run('CREATE TABLE blobs (content BLOB)');
    this.reader = new Database(this.path, { strict: true });
    this.reader.run('BEGIN');
    this.reader.query('SELECT count(*) FROM blobs').get();
  }

  start(onFailure = failed): () => Promise<void> {
    return startCheckpoints(this.db, {
      onLarge: (bytes) => this.sizes.push(bytes),
      onFailure,
      look_every_ms: POLL_MS,
    });
  }

  async fill(): Promise<void> {
    for (let blob = 0; blob < BLOBS; blob += 1) await this.write();
  }

  write(): Promise<void> {
    return this.commits.run(() => {
      this.db.$client.run('INSERT INTO blobs (content) VALUES (?)', [BLOB]);
    });
  }

  /** From how many pages of the log on a commit copies them; 0 when none does. */
  copiedByCommitsFrom(): number | undefined {
    return this.db.$client.query<{ wal_autocheckpoint: number }, []>('PRAGMA wal_autocheckpoint').get()
      ?.wal_autocheckpoint;
  }

  bytes(): number {
    return statSync(`${this.path}-wal`).size;
  }
}

test('no commit copies a log that a reader let grow: a thread does, and empties it', async () => {
  using pinned = new PinnedLog();
  const stop = pinned.start();
  await pinned.fill();
  await eventually(() => pinned.sizes.length !== 0);
  expect(pinned.copiedByCommitsFrom()).toBe(0);
  expect(pinned.bytes()).toBeGreaterThan(BLOBS * BLOB.length);
  pinned.reader.close();
  await eventually(() => pinned.copiedByCommitsFrom() !== 0);
  expect(pinned.bytes()).toBe(0);
  expect(pinned.sizes).toHaveLength(1);
  await pinned.write();
  expect(pinned.db.$client.query('SELECT count(*) AS n FROM blobs').get()).toEqual({ n: BLOBS + 1 });
  expect(pinned.db.$client.query('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  await stop();
}, 120_000);

test('a stop ends while the reader still reads, and commits copy again', async () => {
  using pinned = new PinnedLog();
  const stop = pinned.start();
  await pinned.fill();
  await eventually(() => pinned.sizes.length !== 0);
  await stop();
  expect(pinned.copiedByCommitsFrom()).toBe(1_000);
  pinned.reader.close();
}, 120_000);

test('a copy that no thread can make is told with the cause of that thread, commits copy again, and a later thread copies', async () => {
  using pinned = new PinnedLog();
  const told = Promise.withResolvers<Error>();
  const stop = pinned.start((error: Error) => told.resolve(error));
  renameSync(pinned.path, `${pinned.path}-away`);
  await pinned.fill();
  const causes = causesOf(await told.promise);
  expect(causes).toMatchObject([
    { error: 'ThreadFailed' },
    { error: 'SQLiteError', code: expect.stringMatching(/^SQLITE_CANTOPEN/) },
  ]);
  expect(pinned.copiedByCommitsFrom()).toBe(1_000);
  renameSync(`${pinned.path}-away`, pinned.path);
  pinned.reader.close();
  await eventually(() => pinned.bytes() === 0);
  await stop();
}, 120_000);
