import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { RequestContexts } from '../../http/context.ts';
import { doneWith } from './cookies.ts';
import { answerOf, Code, Done, listOf, Password } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { visitOf } from './visit.ts';

const WithPassword = Type.Object({ password: Password });
const RecoveryCodes = listOf(Type.String());

/** Returns the routes of a person's own second factor: begin, confirm, new recovery codes, remove. */
export function secondFactorRoutes(services: ConsoleServices, contexts: RequestContexts) {
  const { second_factors } = services.sign_in;
  const visit = (request: Request) => visitOf(contexts, request);
  return new Elysia({ prefix: '/account/second-factor' })
    .use(signedIn(services))
    .get('/', ({ session }) => second_factors.statusOf(session), {
      response: answerOf({ is_on: Type.Boolean(), recovery_codes_left: Type.Integer() }),
    })
    .post('/', ({ request, body }) => second_factors.begin(visit(request), body), {
      body: WithPassword,
      response: answerOf({ app_url: Type.String(), recovery_codes: RecoveryCodes }),
    })
    .post(
      '/confirm',
      ({ request, set, body }) => doneWith(set, second_factors.confirm(visit(request), body)),
      { body: Type.Object({ code: Code }), response: Done },
    )
    .post(
      '/recovery-codes',
      async ({ request, body }) => ({
        recovery_codes: await second_factors.renewRecoveryCodes(visit(request), body),
      }),
      { body: WithPassword, response: answerOf({ recovery_codes: RecoveryCodes }) },
    )
    .delete('/', ({ request, set, body }) => doneWith(set, second_factors.remove(visit(request), body)), {
      body: WithPassword,
      response: Done,
    });
}
