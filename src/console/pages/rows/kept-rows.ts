import type { IDBPTransaction } from 'idb';
import { inDatabase, type Stores } from '../playground/kept-work.ts';
import type { RowFile } from './row-file.ts';

/** A run over the rows of a file, as the browser keeps one of each person in each organization. */
export interface KeptRowRun<Chosen> {
  readonly file: RowFile;
  readonly setup: Chosen;
  /** The lines of answers that have come, by the number of their row from 1. */
  readonly answers: ReadonlyMap<number, string>;
}

/** The outcome of keeping: `replaced` where another page has removed the run, or put another in its place. */
export type Kept = 'kept' | 'replaced' | 'unkept';

/** The stores with the choices of runs. */
export type RunStore = 'batches' | 'evaluations';

type Setup<Store extends RunStore> = Stores[Store]['value'];

/** Answers of one file, in the order of the store's keys. */
const allOf = (scope: string) => IDBKeyRange.bound([scope], [scope, []]);

/** Reads the run of a scope; null where none is kept. Never rejects. */
export function readKeptRun<Store extends RunStore>(
  store: Store,
  scope: string,
): Promise<KeptRowRun<Setup<Store>> | null> {
  return inDatabase(async (stored) => {
    const transaction = stored.transaction([store, 'batch_rows', 'batch_answers']);
    const of_rows = transaction.objectStore('batch_answers');
    const [setup, file, keys, answers] = await Promise.all([
      transaction.objectStore(store).get(scope),
      transaction.objectStore('batch_rows').get(scope),
      of_rows.getAllKeys(allOf(scope)),
      of_rows.getAll(allOf(scope)),
    ]);
    if (setup === undefined || file === undefined) return null;
    return { file, setup, answers: new Map(keys.map(([, row], at) => [row, answers[at] ?? ''])) };
  });
}

/**
 * Keeps the run of one page, until another page puts another one in its place. The run's key tells them apart: each
 * file and each choice has another one.
 */
export class RunKeeper<Store extends RunStore> {
  /** The file, if it is kept with all its answers. */
  #file: RowFile | null;
  /** The key of the run that this page has kept last. */
  #run_key: string | undefined;
  /** Resolves when everything before is kept, or is not. Never rejects. */
  #last: Promise<unknown> = Promise.resolve();

  /** `kept` is what the browser had at the start of the page. */
  constructor(
    private readonly store: Store,
    private readonly scope: string,
    kept: KeptRowRun<Setup<Store>> | null,
  ) {
    this.#file = kept?.file ?? null;
    this.#run_key = kept?.setup.run_key;
  }

  /** Keeps a run. A file that is not kept takes the place of any other one. Never rejects. */
  keep({ file, setup, answers }: KeptRowRun<Setup<Store>>): Promise<Kept> {
    return this.#inTurn(async () => {
      const has_file = file === this.#file;
      const has_answers = has_file && setup.run_key === this.#run_key;
      const kept = await this.#write(has_file ? this.#run_key : undefined, (within) => {
        void within.objectStore(this.store).put(setup, this.scope);
        if (!has_file) void within.objectStore('batch_rows').put(file, this.scope);
        if (has_answers) return;
        void within.objectStore('batch_answers').delete(allOf(this.scope));
        this.#putAnswers(within, answers);
      });
      if (kept === 'kept') {
        this.#file = file;
        this.#run_key = setup.run_key;
      }
      return kept;
    });
  }

  /** Keeps answers of a run, by the number of their row. Never rejects. */
  keepAnswers(run_key: string, answers: Iterable<readonly [row: number, answer: string]>): Promise<Kept> {
    return this.#inTurn(async () =>
      this.#file === null
        ? 'unkept'
        : await this.#write(run_key, (within) => this.#putAnswers(within, answers)),
    );
  }

  /** Resolves with true if another page keeps a run in the place of this one. Never rejects. */
  isReplaced(run_key: string): Promise<boolean> {
    return this.#inTurn(
      async () =>
        (await inDatabase(
          async (stored) => (await stored.get(this.store, this.scope))?.run_key !== run_key,
        )) === true,
    );
  }

  /** Forgets what this page has kept. Never rejects. */
  forget(): Promise<unknown> {
    return this.#inTurn(async () => {
      const run_key = this.#run_key;
      this.#file = null;
      if (run_key === undefined) return;
      await this.#write(run_key, (within) => {
        void within.objectStore(this.store).delete(this.scope);
        void within.objectStore('batch_rows').delete(this.scope);
        void within.objectStore('batch_answers').delete(allOf(this.scope));
      });
    });
  }

  /** Changes what is kept, if that is still the run with this key; undefined for any. */
  async #write(run_key: string | undefined, change: (within: Writing<Store>) => void): Promise<Kept> {
    const kept = await inDatabase(async (stored): Promise<Kept> => {
      const within = stored.transaction([this.store, 'batch_rows', 'batch_answers'], 'readwrite');
      const found = run_key === undefined ? null : await within.objectStore(this.store).get(this.scope);
      const is_own = found === null || found?.run_key === run_key;
      if (is_own) change(within);
      await within.done;
      return is_own ? 'kept' : 'replaced';
    });
    if (kept === null) this.#file = null;
    return kept ?? 'unkept';
  }

  #putAnswers(within: Writing<Store>, answers: Iterable<readonly [row: number, answer: string]>): void {
    const store = within.objectStore('batch_answers');
    for (const [row, answer] of answers) void store.put(answer, [this.scope, row]);
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn;
    return turn;
  }
}

type Writing<Store extends RunStore> = IDBPTransaction<
  Stores,
  (Store | 'batch_rows' | 'batch_answers')[],
  'readwrite'
>;
