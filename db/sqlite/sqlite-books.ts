import { type ChargeRequest, DurableBooks, type LedgerWriter } from '../../src/ledger/durable-books.ts';
import type { BooksEvents } from '../../src/store/books.ts';
import type { Hold, HoldRequest, HoldResult } from '../../src/store/hold.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import type { Clock } from '../../src/time/clock.ts';
import { transact } from './connection.ts';
import { type GroupCommit, isStorageFailure } from './group-commit.ts';
import { IdempotencyWriter } from './idempotency-writer.ts';
import { SqliteLedger } from './sqlite-ledger.ts';
import { UsageWriter } from './usage-writer.ts';

/**
 * The books in a SQLite database: all holds and ends of an event-loop turn are one commit. The next start releases
 * holds whose ends were not written.
 *
 * One case is not covered: SQLite writes a commit but cannot sync it, and the process dies before a later commit. The
 * next start may then find a charge whose client got 503.
 */
export class SqliteBooks extends DurableBooks {
  readonly shares_commits = true;

  /** Holds store `process_id`. */
  constructor(commits: GroupCommit, clock: Pick<Clock, 'now_ms'>, process_id: string, events: BooksEvents) {
    super(new SqliteLedgerWriter(commits, process_id), clock, events);
  }
}

class SqliteLedgerWriter implements LedgerWriter {
  readonly #commits: GroupCommit;
  readonly #process_id: string;
  readonly #ledger: SqliteLedger;
  readonly #usage: UsageWriter;
  readonly #idempotency: IdempotencyWriter;

  constructor(commits: GroupCommit, process_id: string) {
    this.#commits = commits;
    this.#process_id = process_id;
    this.#ledger = new SqliteLedger(commits.db);
    this.#usage = new UsageWriter(commits.db);
    this.#idempotency = new IdempotencyWriter(commits.db);
  }

  hold(request: HoldRequest): Promise<HoldResult> {
    const { claim, ...asked } = request;
    if (claim === undefined) return this.#commits.run(() => this.#ledger.hold(asked, this.#process_id));
    return this.#commits.run(() => {
      if (this.#idempotency.isTaken(claim, asked.at_ms)) {
        return { held: false, refusal: 'idempotency_key_in_use' };
      }
      const result = this.#ledger.hold(asked, this.#process_id);
      if (result.held) this.#idempotency.claim(claim, result.hold, asked.at_ms);
      return result;
    });
  }

  charge({ hold, cost_micros, at_ms, usage, kept }: ChargeRequest): Promise<void> {
    return this.#commits.runEvenIfFull(() => {
      this.#ledger.charge(hold, cost_micros, at_ms);
      this.#usage.record(usage);
      if (kept !== null) this.#idempotency.keep(hold, kept);
    });
  }

  release(hold: Hold, usage: UsageRow | null): Promise<void> {
    return this.#commits.runEvenIfFull(() => {
      this.#ledger.release(hold);
      if (usage !== null) this.#usage.record(usage);
    });
  }

  /**
   * Returns true if a charge is stored although its commit failed. If the entry cannot be read, the later release finds
   * the charge and leaves it.
   */
  isCharged(hold: Hold): boolean {
    try {
      return this.#ledger.isCharged(hold);
    } catch {
      // Nothing is lost: the charge's caller gets the error of its commit.
      return false;
    }
  }

  isStorageFailure(error: unknown): boolean {
    return isStorageFailure(error);
  }

  /** Releases all open holds: the data directory's lock proves that no other process serves. */
  recover(): Promise<number> {
    return Promise.try(() => transact(this.#commits.db, () => this.#ledger.releaseOpenHolds()));
  }

  flush(): void {
    this.#commits.flush();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
