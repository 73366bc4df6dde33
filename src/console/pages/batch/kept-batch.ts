import { inDatabase } from '../playground/kept-work.ts';
import { forgetRows, type KeptRows, readKeptRows } from '../rows/kept-rows.ts';
import type { BatchSetup } from './setup.ts';

/** The batch that the browser keeps of one person in one organization. */
export interface KeptBatch extends KeptRows {
  readonly setup: BatchSetup;
}

/** Reads the batch of a scope; null where none is kept. Never rejects. */
export async function readKeptBatch(scope: string): Promise<KeptBatch | null> {
  const [setup, rows] = await Promise.all([
    inDatabase((stored) => stored.get('batches', scope)),
    readKeptRows(scope),
  ]);
  return setup == null || rows === null ? null : { setup, ...rows };
}

/** Keeps what is chosen. Never rejects. */
export async function keepSetup(scope: string, setup: BatchSetup): Promise<void> {
  await inDatabase((stored) => stored.put('batches', setup, scope));
}

/** Forgets the batch. Never rejects. */
export async function forgetBatch(scope: string): Promise<void> {
  await forgetRows(scope);
  await inDatabase((stored) => stored.delete('batches', scope));
}
