import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Actor } from '../../../access/actor.ts';
import { listRecentProblems } from '../../../observability/recent-problems.ts';
import { listPendingPayments } from '../../../payments/credit.ts';
import { countUnresolvedEvents } from '../../../payments/list-events.ts';
import { MANUAL_PROVIDER_NAME } from '../../../payments/manual.ts';
import { DAY_MS } from '../../../time/clock.ts';
import { answerOf, listOf, Micros, nullable, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

/** The most payments of an answer, oldest first; the count has all. */
const PAYMENTS_MAX = 100;

/** Failures of one kind on this node, in the last 24 hours. */
const Failures = answerOf({ count: Type.Integer(), newest_at_ms: nullable(Time) });

const Inbox = answerOf({
  count: Type.Integer({
    description: 'All that waits for the operator: payments, payment events, models, upstreams, failures.',
  }),
  payments: listOf(
    answerOf({
      id: Type.String(),
      organization_id: Type.String(),
      organization_name: Type.String(),
      amount_micros: Micros,
      created_at_ms: Time,
    }),
  ),
  unresolved_events: Type.Integer({
    description: 'The payment events that fit no payment here; the credit of each waits for a decision.',
  }),
  models: listOf(answerOf({ id: Type.String(), error: Type.String() })),
  upstreams: listOf(answerOf({ model_id: Type.String(), address: Type.String() })),
  backups: Failures,
  problems: Failures,
});

/** Returns the route of all that waits for the operator. */
export function inboxRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(operatorOnly(services))
    .get('/inbox', ({ operator }) => readInbox(services, operator), { response: Inbox });
}

async function readInbox(services: ConsoleServices, operator: Actor): Promise<Static<typeof Inbox>> {
  // Checkouts of providers that nobody paid stay pending; there may be many.
  const pending = await listPendingPayments(services, operator, { provider: MANUAL_PROVIDER_NAME });
  const by_hand = pending.filter(({ kind }) => kind === 'top_up');
  const payments = [];
  for (const { id, organization_id, amount_micros, created_at_ms } of by_hand.slice(0, PAYMENTS_MAX)) {
    const organization = await services.store.accounts.findOrganization(organization_id);
    const organization_name = organization?.name ?? organization_id;
    payments.push({ id, organization_id, organization_name, amount_micros, created_at_ms });
  }
  const unresolved_events = await countUnresolvedEvents(services, operator);
  const { models: live } = services.operation;
  const upstreams = live.observed().flatMap(({ id, upstreams: members }) =>
    members()
      .filter(({ breaker }) => breaker === 'open' || breaker === 'half_open')
      .map(({ address }) => ({ model_id: id, address })),
  );
  // A model whose upstreams fail waits once, as these.
  const behind_upstreams = new Set(upstreams.map(({ model_id }) => model_id));
  const models = live
    .states()
    .flatMap(({ id, load_error }) =>
      load_error === undefined || behind_upstreams.has(id) ? [] : [{ id, error: load_error }],
    );
  const failures = failuresOf(services, operator);
  const waiting = [by_hand, models, upstreams].reduce((sum, { length }) => sum + length, 0);
  const failed = [failures.backups, failures.problems].filter(({ count }) => count > 0).length;
  const count = waiting + unresolved_events + failed;
  return { count, payments, unresolved_events, models, upstreams, ...failures };
}

/** Returns the failures of the last 24 hours: backups that failed or do not end, and all others. */
function failuresOf({ problems, clock }: ConsoleServices, operator: Actor) {
  const since_ms = clock.now_ms() - DAY_MS;
  const recent = listRecentProblems(problems, operator).filter(
    ({ at_ms }) => at_ms !== null && at_ms >= since_ms,
  );
  const failures = (of_backups: boolean): Static<typeof Failures> => {
    const found = recent.filter(({ step }) => (step === 'backup') === of_backups);
    return { count: found.length, newest_at_ms: found[0]?.at_ms ?? null };
  };
  return { backups: failures(true), problems: failures(false) };
}
