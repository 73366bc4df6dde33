import type { Actor } from '../accounts/actor.ts';
import { requireOperator } from '../accounts/permissions.ts';
import type { RecentProblem, RecentProblems } from './problems.ts';

/**
 * Returns the last problems since the start, newest first, or those of one request (operator only). Throws
 * `permission_denied`.
 */
export function listRecentProblems(
  problems: RecentProblems,
  actor: Actor,
  filter: { readonly request_id?: string | undefined; readonly limit?: number } = {},
): RecentProblem[] {
  requireOperator(actor);
  return problems.recent(filter);
}
