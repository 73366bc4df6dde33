import { type ThreadFailure, threadFailure } from '../../src/problems/causes.ts';
import type { MovementQuestion } from '../../src/store/movement-reader.ts';
import type { SeriesQuestion, UsageSpan } from '../../src/store/usage-reader.ts';
import type { UsageFilter, UsagePlace } from '../../src/store/usage-records.ts';
import { type Db, openReadOnly } from './connection.ts';
import { SqliteMovementReader } from './movement-reader.ts';
import { SqliteUsageReader } from './usage-reader.ts';

declare const self: Worker;

/** One read, by the name of the port's method. */
export type Read =
  | {
      readonly of: 'page';
      readonly filter: UsageFilter;
      readonly limit: number;
      readonly after: UsagePlace | undefined;
    }
  | { readonly of: 'series'; readonly question: SeriesQuestion }
  | {
      readonly of: 'values';
      readonly span: UsageSpan;
    }
  | { readonly of: 'spendByKey'; readonly organization_id: string; readonly from_ms: number }
  | { readonly of: 'firstAnswer_ms'; readonly organization_id: string }
  | { readonly of: 'movementLines'; readonly question: MovementQuestion };

/** The messages to the thread: first the file, then numbered reads, then the end. */
export type ReaderOrder =
  | { readonly path: string }
  | { readonly number: number; readonly read: Read }
  | 'close';

/** The result of the read of that number; `closed` after the last. */
type ReaderAnswer =
  | { readonly number: number; readonly result: unknown }
  | ({ readonly number: number } & ThreadFailure)
  | 'closed';

/** The longest wait of a read while the database recovers from another process's crash. */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * The part of the file that is memory-mapped and read without a copy. It halves the time of long reads, whose rows are
 * spread over almost as many pages.
 */
const MAPPED_BYTES = 0x7fff_0000;

class Reader {
  readonly usage: SqliteUsageReader;
  readonly movements: SqliteMovementReader;

  constructor(readonly db: Db) {
    db.$client.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    db.$client.run('PRAGMA temp_store = MEMORY');
    db.$client.run(`PRAGMA mmap_size = ${MAPPED_BYTES}`);
    this.usage = new SqliteUsageReader(db);
    this.movements = new SqliteMovementReader(db);
  }

  read(read: Read): Promise<unknown> {
    switch (read.of) {
      case 'page':
        return this.usage.page(read.filter, read.limit, read.after);
      case 'series':
        return this.usage.series(read.question);
      case 'values':
        return this.usage.values(read.span);
      case 'spendByKey':
        return this.usage.spendByKey(read.organization_id, read.from_ms);
      case 'firstAnswer_ms':
        return this.usage.firstAnswer_ms(read.organization_id);
      case 'movementLines':
        return this.movements.movementLines(read.question);
    }
  }
}

let path = '';
let reader: Reader | undefined;

/** Answers reads in order on a read-only connection, off the event loop. */
self.onmessage = async ({ data }: MessageEvent<ReaderOrder>) => {
  if (data === 'close') {
    reader?.db.$client.close();
    self.postMessage('closed' satisfies ReaderAnswer);
  } else if ('path' in data) {
    path = data.path;
  } else {
    self.postMessage(await answer(data.number, data.read));
  }
};

async function answer(number: number, read: Read): Promise<ReaderAnswer> {
  try {
    reader ??= new Reader(openReadOnly(path));
    return { number, result: await reader.read(read) };
  } catch (error) {
    return { number, ...threadFailure(error) };
  }
}
