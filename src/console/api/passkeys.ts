import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { RequestContexts } from '../../http/context.ts';
import { doneWith, giveCookies } from './cookies.ts';
import { answerOf, Done, done, Id, listOf, Name, nullable, Password, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { visitOf } from './visit.ts';

/** Bytes of an authenticator in base64url: a few kilobytes, because certificates are not asked for. */
const Bytes = Type.String({ pattern: '^[\\w-]+$', maxLength: 16_384 });
/** The id of a passkey: at most 1,023 bytes (WebAuthn), which an index of either database takes. */
const PasskeyId = Type.String({ pattern: '^[\\w-]+$', maxLength: 1_364 });
const WithPassword = Type.Object({ password: Password });

const Question = { challenge: Type.String(), domain: Type.String() };

/** Returns the routes of a sign-in with a passkey, which need no session: its question and the answer. */
export function passkeySignInRoutes({ sign_in }: ConsoleServices, contexts: RequestContexts) {
  const { passkeys } = sign_in;
  return new Elysia({ prefix: '/passkey' })
    .post(
      '/question',
      async ({ request, set }) => {
        const { challenge, domain, ...cookies } = await passkeys.ask(visitOf(contexts, request));
        giveCookies(set, cookies);
        return { challenge, domain };
      },
      { response: answerOf(Question) },
    )
    .post('/', ({ request, set, body }) => doneWith(set, passkeys.signIn(visitOf(contexts, request), body)), {
      body: Type.Object({ id: PasskeyId, client_data: Bytes, authenticator_data: Bytes, signature: Bytes }),
      response: Done,
    });
}

/** Returns the routes of a person's own passkeys: list, begin, add, remove. */
export function passkeyRoutes(services: ConsoleServices, contexts: RequestContexts) {
  const { passkeys } = services.sign_in;
  return new Elysia({ prefix: '/account/passkeys' })
    .use(signedIn(services))
    .get(
      '/',
      async ({ request, session }) => ({
        is_offered: passkeys.isOffered(request.headers),
        items: await passkeys.list(session),
      }),
      {
        response: answerOf({
          is_offered: Type.Boolean(),
          items: listOf(
            answerOf({
              id: Type.String(),
              name: Type.String(),
              created_at_ms: Time,
              last_used_at_ms: nullable(Time),
            }),
          ),
        }),
      },
    )
    .post(
      '/begin',
      async ({ request, set, body }) => {
        const { set_cookies, ...begun } = await passkeys.begin(visitOf(contexts, request), body);
        giveCookies(set, { set_cookies });
        return begun;
      },
      {
        body: WithPassword,
        response: answerOf({
          ...Question,
          service_name: Type.String(),
          user_handle: Type.String(),
          user_name: Type.String(),
          algorithms: listOf(Type.Integer()),
          known_ids: listOf(Type.String()),
        }),
      },
    )
    .post('/', ({ request, set, body }) => doneWith(set, passkeys.add(visitOf(contexts, request), body)), {
      body: Type.Object({
        name: Name,
        id: PasskeyId,
        client_data: Bytes,
        attestation: Bytes,
        transports: Type.String({ pattern: '^([a-z-]+(,[a-z-]+)*)?$', maxLength: 100 }),
      }),
      response: Done,
    })
    .delete(
      '/:passkey_id',
      ({ request, params, body }) =>
        done(passkeys.remove(visitOf(contexts, request), { ...params, ...body })),
      { params: Type.Object({ passkey_id: Id }), body: WithPassword, response: Done },
    );
}
