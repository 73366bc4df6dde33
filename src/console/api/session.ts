import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { RequestContexts } from '../../http/context.ts';
import type { SignedIn } from '../people/sign-in.ts';
import { doneWith, giveCookies } from './cookies.ts';
import { requireToken } from './own-page.ts';
import {
  answerOf,
  Code,
  Done,
  done,
  Email,
  listOf,
  Name,
  Password,
  RoleSchema,
  Time,
  Token,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { visitOf } from './visit.ts';

const Session = answerOf({
  user: answerOf({
    id: Type.String(),
    email: Type.String(),
    name: Type.String(),
    is_operator: Type.Boolean(),
  }),
  csrf_token: Type.String(),
  expires_at_ms: Time,
  organizations: listOf(
    answerOf({
      id: Type.String(),
      name: Type.String(),
      role: RoleSchema,
      /** True while the operator has its keys refused. */
      is_suspended: Type.Boolean(),
    }),
  ),
});

const NoSession = answerOf({
  user: Type.Null(),
  sign_up: Type.Union([Type.Literal('open'), Type.Literal('invited')]),
  /** True if the browser has the cookie of a session that is no more. */
  has_ended: Type.Boolean(),
  /** True if a passkey can sign somebody in at this address. */
  offers_passkeys: Type.Boolean(),
});

/** Returns the route of the present session, and those of every way to get one, which need none. */
export function sessionRoutes(services: ConsoleServices, contexts: RequestContexts) {
  const { sign_in } = services;
  const visit = (request: Request) => visitOf(contexts, request);
  return new Elysia()
    .get(
      '/session',
      async ({ request, set }) => {
        const session = await sign_in.sessionOf(request.headers);
        if (session === null) return await nobody(services, request.headers);
        giveCookies(set, session);
        return shown(session, await organizationsOf(services, session.user_id));
      },
      { response: Type.Union([Session, NoSession]) },
    )
    .post('/sign-up', ({ request, body }) => done(sign_in.signUp(visit(request), body)), {
      body: Type.Object({
        name: Name,
        email: Email,
        password: Password,
      }),
      response: Done,
    })
    .post(
      '/verification',
      ({ request, body: { email } }) => done(sign_in.requestVerification(visit(request), email)),
      { body: Type.Object({ email: Email }), response: Done },
    )
    .post('/verify', ({ request, set, body }) => doneWith(set, sign_in.verify(visit(request), body)), {
      body: Type.Object({ token: Token, password: Password }),
      response: Done,
    })
    .post(
      '/sign-in',
      async ({ request, set, body }) => {
        const { needs_second_factor, ...cookies } = await sign_in.signIn(visit(request), body);
        giveCookies(set, cookies);
        return needs_second_factor ? { needs_second_factor: true as const } : { done: true as const };
      },
      {
        body: Type.Object({ email: Email, password: Password }),
        response: Type.Union([Done, answerOf({ needs_second_factor: Type.Literal(true) })]),
      },
    )
    .post(
      '/second-factor',
      ({ request, set, body }) => doneWith(set, sign_in.finishSignIn(visit(request), body)),
      { body: Type.Object({ code: Code }), response: Done },
    )
    .post(
      '/sign-out',
      async ({ request, set }) => {
        const session = await sign_in.sessionOf(request.headers);
        if (session !== null) requireToken(request, session.csrf_token);
        return await doneWith(set, sign_in.signOut(visit(request)));
      },
      { response: Done },
    )
    .post(
      '/reset-request',
      ({ request, body: { email } }) => done(sign_in.requestReset(visit(request), email)),
      { body: Type.Object({ email: Email }), response: Done },
    )
    .post('/reset', ({ request, body }) => done(sign_in.reset(visit(request), body)), {
      body: Type.Object({ token: Token, new_password: Password }),
      response: Done,
    });
}

async function nobody({ sign_in }: Pick<ConsoleServices, 'sign_in'>, headers: Headers) {
  return {
    user: null,
    sign_up: sign_in.sign_up,
    has_ended: await sign_in.isCookieSigned(headers),
    offers_passkeys: sign_in.passkeys.isOffered(headers),
  };
}

async function organizationsOf({ store }: Pick<ConsoleServices, 'store'>, user_id: string) {
  const organizations = [];
  for (const { id, name, suspended_at_ms } of await store.accounts.organizationsOf(user_id)) {
    const role = await store.accounts.roleOf({ organization_id: id, user_id });
    if (role !== null) organizations.push({ id, name, role, is_suspended: suspended_at_ms !== null });
  }
  return organizations;
}

function shown(
  { user_id, email, name, is_operator, csrf_token, expires_at_ms }: SignedIn,
  organizations: Awaited<ReturnType<typeof organizationsOf>>,
) {
  return { user: { id: user_id, email, name, is_operator }, csrf_token, expires_at_ms, organizations };
}
