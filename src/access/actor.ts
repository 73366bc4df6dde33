/**
 * The party that asks a service to do something: a signed-in user within their roles, or the operator, who
 * may do everything. The operator has a user id in the console, where the caller has checked it, and none at
 * the command line.
 */
export type Actor =
  | { readonly kind: 'operator'; readonly user_id: string | null }
  | { readonly kind: 'user'; readonly user_id: string };

/** The operator at the command line. */
export const OPERATOR: Actor = { kind: 'operator', user_id: null };

/** Returns the user whose memberships bound a list; undefined for the operator, who sees everything. */
export function memberIdOf(actor: Actor): string | undefined {
  return actor.kind === 'user' ? actor.user_id : undefined;
}
