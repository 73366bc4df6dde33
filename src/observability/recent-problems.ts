import type { Actor } from '../access/actor.ts';
import { requireOperator } from '../access/permissions.ts';
import type { RecentProblem, RecentProblems } from '../problems/problems.ts';

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
