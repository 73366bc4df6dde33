import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { listRecentProblems } from '../../../observability/recent-problems.ts';
import { answerOf, listOf, nullable, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

const ProblemList = answerOf({
  items: listOf(
    answerOf({
      at_ms: nullable(Time),
      request_id: nullable(Type.String()),
      step: Type.String(),
      code: nullable(Type.String()),
      model: nullable(Type.String()),
      error: Type.String({ description: 'Classes of errors with codes of the system: no text of a client.' }),
      place: Type.String(),
    }),
  ),
});

/**
 * Returns the route of the last failures by our own fault, newest first; those of one request where its id is
 * given.
 */
export function problemRoutes(services: ConsoleServices) {
  return new Elysia().use(operatorOnly(services)).get(
    '/problems',
    ({ operator, query: { request_id } }) => ({
      items: listRecentProblems(services.problems, operator, { request_id }),
    }),
    {
      query: Type.Object({ request_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) }),
      response: ProblemList,
    },
  );
}
