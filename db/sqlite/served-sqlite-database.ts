import { stat, statfs } from 'node:fs/promises';
import type { ServedDatabase, ServingParts } from '../../src/database.ts';
import { withCauses } from '../../src/error-causes.ts';
import type { DatabaseState } from '../../src/ops/metrics.ts';
import { FairReader } from '../../src/usage/fair-reader.ts';
import { startCheckpoints } from './checkpoint.ts';
import { type Db, neverWait } from './connection.ts';
import { GroupCommit, type GroupCommitOptions, isDiskFull, WriteQueueFull } from './group-commit.ts';
import { HistoryThread } from './history-thread.ts';
import { isLockedElsewhere } from './lock-wait.ts';
import { ReaderThread } from './reader-thread.ts';
import { signInDatabase } from './sign-in-database.ts';
import { SqliteBooks } from './sqlite-books.ts';
import { SqliteStore } from './sqlite-store.ts';
import { writeProbe } from './write-probe.ts';

/** A database file while a service answers requests: all of its writes share commits, and long work is in threads. */
export class ServedSqliteDatabase implements ServedDatabase {
  readonly store: SqliteStore;
  readonly books: SqliteBooks;
  readonly catalog: ServedDatabase['catalog'];
  readonly reader: FairReader;
  readonly history: HistoryThread;
  readonly signIn: ServedDatabase['signIn'];
  readonly write: () => Promise<void>;
  readonly windows = null;
  readonly #reader: ReaderThread;
  #stopCheckpoints = () => Promise.resolve();

  constructor(
    private readonly db: Db,
    private readonly parts: ServingParts,
    writes?: Omit<GroupCommitOptions, 'onCommit'>,
  ) {
    const { clock, process_id, log, report, onCommit } = parts;
    const commits = new GroupCommit(db, { ...writes, onCommit });
    this.store = new SqliteStore(db, writes, commits);
    this.catalog = this.store.catalog;
    this.books = new SqliteBooks(commits, clock, process_id, {
      onProblem: report,
      onSettled: (holds) => log.warn('the holds that waited to be released are released', { holds }),
    });
    this.#reader = new ReaderThread(db.$client.filename);
    this.reader = new FairReader(this.#reader, 1);
    this.history = new HistoryThread(db.$client.filename);
    this.signIn = signInDatabase(db, this.store.outside);
    this.write = writeProbe(commits);
  }

  /** What may still be written to the file system of the file, by users without privileges. */
  readonly freeBytes = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(this.db.$client.filename);
    return bavail * bsize;
  };

  /** The file and its write-ahead log. */
  readonly state = async (): Promise<DatabaseState> => {
    const { filename } = this.db.$client;
    const [file, log, free_bytes] = await Promise.all([
      stat(filename),
      // Gone while nothing is written to it.
      stat(`${filename}-wal`).catch(() => ({ size: 0 })),
      this.freeBytes(),
    ]);
    return { bytes: file.size + log.size, free_bytes, pool: null };
  };

  /** A file is where this process is, but another process may keep its write lock, and its disk may be full. */
  readonly isAway = (error: unknown) =>
    withCauses(error).some(
      (one) => isLockedElsewhere(one) || isDiskFull(one) || one instanceof WriteQueueFull,
    );

  /** The data directory's lock says that no other process serves. */
  readonly beginsHourlyRun = () => Promise.resolve(true);

  startUpkeep(): void {
    const { log, report } = this.parts;
    // What the start writes may wait for another process, because nobody is served yet.
    neverWait(this.db);
    this.#stopCheckpoints = startCheckpoints(this.db, {
      onLarge: (bytes) => log.warn('another process reads the database for long: its log grows', { bytes }),
      onFailure: (error) => {
        report('checkpoint', error);
        log.error("the database's log cannot be copied in a thread: requests wait for it");
      },
    });
  }

  async close(): Promise<void> {
    await this.#reader.close();
    await this.#stopCheckpoints();
  }
}
