import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { GROUPINGS } from '../../store/groupings.ts';
import { keySpendThisMonth, usageSeries } from '../../usage/analytics.ts';
import { refusedInput } from './refusals.ts';
import { answerOf, listOf, Micros, nullable, OrganizationParams, queryInteger, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { FilterQuery, filterOf } from './usage-filter.ts';
import { recentUsageRoutes } from './usage-recent.ts';
import { usageRowRoutes } from './usage-rows.ts';
import { usageValueRoutes } from './usage-values.ts';

const GroupBy = Type.Union(GROUPINGS.map((grouping) => Type.Literal(grouping)));

const Totals = {
  requests: Type.Integer(),
  statuses: listOf(answerOf({ status: Type.Integer(), requests: Type.Integer() })),
  questions: Type.Integer(),
  input_tokens: Type.Integer(),
  cost_micros: Micros,
  latency_ms: nullable(answerOf({ p50: Type.Number(), p90: Type.Number(), p99: Type.Number() })),
  rolled_up_requests: Type.Integer({
    description: 'Those that are there in daily totals only, without a latency.',
  }),
};

const Series = answerOf({
  from_ms: Time,
  to_ms: Time,
  bucket_ms: Type.Integer(),
  buckets: listOf(answerOf({ start_ms: Time, ...Totals })),
  groups: listOf(
    answerOf({
      value: nullable(Type.String({ description: 'Null for all values but the largest.' })),
      requests: listOf(Type.Integer()),
      input_tokens: listOf(Type.Integer()),
      cost_micros: listOf(Micros),
    }),
  ),
  totals: answerOf(Totals),
});

/**
 * Returns the routes of an organization's usage: over time, as a table, as CSV, and the values to filter by.
 */
export function usageRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations/:organization_id/usage' })
    .use(totalRoutes(services))
    .use(recentUsageRoutes(services))
    .use(usageRowRoutes(services))
    .use(usageValueRoutes(services));
}

/** Returns the routes of added-up usage: over time, and by key in this month. */
function totalRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(signedIn(services))
    .get(
      '/series',
      async ({ actor, params, query }) => {
        const filter = await filterOf(services, actor, params, query);
        const { offset_minutes = 0, group_by, fits_data, without_buckets } = query;
        const chart = { offset_minutes, group_by, fits_data: fits_data === 'true' };
        const series = await usageSeries(services, actor, { ...filter, ...chart }).catch(refusedRange);
        return without_buckets === 'true' ? { ...series, buckets: [] } : series;
      },
      {
        params: OrganizationParams,
        query: Type.Composite([
          FilterQuery,
          Type.Object({
            offset_minutes: Type.Optional(queryInteger()),
            group_by: Type.Optional(GroupBy),
            fits_data: Type.Optional(Type.Literal('true')),
            without_buckets: Type.Optional(Type.Literal('true')),
          }),
        ]),
        response: Series,
      },
    )
    .get(
      '/keys',
      async ({ actor, params: { organization_id } }) => ({
        items: await keySpendThisMonth(services, actor, organization_id),
      }),
      {
        params: OrganizationParams,
        response: answerOf({
          items: listOf(answerOf({ api_key_id: Type.String(), cost_micros: Micros })),
        }),
      },
    );
}

function refusedRange(error: unknown): never {
  if (error instanceof RangeError) throw refusedInput('from_ms', 'The time must begin before it ends.');
  throw error;
}
