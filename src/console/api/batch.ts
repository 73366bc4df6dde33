import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { Elysia } from 'elysia';
import { AccountError } from '../../access/account-error.ts';
import { Refusal } from '../../errors/errors.ts';
import { answerBatch } from '../../http/batch-route.ts';
import type { RequestContexts } from '../../http/context.ts';
import { IDEMPOTENCY_KEY_HEADER } from '../../http/decision-routes.ts';
import { type Clock, MINUTE_MS } from '../../time/clock.ts';
import { refusedByPort } from './refusals.ts';
import { Id, OrganizationParams } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { requireKeyOf } from './within-organization.ts';

const BatchParams = Type.Composite([OrganizationParams, Type.Object({ key_id: Id })]);

/**
 * The idempotency key of a batch of the page: 256 random bits or more. The hashes of its rows are keyed with it, so that
 * nobody may be able to guess it. The secret of the API key is not known here.
 */
const RunKey = Type.String({ pattern: '^[\\w-]{43,255}$' });

/**
 * Returns the route of the Batch page: a batch with a key of the organization, named by its id. The lines, their answers
 * and their charges are those of `POST /v1/decisions/batch`. No record is stored. It ends within a minute after its member
 * has left, may not use keys any more or has signed out.
 */
export function batchRoutes(services: ConsoleServices, contexts: RequestContexts) {
  const { sign_in, store, clock } = services;
  return new Elysia({ prefix: '/organizations/:organization_id/batch' })
    .use(signedIn(services, (session) => sign_in.countBatch(session)))
    .post(
      '/:key_id',
      async ({ session, actor, request, params }) => {
        const { key_id } = params;
        await requireKeyOf(store, actor, params, 'use_keys');
        const run_key = request.headers.get(IDEMPOTENCY_KEY_HEADER);
        if (!Value.Check(RunKey, run_key)) throw refusedByPort(new Refusal('invalid_idempotency_key'));
        const context = contexts.of(request);
        context.endpoint = '/console/batch';
        const mayStillUse = onceAMinute(clock, async () => {
          const sessions = await sign_in.sessions(session);
          if (!sessions.some(({ is_current }) => is_current)) return false;
          return await requireKeyOf(store, actor, params, 'use_keys').then(
            () => true,
            (error: unknown) => {
              if (error instanceof AccountError) return false;
              throw error;
            },
          );
        });
        const key = { key_id, client_secret: run_key, mayStillUse };
        const answered = await answerBatch(services.decisions, { key }, request, context);
        if (answered instanceof Refusal) throw refusedByPort(answered);
        return answered;
      },
      { parse: 'none', params: BatchParams },
    );
}

/** Returns the answer of `ask`, at most a minute old. It is true at first, without a question. */
function onceAMinute(
  clock: Pick<Clock, 'monotonic_ms'>,
  ask: () => Promise<boolean>,
): () => Promise<boolean> {
  let asked_at_ms = clock.monotonic_ms();
  let answer = Promise.resolve(true);
  return () => {
    const now_ms = clock.monotonic_ms();
    if (now_ms - asked_at_ms >= MINUTE_MS) {
      asked_at_ms = now_ms;
      answer = ask();
      answer.catch(() => {
        asked_at_ms = Number.NEGATIVE_INFINITY;
      });
    }
    return answer;
  };
}
