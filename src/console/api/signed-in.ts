import { Elysia } from 'elysia';
import type { Actor } from '../../access/actor.ts';
import type { SignedIn } from '../people/sign-in.ts';
import { SignInError } from '../people/sign-in-error.ts';
import { giveCookies } from './cookies.ts';
import { isReading, requireToken } from './own-page.ts';
import type { ConsoleServices } from './services.ts';

/**
 * Provides the session and the actor of signed-in people to routes. Refuses with `not_signed_in`, and with
 * `too_many_attempts` after too many changes in a minute. `count` counts a request that is no reading, by default as a
 * change.
 */
export function signedIn(
  { sign_in }: Pick<ConsoleServices, 'sign_in'>,
  count: (session: SignedIn) => void = (session) => sign_in.countChange(session),
) {
  return new Elysia().derive({ as: 'scoped' }, async ({ request, set }) => {
    const session = await sign_in.sessionOf(request.headers);
    if (session === null) throw new SignInError('not_signed_in');
    requireToken(request, session.csrf_token);
    if (!isReading(request)) count(session);
    giveCookies(set, session);
    const actor: Actor = { kind: 'user', user_id: session.user_id };
    return { session, actor };
  });
}
