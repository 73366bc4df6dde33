import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { GROUPINGS } from '../../src/store/groupings.ts';
import type { MovementPlace } from '../../src/store/movement-reader.ts';
import type { UsageFilter, UsagePlace } from '../../src/store/usage-records.ts';
import { dayOf } from '../../src/time/days.ts';
import { pruneUsage } from '../../src/usage/prune.ts';
import { propertySeed } from '../ledger/support.ts';
import { DATABASES, type OpenDatabase } from './databases.ts';
import {
  DAY_MS,
  DAYS,
  ENDPOINTS,
  events,
  KEYS,
  MODELS,
  NOW_MS,
  ORGANIZATIONS,
  PROJECTS,
  rowsOf,
  START_MS,
  STATUSES,
} from './history.ts';

/** Mostly nothing, so that several filters together still leave requests. */
const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const time = fc
  .oneof(
    fc.nat({ max: DAYS * DAY_MS }),
    fc.nat({ max: 4 * DAYS }).map((quarter) => (quarter * DAY_MS) / 4),
    fc.nat({ max: 25 }).map((step) => 3 * DAY_MS + step * 10_000),
  )
  .map((after_ms) => START_MS + after_ms);

const scope = fc.record({
  organization_id: fc.constantFrom(...ORGANIZATIONS, null),
  project_id: maybe(fc.constantFrom(...PROJECTS.map(({ id }) => id))),
  api_key_id: maybe(fc.constantFrom(...KEYS.map(({ id }) => id))),
  model: maybe(fc.constantFrom(...MODELS)),
  mode: maybe(fc.constantFrom('fast' as const, 'consistent' as const)),
  endpoint: maybe(fc.constantFrom(...ENDPOINTS)),
  status: maybe(fc.constantFrom(...STATUSES)),
});

const asked = fc.record({
  scope,
  times: fc.record({ from_ms: maybe(time), to_ms: maybe(time) }),
  span: fc.record({ from_ms: time, to_ms: time }),
  offset_minutes: fc.constantFrom(0, 120, -330, 840),
  chart: fc.record({ fits_data: fc.boolean(), group_by: maybe(fc.constantFrom(...GROUPINGS)) }),
  limit: fc.integer({ min: 1, max: 20 }),
  /** The number of a request that is asked for by its id. */
  request: maybe(fc.nat({ max: 79 })),
});
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;

/** Resolves with a promise's result, or the name of its error. */
async function outcome(promise: Promise<unknown>): Promise<unknown> {
  return await promise.catch((error: unknown) => (error instanceof Error ? error.name : error));
}

async function pagesOf({ usage }: OpenDatabase, filter: UsageFilter, limit: number): Promise<unknown[]> {
  const pages = [];
  let after: UsagePlace | undefined;
  while (true) {
    const page = await usage.page(filter, limit, after);
    pages.push(page);
    const last = page.at(-1);
    if (last === undefined) return pages;
    after = { time_ms: last.time_ms, request_id: last.request_id };
  }
}

async function linesOf(
  { movements }: OpenDatabase,
  organization_id: string,
  charges_by: 'request' | 'day',
  limit: number,
): Promise<unknown[]> {
  const pages = [];
  let before: MovementPlace | undefined;
  while (true) {
    const page = await movements.movementLines({ organization_id, charges_by, limit, before });
    pages.push(page);
    if (page.next === null) return pages;
    before = page.next;
  }
}

const inOrder = <T extends { readonly time_ms: number }>(rows: readonly T[]) =>
  rows.toSorted((a, b) => a.time_ms - b.time_ms || (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** Everything that the ports of usage and movements answer to what is asked. */
async function answersOf(
  open: OpenDatabase,
  {
    scope,
    times,
    span,
    offset_minutes,
    chart,
    limit,
    request_id,
  }: Asked & { request_id: string | undefined },
): Promise<unknown> {
  const { store, usage } = open;
  const { organization_id } = scope;
  const days = Array.from({ length: DAYS }, (_, index) => dayOf(START_MS + index * DAY_MS));
  const one = organization_id ?? ORGANIZATIONS[0];
  const totals = [];
  for (const day of days) totals.push(await store.usage.totalsOfDay(day, scope));
  const project_days = days.flatMap((day) =>
    PROJECTS.map(({ id, organization_id }) => ({ organization_id, project_id: id, day })),
  );
  const charged = [
    await store.usage.chargedOnDays_micros(project_days),
    await store.usage.costOfDays_micros(project_days),
  ];
  return {
    pages: await pagesOf(open, { ...scope, ...times, request_id }, limit),
    series: await outcome(usage.series({ ...scope, ...span, ...chart, offset_minutes, request_id })),
    values: await usage.values({ organization_id, ...times }),
    firstAnswer: await usage.firstAnswer_ms(one),
    spend: await usage.spendByKey(one, START_MS + DAY_MS),
    lines: [await linesOf(open, one, 'request', limit), await linesOf(open, one, 'day', limit)],
    days: [await store.usage.daysWithUsage(organization_id), await store.usage.daysWithUsage(null)],
    totals,
    charged,
    rolledUp: [
      await store.usage.rolledUp(scope, {}),
      await store.usage.rolledUp(scope, { first_day: dayOf(span.from_ms), last_day: dayOf(span.to_ms) }),
    ],
    admitted: [
      inOrder(await store.usage.admittedAfter(span.from_ms)),
      inOrder(await store.usage.admittedAfter(span.from_ms, span.to_ms)),
    ],
    newest: await store.usage.newestTime_ms(),
    inLedger: await store.usage.requestsInLedger(limit, limit),
    outsideLedger: inOrder(await store.usage.requestsOutsideLedger(span.from_ms, span.to_ms, 1_000)),
  };
}

test.skipIf(DATABASES.length < 2)(
  'both databases answer everything about the same history in the same way, rolled up or not',
  async () => {
    const seed = propertySeed('same answers');
    const rolledUp = fc.option(fc.nat({ max: DAYS * DAY_MS }), { nil: undefined, freq: 2 });
    await fc.assert(
      fc.asyncProperty(
        events,
        rolledUp,
        fc.array(asked, { minLength: 1, maxLength: 3 }),
        async (given, after_ms, questions) => {
          const rows = rowsOf(given);
          const answers = [];
          for (const { open } of DATABASES) {
            const opened = await open();
            try {
              await opened.insert(rows);
              const pruned =
                after_ms === undefined
                  ? null
                  : await pruneUsage(
                      { store: opened.store, continueAudit: () => true },
                      { before_ms: START_MS + after_ms, now_ms: NOW_MS, batch_requests: 7 },
                    );
              const answered = [];
              for (const question of questions) {
                const { request } = question;
                const request_id = request === undefined ? undefined : rows.usageRecords[request]?.request_id;
                answered.push(await answersOf(opened, { ...question, request_id }));
              }
              answers.push({ pruned, answered });
            } finally {
              await opened.close();
            }
          }
          expect(answers[1]).toEqual(answers[0]);
        },
      ),
      { seed, numRuns: 30 },
    );
  },
  240_000,
);
