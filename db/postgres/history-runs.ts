import { sql } from 'drizzle-orm';
import { rollUpAuditLog } from '../../src/audit-log/roll-up.ts';
import {
  type HistoryReport,
  type HistoryRuns,
  type HistoryTask,
  WHOLE_AUDIT_EVERY_MS,
} from '../../src/store/history-runs.ts';
import { type Clock, MINUTE_MS } from '../../src/time/clock.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
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

  async #runNow(task: HistoryTask): Promise<HistoryReport> {
    const { now_ms, prune_before_ms, acts_before_ms, whole = false } = task;
    const { db, clock } = this;
    const store = new PostgresStore(db);
    const until_ms = clock.monotonic_ms() + ROLL_UP_UNTIL_MS;
    const isStopped = () => this.#is_stopped || clock.monotonic_ms() >= until_ms;
    const read_whole_ms = (await auditedWholeAt_ms(db)) ?? Number.NEGATIVE_INFINITY;
    const audit = await continueAudit(db, {
      now_ms,
      whole: whole || now_ms - read_whole_ms >= WHOLE_AUDIT_EVERY_MS,
    });
    const is_pruning = audit.ok && prune_before_ms !== null;
    const { requests } = is_pruning
      ? await pruneUsage(
          {
            store,
            continueAudit: async (at_ms) => (await continueAudit(db, { now_ms: at_ms })).ok,
          },
          { before_ms: prune_before_ms, now_ms, isStopped },
        )
      : { requests: 0 };
    const acts_rolled_up =
      acts_before_ms === undefined
        ? 0
        : await rollUpAuditLog(store, { before_ms: acts_before_ms, isStopped });
    return { audit, requests_rolled_up: requests, acts_rolled_up };
  }
}
