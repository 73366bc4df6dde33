import { workerScript } from '../../src/files/project-root.ts';
import { ThreadFailed, type ThreadFailure } from '../../src/problems/causes.ts';
import type { MovementPage, MovementQuestion, MovementReader } from '../../src/store/movement-reader.ts';
import type {
  KeySpend,
  SeriesQuestion,
  UsageReader,
  UsageSeries,
  UsageSpan,
  UsageValues,
} from '../../src/store/usage-reader.ts';
import type { NamedUsageRow, UsageFilter, UsagePlace } from '../../src/store/usage-records.ts';
import { READ_MS_MAX, ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import type { Read, ReaderOrder } from './reader-worker.ts';

/** The thread's messages. The read of that number knows the type of its result. */
type Answer =
  | { readonly number: number; readonly result: never }
  | ({ readonly number: number } & ThreadFailure)
  | 'closed';

interface Waiting {
  readonly organization_id: string | null;
  readonly read: Read;
  readonly resolve: (result: never) => void;
  readonly reject: (error: ThreadFailed | ReadTookTooLong) => void;
}

/**
 * Runs long reads of a database file one after the other in a thread, which starts with the first read. Every method
 * also rejects with `ThreadFailed`. The next read then starts a new thread if needed.
 *
 * A read that takes too long rejects with `ReadTookTooLong`, and a new thread replaces its thread, because SQLite's
 * statement cannot be stopped. Until the statement ends, its organization's reads are refused. So each organization has
 * one such thread at most.
 */
export class ReaderThread implements UsageReader, MovementReader {
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #isClosed = false;
  #last_number = 0;
  /** The timer that fires when the oldest read has taken too long. */
  #timer: Timer | undefined;
  /** The organizations whose statements still run in replaced threads. */
  readonly #overdue = new Set<string | null>();
  readonly #closed = Promise.withResolvers<void>();

  constructor(
    private readonly path: string,
    private readonly read_ms_max = READ_MS_MAX,
  ) {}

  page(filter: UsageFilter, limit: number, after?: UsagePlace): Promise<readonly NamedUsageRow[]> {
    return this.#ask(filter.organization_id, { of: 'page', filter, limit, after });
  }

  series(question: SeriesQuestion): Promise<UsageSeries> {
    return this.#ask(question.organization_id, { of: 'series', question });
  }

  values(span: UsageSpan): Promise<UsageValues> {
    return this.#ask(span.organization_id, { of: 'values', span });
  }

  spendByKey(organization_id: string, from_ms: number): Promise<readonly KeySpend[]> {
    return this.#ask(organization_id, { of: 'spendByKey', organization_id, from_ms });
  }

  firstAnswer_ms(organization_id: string): Promise<number | undefined> {
    return this.#ask(organization_id, { of: 'firstAnswer_ms', organization_id });
  }

  movementLines(question: MovementQuestion): Promise<MovementPage> {
    return this.#ask(question.organization_id, { of: 'movementLines', question });
  }

  /** Ends the thread after its last read. Later reads are refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#worker === undefined) return;
    this.#tell(this.#worker, 'close');
    await this.#closed.promise;
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  /** Asks the thread for a read of an organization's rows; null for those of all. */
  #ask<T>(organization_id: string | null, read: Read): Promise<T> {
    if (this.#isClosed) return Promise.reject(new ThreadFailed('The thread that reads is closed.', []));
    if (this.#overdue.has(organization_id)) return Promise.reject(new ReadTookTooLong());
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#worker ??= this.#start();
    this.#last_number += 1;
    this.#waiting.set(this.#last_number, { organization_id, read, resolve, reject });
    this.#tell(this.#worker, { number: this.#last_number, read });
    if (this.#waiting.size === 1) this.#watchOldest();
    return promise;
  }

  /** Starts the timer of the oldest read. */
  #watchOldest(): void {
    clearTimeout(this.#timer);
    if (this.#waiting.size === 0) return;
    this.#timer = setTimeout(() => this.#giveUpOldest(), this.read_ms_max);
    this.#timer.unref();
  }

  /** Leaves the thread to its statement, and sends the other reads to a new thread. */
  #giveUpOldest(): void {
    const given_up = this.#worker;
    const [oldest] = this.#waiting;
    if (given_up === undefined || oldest === undefined) return;
    const [number, { organization_id, reject }] = oldest;
    this.#overdue.add(organization_id);
    given_up.addEventListener('close', () => this.#overdue.delete(organization_id));
    given_up.terminate();
    this.#waiting.delete(number);
    reject(new ReadTookTooLong());
    this.#worker = this.#start();
    for (const [later, waiting] of this.#waiting) {
      this.#tell(this.#worker, { number: later, read: waiting.read });
    }
    if (this.#isClosed) this.#tell(this.#worker, 'close');
    this.#watchOldest();
  }

  #start(): Worker {
    const worker = new Worker(workerScript('db/sqlite/reader-worker.ts'));
    // The process may exit before the thread ends.
    worker.unref();
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data === 'closed') {
        this.#closed.resolve();
        return;
      }
      const waiting = this.#waiting.get(data.number);
      this.#waiting.delete(data.number);
      this.#watchOldest();
      if ('failed' in data) waiting?.reject(new ThreadFailed(data.failed.message, data.failed.causes));
      else waiting?.resolve(data.result);
    };
    worker.onerror = (event) => this.#fail(worker, new ThreadFailed(event.message, []));
    this.#tell(worker, { path: this.path });
    return worker;
  }

  /** Rejects all reads of a thread that has failed. */
  #fail(worker: Worker, error: ThreadFailed): void {
    worker.terminate();
    // A replaced thread may still send messages.
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
    clearTimeout(this.#timer);
    // Otherwise the next read starts a new thread, and `close` waits for its end.
    if (this.#isClosed) this.#closed.resolve();
  }

  #tell(worker: Worker, order: ReaderOrder): void {
    worker.postMessage(order);
  }
}
