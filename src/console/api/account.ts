import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { previewAccountDeletion } from '../../accounts/delete-account.ts';
import { renameUser } from '../../accounts/users.ts';
import type { RequestContexts } from '../../http/context.ts';
import { doneWith } from './cookies.ts';
import { answerOf, Done, done, Id, listOf, Name, Password, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { visitOf } from './visit.ts';

const OwnSession = answerOf({
  id: Type.String(),
  is_current: Type.Boolean(),
  user_agent: Type.String(),
  client_address: Type.String(),
  created_at_ms: Time,
  last_seen_at_ms: Time,
  expires_at_ms: Time,
});

const NamedOrganization = { id: Id, name: Type.String() };

const AccountDeletion = answerOf({
  closes: listOf(answerOf(NamedOrganization)),
  prevented_by: listOf(
    answerOf({
      ...NamedOrganization,
      reason: Type.Union([Type.Literal('last_owner'), Type.Literal('organization_has_credit')]),
    }),
  ),
});

/** Returns the routes of a person's own account: name, password, sessions, deletion. */
export function accountRoutes(services: ConsoleServices, contexts: RequestContexts) {
  const { sign_in } = services;
  const visit = (request: Request) => visitOf(contexts, request);
  return new Elysia()
    .use(signedIn(services))
    .patch('/account', ({ session, body: { name } }) => done(renameUser(services, session.user_id, name)), {
      body: Type.Object({ name: Name }),
      response: Done,
    })
    .get(
      '/account/deletion',
      ({ session: { user_id } }) => previewAccountDeletion(services, { kind: 'user', user_id }),
      { response: AccountDeletion },
    )
    .delete(
      '/account',
      ({ request, set, body }) => doneWith(set, sign_in.deleteAccount(visit(request), body)),
      { body: Type.Object({ password: Password }), response: Done },
    )
    .post(
      '/password',
      ({ request, set, body }) => doneWith(set, sign_in.changePassword(visit(request), body)),
      { body: Type.Object({ current_password: Password, new_password: Password }), response: Done },
    )
    .get('/sessions', async ({ session }) => ({ items: await sign_in.sessions(session) }), {
      response: answerOf({ items: listOf(OwnSession) }),
    })
    .delete(
      '/sessions/:session_id',
      ({ session, params: { session_id } }) => done(sign_in.endSession(session, session_id)),
      { params: Type.Object({ session_id: Id }), response: Done },
    )
    .post('/sessions/end-others', ({ session }) => done(sign_in.endOtherSessions(session)), {
      response: Done,
    });
}
