import { stat, statfs } from 'node:fs/promises';
import { withCauses } from '../../src/errors/error-causes.ts';
import type { DatabaseState, ServedDatabase, ServingParts } from '../../src/store/database.ts';
import { FairReader } from '../../src/usage/fair-reader.ts';
import { auditedAt_ms } from './audit.ts';
import { startCheckpoints } from './checkpoint.ts';
import { type Db, neverWait } from './connection.ts';
import { watchFile } from './file-watch.ts';
import { GroupCommit, type GroupCommitOptions, isDiskFull, WriteQueueFull } from './group-commit.ts';
import { HistoryThread } from './history-thread.ts';
import { isLockedElsewhere } from './lock-wait.ts';
import { ReaderThread } from './reader-thread.ts';
import { signInDatabase } from './sign-in-database.ts';
import { SqliteBooks } from './sqlite-books.ts';
import { SqliteStore } from './sqlite-store.ts';
import { writeProbe } from './write-probe.ts';

/** A database file while a service answers requests. Writes share commits, and threads do the long work. */
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
  readonly #endWatch: () => void;
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
    this.reader = new FairReader(this.#reader, this.#reader, 1);
    this.history = new HistoryThread(db.$client.filename);
    this.signIn = signInDatabase(db, this.store.outside);
    this.write = writeProbe(commits);
    this.#endWatch = watchFile(db, (error) => report('readiness', error));
  }

  /** Resolves with the free bytes of the file's file system for unprivileged users. */
  readonly freeBytes = async (): Promise<number> => {
    const { bavail, bsize } = await statfs(this.db.$client.filename);
    return bavail * bsize;
  };

  /** Resolves with the sizes of the file and its write-ahead log, and the free bytes. */
  readonly state = async (): Promise<DatabaseState> => {
    const { filename } = this.db.$client;
    const [file, log, free_bytes] = await Promise.all([
      stat(filename),
      // The log does not exist while nothing is written.
      stat(`${filename}-wal`).catch(() => ({ size: 0 })),
      this.freeBytes(),
    ]);
    return { bytes: file.size + log.size, free_bytes, pool: null };
  };

  /** Returns true if another process keeps the write lock, or the disk is full. */
  readonly isAway = (error: unknown) =>
    withCauses(error).some(
      (one) => isLockedElsewhere(one) || isDiskFull(one) || one instanceof WriteQueueFull,
    );

  /** The clock of the only service. */
  readonly now_ms = () => Promise.resolve(this.parts.clock.now_ms());

  /** Always true, because the data directory's lock proves that no other process serves. */
  readonly beginsHourlyRun = () => Promise.resolve(true);

  readonly auditedAt_ms = () => Promise.resolve(auditedAt_ms(this.db));

  startUpkeep(): void {
    const { log, report } = this.parts;
    // The start's writes may wait for another process, because nobody is served yet.
    neverWait(this.db);
    this.#stopCheckpoints = startCheckpoints(this.db, {
      onLarge: (bytes) => log.warn('another process reads the database for long: its log grows', { bytes }),
      onFailure: (error) => {
        report('checkpoint', error);
        log.error("the database's log cannot be copied in a thread: requests wait for it, until a later try");
      },
    });
  }

  async close(): Promise<void> {
    this.#endWatch();
    await this.#reader.close();
    await this.#stopCheckpoints();
  }
}
