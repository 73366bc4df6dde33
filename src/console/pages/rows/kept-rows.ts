import { inDatabase, type Stores } from '../playground/kept-work.ts';
import type { RowFile } from './row-file.ts';

/** The file that the browser keeps of one person in one organization, and its answers. */
export interface KeptRows {
  readonly file: RowFile;
  /** The lines of answers that have come, by the number of their row from 1. */
  readonly answers: ReadonlyMap<number, string>;
}

/** Those rows with the choices of their run. */
export interface KeptRowRun<Chosen> extends KeptRows {
  readonly setup: Chosen;
}

/** Answers of one file, in the order of the store's keys. */
const allOf = (scope: string) => IDBKeyRange.bound([scope], [scope, []]);

/** Reads the rows of a scope; null where none are kept. Never rejects. */
function readKeptRows(scope: string): Promise<KeptRows | null> {
  return inDatabase(async (stored) => {
    const [file, keys, answers] = await Promise.all([
      stored.get('batch_rows', scope),
      stored.getAllKeys('batch_answers', allOf(scope)),
      stored.getAll('batch_answers', allOf(scope)),
    ]);
    if (file === undefined) return null;
    return { file, answers: new Map(keys.map(([, row], at) => [row, answers[at] ?? ''])) };
  });
}

/**
 * Keeps the rows of a file and the answers that it has, in place of another one. Resolves with false where they are not
 * kept.
 */
export async function keepRows(
  scope: string,
  file: RowFile,
  answers: ReadonlyMap<number, string>,
): Promise<boolean> {
  await forgetAnswers(scope);
  const kept = await inDatabase((stored) => stored.put('batch_rows', file, scope));
  return kept !== null && (await keepAnswers(scope, [...answers]));
}

/** Keeps answers by the number of their row. Resolves with false where they are not kept. */
export async function keepAnswers(
  scope: string,
  answers: readonly (readonly [row: number, answer: string])[],
): Promise<boolean> {
  const kept = await inDatabase(async (stored) => {
    const transaction = stored.transaction('batch_answers', 'readwrite');
    for (const [row, answer] of answers) void transaction.store.put(answer, [scope, row]);
    await transaction.done;
    return true;
  });
  return kept === true;
}

/** Forgets the answers, so that all rows are asked again. Never rejects. */
export async function forgetAnswers(scope: string): Promise<void> {
  await inDatabase((stored) => stored.delete('batch_answers', allOf(scope)));
}

/** Forgets the rows and their answers. Never rejects. */
export async function forgetRows(scope: string): Promise<void> {
  await forgetAnswers(scope);
  await inDatabase((stored) => stored.delete('batch_rows', scope));
}

/** Reads, keeps and forgets the runs of a page, whose choices are in this store. */
function keptRunsIn<Store extends 'batches' | 'evaluations'>(store: Store) {
  return {
    /** Reads the run of a scope; null where none is kept. Never rejects. */
    read: async (scope: string): Promise<KeptRowRun<Stores[Store]['value']> | null> => {
      const [setup, rows] = await Promise.all([
        inDatabase((stored) => stored.get(store, scope)),
        readKeptRows(scope),
      ]);
      return setup == null || rows === null ? null : { setup, ...rows };
    },
    /** Keeps what is chosen. Never rejects. */
    keepSetup: async (scope: string, setup: Stores[Store]['value']): Promise<void> => {
      await inDatabase((stored) => stored.put(store, setup, scope));
    },
    /** Forgets the choices, the rows and their answers. Never rejects. */
    forget: async (scope: string): Promise<void> => {
      await forgetRows(scope);
      await inDatabase((stored) => stored.delete(store, scope));
    },
  };
}

/** The batches that the browser keeps, each of one person in one organization. */
export const keptBatches = keptRunsIn('batches');

/** The evaluations that it keeps. */
export const keptEvaluations = keptRunsIn('evaluations');
