import { sql } from 'drizzle-orm';
import { runHistory } from '../../src/maintenance/run-history.ts';
import type { HistoryReport, HistoryRuns, HistoryTask } from '../../src/store/history-runs.ts';
import { type Clock, MINUTE_MS } from '../../src/time/clock.ts';
import { auditedWholeAt_ms, continueAudit } from './audit.ts';
import type { PgDb } from './connection.ts';
import { HISTORY_LOCK } from './locks.ts';
import { PostgresStore } from './postgres-store.ts';
import { beginRun } from './scheduled-runs.ts';

/**
 * The longest roll-up of one run. The next run, within the hour, continues. So every run reports its audit, and ends
 * long before its transaction's limit.
 */
const ROLL_UP_UNTIL_MS = 50 * MINUTE_MS;

/**
 * Audits and rolls up the history of a PostgreSQL database, once an hour and on one node at a time. The first node to
 * ask does the run. Tasks of the others resolve at once meanwhile. A stop takes effect between two batches.
 */
export class PostgresHistoryRuns implements HistoryRuns {
  #is_running = false;
  #is_stopped = false;

  /**
   * `db` is its own pool, because a long audit would block other statements on its connections. It needs two
   * connections or more, because one keeps the lock. Each run first waits for `beforeWrite`, and rejects as it does.
   */
  constructor(
    private readonly db: PgDb,
    private readonly clock: Pick<Clock, 'monotonic_ms'>,
    private readonly beforeWrite: () => Promise<void> = () => Promise.resolve(),
  ) {}

  /**
   * Also resolves with null if a node has a run now. The same holds if one was begun within the hour, unless the task
   * is `whole`.
   */
  async run(task: HistoryTask): Promise<HistoryReport | null> {
    if (this.#is_running || this.#is_stopped) return null;
    this.#is_running = true;
    try {
      await this.beforeWrite();
      return await this.#runAlone(task);
    } finally {
      this.#is_running = false;
    }
  }

  stop(): void {
    this.#is_stopped = true;
  }

  /** Runs under a lock of a transaction, because the pool replaces connections outside of one from time to time. */
  #runAlone(task: HistoryTask): Promise<HistoryReport | null> {
    return this.db.transaction(async (lock) => {
      await lock.execute(sql`SET LOCAL idle_in_transaction_session_timeout = 0`);
      const [locked] = await lock.execute<{ is_locked: boolean }>(
        sql`SELECT pg_try_advisory_xact_lock(${HISTORY_LOCK}::bigint) AS is_locked`,
      );
      if (locked?.is_locked !== true || !(await beginRun(this.db, 'history', task.whole))) return null;
      return await this.#runNow(task);
    });
  }

  #runNow(task: HistoryTask): Promise<HistoryReport> {
    const { db, clock } = this;
    const until_ms = clock.monotonic_ms() + ROLL_UP_UNTIL_MS;
    return runHistory(
      {
        store: new PostgresStore(db),
        auditedWholeAt_ms: () => auditedWholeAt_ms(db),
        continueAudit: (given) => continueAudit(db, given),
      },
      task,
      () => this.#is_stopped || clock.monotonic_ms() >= until_ms,
    );
  }
}
