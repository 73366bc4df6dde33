import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { answerOf, listOf, nullable, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

const AuditAnswer = answerOf({
  now_ms: Time,
  running_since_ms: nullable(Time),
  last: nullable(
    answerOf({
      started_at_ms: Time,
      ended_at_ms: Time,
      outcome: Type.Union([Type.Literal('ok'), Type.Literal('violations'), Type.Literal('failed')]),
      whole: Type.Boolean({ description: 'Whether everything was read, from the first entry on.' }),
      checks: listOf(answerOf({ name: Type.String(), violations: Type.Integer() })),
      requests_rolled_up: Type.Integer(),
    }),
  ),
});

/** Returns the routes of the books' audit: the result of the last one, and the start of one. */
export function auditRoutes(services: ConsoleServices) {
  const { audits } = services.operation;
  return new Elysia()
    .use(operatorOnly(services))
    .get(
      '/audit',
      ({ operator }) => {
        const { last, running_since_ms = null } = audits.status(operator);
        return {
          now_ms: services.clock.now_ms(),
          running_since_ms,
          last,
        };
      },
      { response: AuditAnswer },
    )
    .post(
      '/audit',
      ({ operator }) => {
        if (audits.status(operator).is_running) return { has_begun: false };
        // It takes as long as the history is, so its status shows the progress. It rejects only for other
        // actors than the operator.
        void audits.auditNow(operator);
        return { has_begun: true };
      },
      {
        response: answerOf({ has_begun: Type.Boolean({ description: 'False where one goes on already.' }) }),
      },
    );
}
