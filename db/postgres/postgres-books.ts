import type { SQL } from 'bun';
import { requireMicros } from '../../src/contract/money.ts';
import { type ChargeRequest, DurableBooks, type LedgerWriter } from '../../src/ledger/durable-books.ts';
import type { BooksEvents } from '../../src/store/books.ts';
import type { Hold, HoldRequest, HoldResult } from '../../src/store/hold.ts';
import type { UsageRow } from '../../src/store/usage-row.ts';
import type { Clock } from '../../src/time/clock.ts';
import { inTime } from '../../src/time/in-time.ts';
import { isStatementError } from './failures.ts';
import { DEADLINE_MS, LedgerBatches, type LedgerBatchOptions } from './ledger-batches.ts';
import type { Written } from './ledger-transaction.ts';
import type { NodeLease } from './node-lease.ts';

/**
 * The books of one node in a PostgreSQL database. `LedgerBatches` groups its writes into transactions. No client gets
 * an error and is charged, even if a connection or server fails. Other nodes release the holds of a dead node
 * (`NodeLease`).
 */
export class PostgresBooks extends DurableBooks {
  readonly shares_commits = false;
  readonly #writer: PostgresLedgerWriter;

  /** The client is the pool's, and one connection of it is kept. Holds store the node's id. */
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
    node.knowHolds((hold) => this.isOpen(hold));
  }

  /**
   * After the close: the number of holds that the database may still have. These are the open holds, and those whose
   * outcome is unknown.
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
    // A node with an old lease renews it before it places a hold, because others could release that hold.
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

  /** Always false: a charge rejects only when it is certainly not stored. */
  isCharged(): boolean {
    return false;
  }

  isStorageFailure(error: unknown): boolean {
    return !isStatementError(error) && !(error instanceof RangeError);
  }

  /** Releases the holds of dead nodes, and those of unregistered processes. */
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
