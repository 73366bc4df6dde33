import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { streamedText } from '../../http/streamed-text.ts';
import type { UsagePlace } from '../../store/usage-records.ts';
import { exportOrganizationUsage, usagePage } from '../../usage/analytics.ts';
import { cursorAt, placeOf } from './cursor.ts';
import { answerOf, listOf, Micros, ModeSchema, nullable, OrganizationParams, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { FilterQuery, filterOf } from './usage-filter.ts';

/** The rows of one page of the table. */
const PAGE_ROWS = 50;

const Cursor = Type.String({ minLength: 1, maxLength: 200 });

const Row = answerOf({
  request_id: Type.String(),
  time_ms: Time,
  project: Type.String(),
  api_key: Type.String(),
  model: Type.String(),
  mode: ModeSchema,
  endpoint: Type.String(),
  status: Type.Integer(),
  questions: Type.Integer(),
  input_tokens: Type.Integer(),
  cost_micros: Micros,
  latency_ms: Type.Number(),
});

/** Returns the routes of single requests: as a table, and as CSV. */
export function usageRowRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(signedIn(services))
    .get(
      '/rows',
      async ({ actor, params, query }) => {
        const filter = await filterOf(services, actor, params, query);
        const after = query.after === undefined ? undefined : usagePlace(query.after);
        const { items, next } = await usagePage(services, actor, filter, { limit: PAGE_ROWS, after });
        return {
          items,
          next: next === null ? null : cursorAt({ time_ms: next.time_ms, id: next.request_id }),
        };
      },
      {
        params: OrganizationParams,
        query: Type.Composite([FilterQuery, Type.Object({ after: Type.Optional(Cursor) })]),
        response: answerOf({ items: listOf(Row), next: nullable(Type.String()) }),
      },
    )
    .get(
      '/export.csv',
      async ({ actor, params, query }) => {
        const filter = await filterOf(services, actor, params, query);
        const pieces = await exportOrganizationUsage(services, actor, filter);
        return streamedText(pieces, () => pieces.return(), {
          'content-type': 'text/csv; charset=utf-8',
          'content-disposition': 'attachment; filename="usage.csv"',
        });
      },
      { params: OrganizationParams, query: FilterQuery },
    );
}

function usagePlace(cursor: string): UsagePlace {
  const { time_ms, id } = placeOf(cursor, 'The table has no such place.');
  return { time_ms, request_id: id };
}
