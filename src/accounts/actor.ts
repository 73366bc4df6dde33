/**
 * Who asks a service to do something: a signed-in user within their roles, or the operator, who may do everything. The
 * operator has a user id in the console, where the caller has checked that the user is one, and none at the command line.
 */
export type Actor =
  | { readonly kind: 'operator'; readonly user_id: string | null }
  | { readonly kind: 'user'; readonly user_id: string };

/** The operator at the command line. */
export const OPERATOR: Actor = { kind: 'operator', user_id: null };

/** The user whose memberships bound what a list may show; undefined for the operator, who sees everything. */
export function memberIdOf(actor: Actor): string | undefined {
  return actor.kind === 'user' ? actor.user_id : undefined;
}
