import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { Refusal } from '../../../errors/errors.ts';
import type { ActivityHistory } from '../../../observability/recent-activity.ts';
import { refusedByPort } from '../refusals.ts';
import { answerOf, nullable, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

const Counts = Type.Array(Type.Integer());
const Sampled = Type.Array(nullable(Type.Number()));

export const Queue = answerOf({
  requests: Type.Integer({ description: 'Requests at the models, waiting or running.' }),
  waiting_plans: Type.Integer(),
  running_tokens: Type.Integer(),
});

const History = answerOf({
  times_ms: Type.Array(Time),
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
      return { ...activity, history: shown(activity.history) };
    },
    { response: Live },
  );
}

/** Returns the history with mutable arrays, as the schema requires. */
function shown(history: ActivityHistory): Static<typeof History> {
  return {
    times_ms: [...history.times_ms],
    answered: [...history.answered],
    refused: [...history.refused],
    failed: [...history.failed],
    questions: [...history.questions],
    input_tokens: [...history.input_tokens],
    model_requests: [...history.model_requests],
    event_loop_lag_ms: [...history.event_loop_lag_ms],
    memory_bytes: [...history.memory_bytes],
  };
}
