import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { Refusal } from '../../../errors/errors.ts';
import { refusedByPort } from '../refusals.ts';
import { answerOf, listOf, nullable, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

const Counts = listOf(Type.Integer());
const Sampled = listOf(nullable(Type.Number()));

export const Queue = answerOf({
  requests: Type.Integer({ description: 'Requests at the models, waiting or running.' }),
  waiting_plans: Type.Integer(),
  running_tokens: Type.Integer(),
});

const History = answerOf({
  times_ms: listOf(Time),
  answered: Counts,
  refused: Counts,
  failed: Counts,
  questions: Counts,
  input_tokens: Counts,
  model_requests: Sampled,
  event_loop_lag_ms: Sampled,
  memory_bytes: Sampled,
});

const Live = answerOf({
  now_ms: Time,
  queue: Queue,
  holds: answerOf({
    open: Type.Integer(),
    oldest_at_ms: nullable(Time),
    unwritten: Type.Integer({ description: 'Holds whose release could not be written yet.' }),
  }),
  problems: Type.Integer({ description: 'Failures that were our own fault, since the start.' }),
  history: History,
});

/** Returns the route of the service's present state, and its activity in the last minutes, by the second. */
export function liveRoutes(services: ConsoleServices) {
  return new Elysia().use(operatorOnly(services)).get(
    '/live',
    () => {
      const activity = services.operation.activity.now();
      if (activity === undefined) throw refusedByPort(new Refusal('internal_error'));
      return activity;
    },
    { response: Live },
  );
}
