import { Elysia } from 'elysia';
import type { Actor } from '../../accounts/actor.ts';
import { requireToken } from './own-page.ts';
import { refused } from './refusals.ts';
import type { ConsoleServices } from './services.ts';

/** For routes of people who are signed in: their session, and the actor that rules take. Refuses with `not_signed_in`. */
export function signedIn({ sessions }: Pick<ConsoleServices, 'sessions'>) {
  return new Elysia().derive({ as: 'scoped' }, async ({ request }) => {
    const session = await sessions.sessionOf(request.headers);
    if (session === null) throw refused('not_signed_in');
    requireToken(request, session.csrf_token);
    const actor: Actor = { kind: 'user', user_id: session.user_id };
    return { session, actor };
  });
}
