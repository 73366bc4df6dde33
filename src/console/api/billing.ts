import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { firstSteps } from '../../accounts/first-steps.ts';
import { setCreditAlert } from '../../alerts/credit-alert.ts';
import { oneOf } from '../../json/one-of.ts';
import { billing, creditMovements } from '../../payments/billing.ts';
import { cancelTopUp, startTopUp } from '../../payments/credit.ts';
import { manualProvider } from '../../payments/manual.ts';
import type { Payment } from '../../store/payment-records.ts';
import {
  answerOf,
  Done,
  done,
  Id,
  listOf,
  Micros,
  nullable,
  OrganizationParams,
  only,
  queryInteger,
  Time,
} from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

/** The lines of one page of the history. */
const PAGE_LINES = 50;

export const Limits = answerOf({
  requests_per_minute: Type.Integer(),
  tokens_per_minute: Type.Integer(),
  questions_per_request: Type.Integer(),
});

export const PaymentAnswer = answerOf({
  id: Type.String(),
  kind: oneOf(['top_up', 'refund']),
  is_reversal: Type.Boolean({ description: 'A top-up that takes a refund back, such as a won dispute.' }),
  provider: Type.String(),
  amount_micros: Micros,
  status: Type.String(),
  created_at_ms: Time,
  settled_at_ms: nullable(Time),
});

const NextTier = answerOf({
  tier: Type.Integer(),
  paid_micros: Micros,
  days: Type.Integer(),
  limits: nullable(Limits),
  top_up_max_micros: Micros,
  missing_micros: Micros,
  days_passed_at_ms: nullable(Time),
});

const TopUpTerms = answerOf({
  least_micros: Micros,
  most_micros: Micros,
  is_manual: Type.Boolean({
    description: 'The operator confirms each payment; there is no checkout to go to.',
  }),
  is_allowed: Type.Boolean({ description: 'Whether the role of who asks allows a top-up.' }),
});

const Billing = answerOf({
  credit_micros: Micros,
  held_micros: Micros,
  open_holds: Type.Integer(),
  available_micros: Micros,
  paid_micros: Micros,
  first_paid_at_ms: nullable(Time),
  tier: Type.Integer(),
  minimum_tier: nullable(Type.Integer()),
  limits: nullable(Limits),
  next_tier: nullable(NextTier),
  credit_alert_micros: nullable(Micros),
  tier_changes: listOf(
    answerOf({
      id: Type.Integer(),
      from_tier: Type.Integer(),
      to_tier: Type.Integer(),
      reason: Type.String(),
      created_at_ms: Time,
    }),
  ),
  top_up: TopUpTerms,
  pending: listOf(PaymentAnswer),
  refunds: listOf(PaymentAnswer),
});

const Movement = answerOf({
  kind: oneOf(['top_up', 'refund', 'charge', 'charges']),
  entry_id: Type.Integer(),
  at_ms: Time,
  amount_micros: Micros,
  balance_micros: Micros,
  charges: Type.Integer(),
  project_id: nullable(Type.String()),
  request_id: nullable(Type.String()),
  payment_id: nullable(Type.String()),
  provider: nullable(Type.String()),
  refunds_payment_id: nullable(
    Type.String({ description: 'The payment of a refund, or of one that a top-up takes back.' }),
  ),
});

/** The start of the next page of the history. */
const Place = answerOf({ entry_id: Type.Integer(), balance_micros: Micros });

/**
 * Returns the routes of an organization's credit: the balance, its alert, its movements, top-ups, and the first steps.
 */
export function billingRoutes(services: ConsoleServices) {
  const provider = () => services.payments?.provider ?? manualProvider;
  return new Elysia({ prefix: '/organizations/:organization_id' })
    .use(signedIn(services))
    .get(
      '/billing',
      async ({ actor, params: { organization_id } }) =>
        shown(await billing(services, actor, provider(), organization_id)),
      { params: OrganizationParams, response: Billing },
    )
    .get(
      '/movements',
      async ({ actor, params: { organization_id }, query }) => {
        const { by = 'day', entry_id, balance_micros } = query;
        const before =
          entry_id === undefined || balance_micros === undefined ? undefined : { entry_id, balance_micros };
        return await creditMovements(services, actor, {
          organization_id,
          charges_by: by,
          limit: PAGE_LINES,
          before,
        });
      },
      {
        params: OrganizationParams,
        query: Type.Object({
          by: Type.Optional(oneOf(['day', 'request'])),
          entry_id: Type.Optional(queryInteger()),
          balance_micros: Type.Optional(queryInteger()),
        }),
        response: answerOf({ items: listOf(Movement), next: nullable(Place) }),
      },
    )
    .post(
      '/top-ups',
      async ({ actor, params: { organization_id }, body: { amount_micros } }) => {
        const top_up = await startTopUp(services, actor, provider(), { organization_id, amount_micros });
        return { payment_id: top_up.payment_id, checkout_url: top_up.checkout.url };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ amount_micros: Micros }),
        response: answerOf({
          payment_id: Type.String(),
          checkout_url: nullable(
            Type.String({ description: 'Where to pay; null where the operator says how.' }),
          ),
        }),
      },
    )
    .post('/top-ups/:payment_id/cancel', ({ actor, params }) => done(cancelTopUp(services, actor, params)), {
      params: Type.Composite([OrganizationParams, Type.Object({ payment_id: Id })]),
      response: Done,
    })
    .patch(
      '/credit-alert',
      ({ actor, params, body: { credit_alert_micros } }) =>
        done(setCreditAlert(services, actor, { ...params, credit_alert_micros })),
      {
        params: OrganizationParams,
        body: Type.Object({ credit_alert_micros: nullable(Micros) }),
        response: Done,
      },
    )
    .get(
      '/first-steps',
      async ({ actor, params: { organization_id } }) => await firstSteps(services, actor, organization_id),
      {
        params: OrganizationParams,
        response: answerOf({
          credit_added_at_ms: nullable(Time),
          key_created_at_ms: nullable(Time),
          first_answer_at_ms: nullable(Time),
        }),
      },
    );
}

function shown(facts: Awaited<ReturnType<typeof billing>>): Static<typeof Billing> {
  return only(Billing, {
    ...facts,
    next_tier: facts.next_tier === null ? null : only(NextTier, facts.next_tier),
    top_up: only(TopUpTerms, facts.top_up),
    pending: facts.pending.map(shownPayment),
    refunds: facts.refunds.map(shownPayment),
  });
}

export function shownPayment(payment: Payment): Static<typeof PaymentAnswer> {
  const is_reversal = payment.kind === 'top_up' && payment.refunds_payment_id !== null;
  return only(PaymentAnswer, { ...payment, is_reversal });
}
