import { isConnectionBroken, postgresError, sqlState } from './errors.ts';
import { WriteQueueFull } from './transactions.ts';

/** Integrity, data, and what is wrong with the statement itself: another try would fail in the same way. */
const STATEMENT_ERRORS = /^(22|23|42)/;

/** Whether the error is about what was to be written, and not about the database. */
export function isStatementError(error: unknown): boolean {
  return STATEMENT_ERRORS.test(sqlState(error) ?? '');
}

/** Connections, resources, locks and time limits, the server's end, and a standby that does not write yet. */
const AWAY_STATES = /^(08|25006|25P03|53|55P03|57)/;
const AWAY_CODES = /^ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)_/;

/** Whether PostgreSQL cannot be reached, does not answer in time, or cannot do anything for anybody just now. */
export function isAway(error: unknown): boolean {
  if (error instanceof WriteQueueFull) return true;
  const cause = postgresError(error);
  if (cause === null) return false;
  return cause.errno === undefined ? AWAY_CODES.test(cause.code) : AWAY_STATES.test(cause.errno);
}

/**
 * Whether PostgreSQL has surely undone the transaction that was answered with the error. The end of a connection says
 * nothing about a commit that was sent.
 */
export function isUndone(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && !state.startsWith('57P') && !isConnectionBroken(error);
}
