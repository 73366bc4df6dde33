import { isConnectionBroken, postgresError, sqlState } from './errors.ts';
import { WriteQueueFull } from './transactions.ts';

/** SQLSTATEs of constraints, data and invalid statements. Another try would fail in the same way. */
const STATEMENT_ERRORS = /^(22|23|42)/;

/** Returns true if the error is about the written data, and not about the database. */
export function isStatementError(error: unknown): boolean {
  return STATEMENT_ERRORS.test(sqlState(error) ?? '');
}

/** SQLSTATEs of connections, resources, locks, timeouts, shutdown, and a standby that cannot write yet. */
const AWAY_STATES = /^(08|25006|25P03|53|55P03|57)/;
const AWAY_CODES = /^ERR_POSTGRES_(CONNECTION|IDLE|LIFETIME)_/;

/** Returns true if PostgreSQL cannot be reached, does not answer in time, or can serve nobody now. */
export function isAway(error: unknown): boolean {
  if (error instanceof WriteQueueFull) return true;
  const cause = postgresError(error);
  if (cause === null) return false;
  return cause.errno === undefined ? AWAY_CODES.test(cause.code) : AWAY_STATES.test(cause.errno);
}

/**
 * Returns true if PostgreSQL has certainly rolled the transaction back. A closed connection proves nothing about a
 * commit that was sent.
 */
export function isUndone(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && !state.startsWith('57P') && !isConnectionBroken(error);
}
