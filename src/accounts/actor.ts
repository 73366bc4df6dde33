/** Who asks a service to do something: the operator at the command line, who may do everything, or a signed-in user. */
export type Actor = { readonly kind: 'operator' } | { readonly kind: 'user'; readonly user_id: string };

export const OPERATOR: Actor = { kind: 'operator' };

/** The user to note as the creator of something; null for the operator. */
export function userIdOf(actor: Actor): string | null {
  return actor.kind === 'user' ? actor.user_id : null;
}
