import type { SQL } from 'bun';
import type { Clock } from '../../src/clock.ts';
import { inTime } from '../../src/in-time.ts';
import { requireMicros } from '../../src/ledger/amounts.ts';
import type { BooksEvents } from '../../src/ledger/books.ts';
import { type ChargeRequest, DurableBooks, type LedgerWriter } from '../../src/ledger/durable-books.ts';
import type { Hold, HoldRequest, HoldResult } from '../../src/ledger/hold.ts';
import type { UsageRow } from '../../src/usage/usage-row.ts';
import { isStatementError } from './failures.ts';
import { DEADLINE_MS, LedgerBatches, type LedgerBatchOptions } from './ledger-batches.ts';
import type { Written } from './ledger-transaction.ts';
import type { NodeLease } from './nodes.ts';

/**
 * The books of one node in a PostgreSQL database: the writes of its requests are grouped into transactions
 * (`LedgerBatches`). No client is told of an error and charged, whatever becomes of a connection or a server. The holds
 * of a node that died are released by the others (`NodeLease`).
 */
export class PostgresBooks extends DurableBooks {
  readonly shares_commits = false;
  readonly #writer: PostgresLedgerWriter;

  /** The client is the pool's; a connection of it is kept. The node's id is written with its holds. */
  constructor(
    client: SQL,
    node: NodeLease,
    clock: Pick<Clock, 'now_ms'>,
    events: BooksEvents,
    options: LedgerBatchOptions = {},
  ) {
    const writer = new PostgresLedgerWriter(client, node, options);
    super(writer, clock, events);
    this.#writer = writer;
  }

  /**
   * After the close: the holds that the database may have, with no end. Besides the open ones these are those of which
   * this process never learned whether they were placed.
   */
  get left_holds(): number {
    return this.open.holds + this.#writer.unknown_holds;
  }
}

class PostgresLedgerWriter implements LedgerWriter {
  readonly #node: NodeLease;
  readonly #batches: LedgerBatches;
  readonly #deadline_ms: number;

  constructor(client: SQL, node: NodeLease, options: LedgerBatchOptions) {
    this.#node = node;
    this.#batches = new LedgerBatches(client, node, options);
    this.#deadline_ms = options.deadline_ms ?? DEADLINE_MS;
  }

  get unknown_holds(): number {
    return this.#batches.unknown_holds;
  }

  async hold(request: HoldRequest): Promise<HoldResult> {
    requireMicros(request.amount_micros, 0);
    // A node that others may take for dead says that it lives, before it places a hold that they would release.
    if (!this.#node.isRenewed())
      await inTime(this.#node.renew(), this.#deadline_ms, 'the lease was not renewed');
    const written = await this.#batches.run({ kind: 'hold', request });
    if (written.kind === 'failed') throw written.error;
    if (written.kind !== 'held') throw new Error(`the hold of ${request.request_id} was not decided`);
    return written.result;
  }

  async charge(charge: ChargeRequest): Promise<void> {
    requireEnded(await this.#batches.run({ kind: 'charge', ...charge }));
  }

  async release(hold: Hold, usage: UsageRow | null): Promise<void> {
    requireEnded(await this.#batches.run({ kind: 'release', hold, usage }));
  }

  /** A charge rejects only when it is known that it is not there. */
  isCharged(): boolean {
    return false;
  }

  isStorageFailure(error: unknown): boolean {
    return !isStatementError(error) && !(error instanceof RangeError);
  }

  /** Releases the holds of dead nodes, and those that no node placed. */
  async recover(): Promise<number> {
    return (await this.#node.releaseOrphans()) + (await this.#node.releaseDead());
  }

  flush(): void {
    this.#batches.endSoon();
  }

  close(): Promise<void> {
    return this.#batches.close();
  }
}

function requireEnded(written: Written): void {
  if (written.kind === 'failed') throw written.error;
}
