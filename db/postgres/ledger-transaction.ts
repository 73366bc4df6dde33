import type { ReservedSQL } from 'bun';
import type { HoldResult } from '../../src/store/hold.ts';
import { isUndone } from './failures.ts';
import { type SentChanges, sendChanges, sendReads } from './ledger-statements.ts';
import { type AskedWrite, decideWrites, type Outcome } from './ledger-writes.ts';

/** The durable result of a write: a hold's answer, nothing for an end, or the error. */
export type Written =
  | { readonly kind: 'held'; readonly result: HoldResult }
  | { readonly kind: 'ended' }
  | { readonly kind: 'failed'; readonly error: Error };

/** A transaction that failed. */
export interface TransactionFailure {
  readonly error: unknown;
  /** True if COMMIT was sent and nothing proves a rollback. */
  readonly is_doubtful: boolean;
}

export type TransactionResult =
  | { readonly ok: true; readonly written: Written[] }
  | ({ readonly ok: false } & TransactionFailure);

/**
 * Makes all writes in one transaction with two messages to the server: one locks and reads, one writes and commits.
 * Never rejects. With `isAllowed`, the transaction fails with `Forbidden` unless that resolves with true.
 */
export async function writeLedger(
  connection: ReservedSQL,
  asked: readonly AskedWrite[],
  process_id: string,
  isAllowed?: (connection: ReservedSQL) => Promise<boolean>,
): Promise<TransactionResult> {
  const begun = connection.unsafe('BEGIN ISOLATION LEVEL READ COMMITTED').execute();
  try {
    if (isAllowed !== undefined && !(await isAllowed(connection)))
      throw new Forbidden('the writes are not allowed');
    const reads = sendReads(connection, asked);
    await allAnswered([begun, ...reads.sent]);
    const { outcomes, changes } = decideWrites(asked, await reads.read());
    return await commit(connection, outcomes, sendChanges(connection, changes, process_id));
  } catch (error) {
    await Promise.allSettled([begun, connection.unsafe('ROLLBACK').execute()]);
    return { ok: false, error, is_doubtful: false };
  }
}

/** The writes were not allowed, and the transaction was rolled back. */
export class Forbidden extends Error {
  override readonly name = 'Forbidden';
}

async function commit(
  connection: ReservedSQL,
  outcomes: readonly Outcome[],
  { entered, sent }: SentChanges,
): Promise<TransactionResult> {
  // After a failed statement, COMMIT rolls the transaction back.
  const committed = connection.unsafe('COMMIT').execute();
  try {
    await allAnswered([...sent, committed]);
  } catch (error) {
    return { ok: false, error, is_doubtful: !isUndone(error) };
  }
  const entries = new Map((await entered).map(({ id, request_id }) => [request_id, Number(id)]));
  return { ok: true, written: outcomes.map((outcome) => writtenOf(outcome, entries)) };
}

/** Waits until every statement is answered. Then rejects with the first failure, if there is one. */
async function allAnswered(sent: readonly Promise<unknown>[]): Promise<void> {
  const failure = (await Promise.allSettled(sent)).find((answer) => answer.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}

function writtenOf(outcome: Outcome, entries: ReadonlyMap<string | null, number>): Written {
  if (outcome.kind !== 'placed') return outcome;
  const { request, month } = outcome;
  const entry_id = entries.get(request.request_id);
  if (entry_id === undefined) throw new Error(`the hold of ${request.request_id} was not inserted`);
  const { request_id, organization_id, project_id, amount_micros, api_key_id = null } = request;
  const hold = { entry_id, request_id, organization_id, project_id, amount_micros, month, api_key_id };
  return { kind: 'held', result: { held: true, hold } };
}
