import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Actor } from '../../access/actor.ts';
import { requirePermission } from '../../access/permissions.ts';
import { listKeys, listRevokedKeys } from '../../accounts/keys.ts';
import { readOrganization } from '../../accounts/organizations.ts';
import { listProjects } from '../../accounts/projects.ts';
import { limitsFor, tierInForce } from '../../contract/tiers.ts';
import { ERRORS, isErrorCode } from '../../errors/errors.ts';
import type { RateLimits } from '../../limits/rate-status.ts';
import type { CountedRefusals } from '../../observability/refusal-counts.ts';
import { GROUPINGS } from '../../store/groupings.ts';
import type { UsagePlace } from '../../store/usage-records.ts';
import {
  exportOrganizationUsage,
  keySpendThisMonth,
  type OrganizationUsageFilter,
  usagePage,
  usageSeries,
  usageValues,
} from '../../usage/analytics.ts';
import { cursorAt, placeOf } from './cursor.ts';
import { refusedInput } from './refusals.ts';
import {
  answerOf,
  Id,
  listOf,
  Micros,
  ModeSchema,
  nullable,
  OrganizationParams,
  queryInteger,
  queryTime,
  Time,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';
import { requireKeyOf, requireProjectOf } from './within-organization.ts';

/** The rows of one page of the table. */
const PAGE_ROWS = 50;

/** The most revoked keys in the filter, last revoked first, because their number has no bound. */
const REVOKED_KEYS_MAX = 200;

const Text = Type.String({ minLength: 1, maxLength: 200 });

/** The filter of requests; a missing field does not filter. */
const FilterQuery = Type.Object({
  from_ms: Type.Optional(queryTime()),
  to_ms: Type.Optional(queryTime()),
  project_id: Type.Optional(Id),
  api_key_id: Type.Optional(Id),
  model: Type.Optional(Text),
  mode: Type.Optional(ModeSchema),
  endpoint: Type.Optional(Text),
  status: Type.Optional(queryInteger({ minimum: 100, maximum: 599 })),
  request_id: Type.Optional(Id),
});

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

const Refused = answerOf({
  code: Type.String(),
  status: Type.Integer(),
  message: Type.String({ description: 'The sentence of the catalogue of errors.' }),
  requests: Type.Integer(),
  last_at_ms: Time,
});

const UsedLimit = answerOf({
  used: Type.Integer({ description: 'In the last 60 seconds.' }),
  limit: Type.Integer(),
});

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

/**
 * Returns the routes of an organization's usage: over time, as a table, as CSV, and the values to filter by.
 */
export function usageRoutes(services: ConsoleServices) {
  const { store } = services;

  /**
   * Returns the filter of a path and its query, whose project and key must belong to the organization. An
   * actor who may not see the organization learns about neither.
   */
  async function filterOf(
    actor: Actor,
    { organization_id }: Static<typeof OrganizationParams>,
    query: Static<typeof FilterQuery>,
  ): Promise<OrganizationUsageFilter> {
    const { project_id, api_key_id, from_ms, to_ms, model, mode, endpoint, status, request_id } = query;
    await requirePermission(store, actor, organization_id, 'see');
    if (project_id !== undefined) {
      await requireProjectOf(store, actor, { organization_id, project_id }, 'see');
    }
    if (api_key_id !== undefined) {
      await requireKeyOf(store, actor, { organization_id, key_id: api_key_id }, 'see');
    }
    return {
      organization_id,
      project_id,
      api_key_id,
      from_ms,
      to_ms,
      model,
      mode,
      endpoint,
      status,
      request_id,
    };
  }

  return new Elysia({ prefix: '/organizations/:organization_id/usage' })
    .use(signedIn(services))
    .get(
      '/series',
      async ({ actor, params, query }) => {
        const filter = await filterOf(actor, params, query);
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
      '/refusals',
      async ({ actor, params: { organization_id } }) => {
        await requirePermission(store, actor, organization_id, 'see');
        return { items: services.operation.activity.refusalsOf(organization_id).map(explained) };
      },
      { params: OrganizationParams, response: answerOf({ items: listOf(Refused) }) },
    )
    .get(
      '/limits',
      async ({ actor, params: { organization_id } }) => {
        await requirePermission(store, actor, organization_id, 'see');
        const organization = await readOrganization(store, organization_id);
        const limits = limitsFor(tierInForce(organization, services.clock.now_ms()), organization);
        return { limits: limits === null ? null : await usedOf(services, organization_id, limits) };
      },
      {
        params: OrganizationParams,
        response: answerOf({ limits: nullable(answerOf({ requests: UsedLimit, tokens: UsedLimit })) }),
      },
    )
    .get(
      '/rows',
      async ({ actor, params, query }) => {
        const filter = await filterOf(actor, params, query);
        const after = query.after === undefined ? undefined : usagePlace(query.after);
        const { items, next } = await usagePage(services, actor, filter, { limit: PAGE_ROWS, after });
        return {
          items,
          next: next === null ? null : cursorAt({ time_ms: next.time_ms, id: next.request_id }),
        };
      },
      {
        params: OrganizationParams,
        query: Type.Composite([FilterQuery, Type.Object({ after: Type.Optional(Text) })]),
        response: answerOf({ items: listOf(Row), next: nullable(Type.String()) }),
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
    )
    .get(
      '/values',
      async ({ actor, params: { organization_id }, query: { from_ms, to_ms } }) => {
        const [values, projects, archived_projects, keys, revoked_keys] = await Promise.all([
          usageValues(services, actor, { organization_id, from_ms, to_ms }),
          listProjects(services, actor, { organization_id }),
          listProjects(services, actor, { organization_id, archived: true }),
          listKeys(services, actor, { organization_id }),
          listRevokedKeys(services, actor, { organization_id, cursor: null, limit: REVOKED_KEYS_MAX }),
        ]);
        return {
          projects: [...projects, ...archived_projects].map(({ id, name, archived_at_ms }) => ({
            id,
            name,
            is_archived: archived_at_ms !== null,
          })),
          api_keys: [...keys, ...revoked_keys.items].map(
            ({ id, name, display_prefix, project_id, revoked_at_ms }) => ({
              id,
              name,
              display_prefix,
              project_id,
              is_revoked: revoked_at_ms !== null,
            }),
          ),
          ...values,
        };
      },
      {
        params: OrganizationParams,
        query: Type.Pick(FilterQuery, ['from_ms', 'to_ms']),
        response: answerOf({
          projects: listOf(answerOf({ id: Type.String(), name: Type.String(), is_archived: Type.Boolean() })),
          api_keys: listOf(
            answerOf({
              id: Type.String(),
              name: Type.String(),
              display_prefix: Type.String(),
              project_id: Type.String(),
              is_revoked: Type.Boolean(),
            }),
          ),
          models: listOf(Type.String()),
          modes: listOf(ModeSchema),
          endpoints: listOf(Type.String()),
          statuses: listOf(Type.Integer()),
        }),
      },
    )
    .get(
      '/export.csv',
      async ({ actor, params, query }) => {
        const pieces = await exportOrganizationUsage(services, actor, await filterOf(actor, params, query));
        return new Response(streamOf(pieces), {
          headers: {
            'content-type': 'text/csv; charset=utf-8',
            'content-disposition': 'attachment; filename="usage.csv"',
            // Elysia ends a failed body of `chunked` as if it were complete. Names of codings are
            // case-insensitive (RFC 9112, 7), and this one leaves the failure to the port, which reports it
            // and breaks the connection.
            'transfer-encoding': 'Chunked',
            'cache-control': 'no-store',
          },
        });
      },
      { params: OrganizationParams, query: FilterQuery },
    );
}

/** Returns a stream of the text that produces each piece on demand. */
function streamOf(pieces: AsyncGenerator<string, void, undefined>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      async cancel() {
        await pieces.return();
      },
    },
    { highWaterMark: 0 },
  );
}

function usagePlace(cursor: string): UsagePlace {
  const { time_ms, id } = placeOf(cursor, 'The table has no such place.');
  return { time_ms, request_id: id };
}

function refusedRange(error: unknown): never {
  if (error instanceof RangeError) throw refusedInput('from_ms', 'The time must begin before it ends.');
  throw error;
}

/** Returns the counted refusals of one code with the sentence of the catalogue. */
function explained({ code, requests, last_at_ms }: CountedRefusals): Static<typeof Refused> {
  const { status, message } = isErrorCode(code) ? ERRORS[code] : { status: 400, message: code };
  return { code, status, message, requests, last_at_ms };
}

/** Resolves with the requests and tokens of the last 60 seconds beside their limits. */
async function usedOf({ decisions }: ConsoleServices, organization_id: string, limits: RateLimits) {
  const status = await decisions.limiter.status(organization_id, limits);
  const { limit_requests, remaining_requests, limit_tokens, remaining_tokens } = status;
  return {
    requests: { used: limit_requests - remaining_requests, limit: limit_requests },
    tokens: { used: limit_tokens - remaining_tokens, limit: limit_tokens },
  };
}
