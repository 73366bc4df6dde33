import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Actor } from '../../../access/actor.ts';
import { AccountError } from '../../../access/errors.ts';
import { invite } from '../../../accounts/invitations.ts';
import { listMembers } from '../../../accounts/members.ts';
import {
  type OrganizationCursor,
  type OrganizationOverview,
  organizationOverview,
  searchOrganizations,
} from '../../../accounts/organization-search.ts';
import { setSuspended, setTierSettings } from '../../../accounts/organizations.ts';
import {
  confirmManualPayment,
  creditByHand,
  listPendingPayments,
  refundByHand,
  topUpRange,
} from '../../../payments/credit.ts';
import { AuditLogPage, AuditLogQuery, readAuditLog } from '../audit-log.ts';
import { Limits, PaymentAnswer, shownPayment } from '../billing.ts';
import { cursorAt, placeOf } from '../cursor.ts';
import {
  answerOf,
  Done,
  done,
  Email,
  EntryId,
  Id,
  listOf,
  Micros,
  nullable,
  OrganizationParams,
  RoleSchema,
  Time,
} from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';

/** The lines of one page of the search. */
const PAGE_LINES = 50;

const Overview = {
  id: Type.String(),
  name: Type.String(),
  is_personal: Type.Boolean(),
  created_at_ms: Time,
  credit_micros: Micros,
  held_micros: Micros,
  open_holds: Type.Integer(),
  paid_micros: Micros,
  first_paid_at_ms: nullable(Time),
  tier_in_force: Type.Integer(),
  limits: nullable(Limits),
  dedicated: answerOf({
    minimum_tier: nullable(Type.Integer()),
    requests_per_minute: nullable(Type.Integer()),
    tokens_per_minute: nullable(Type.Integer()),
    questions_per_request: nullable(Type.Integer()),
    top_up_max_micros: nullable(Micros),
  }),
  suspended_at_ms: nullable(Time),
  members: Type.Integer(),
  last_used_at_ms: nullable(Time),
};
const OverviewAnswer = answerOf(Overview);

const Whole = answerOf({
  ...Overview,
  top_up: answerOf({ least_micros: Micros, most_micros: Micros }),
  pending: listOf(PaymentAnswer),
  member_list: listOf(
    answerOf({
      user_id: Type.String(),
      email: Type.String(),
      name: Type.String(),
      role: RoleSchema,
      created_at_ms: Time,
    }),
  ),
});

const Balance = answerOf({ credit_micros: Micros, tier: Type.Integer() });

/** An operator's limit: absent leaves it unchanged, null restores the tier's value. The rule bounds it. */
const Limit = Type.Optional(nullable(Type.Integer()));

/**
 * Returns the routes of all organizations: search, credit by hand, limits, suspension, members and audit
 * log of each.
 */
export function organizationRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations' })
    .use(operatorOnly(services))
    .get(
      '/',
      async ({ operator, query: { text = '', owner, after } }) => {
        const cursor = after === undefined ? null : cursorOf(after);
        const page = await searchOrganizations(services, operator, {
          text,
          without_owner: owner === 'none',
          cursor,
          limit: PAGE_LINES,
        });
        const { next } = page;
        return {
          items: page.items.map(shown),
          next: next === null ? null : cursorAt({ time_ms: next.created_at_ms, id: next.id }),
        };
      },
      {
        query: Type.Object({
          text: Type.Optional(Type.String({ maxLength: 320 })),
          owner: Type.Optional(Type.Literal('none', { description: 'Only those that nobody owns.' })),
          after: Type.Optional(Type.String({ maxLength: 100 })),
        }),
        response: answerOf({ items: listOf(OverviewAnswer), next: nullable(Type.String()) }),
      },
    )
    .get(
      '/:organization_id',
      async ({ operator, params: { organization_id } }) => await whole(services, operator, organization_id),
      { params: OrganizationParams, response: Whole },
    )
    .get(
      '/:organization_id/trail',
      ({ operator, params: { organization_id }, query }) =>
        readAuditLog(services, operator, organization_id, query),
      { params: OrganizationParams, query: AuditLogQuery, response: AuditLogPage },
    )
    .post(
      '/:organization_id/credit',
      async ({ operator, params: { organization_id }, body: { entry_id, amount_micros, is_forced } }) => {
        const given = { organization_id, amount_micros, entry_id, within_range: !is_forced };
        const { credit_micros, tier } = await creditByHand(services, operator, given);
        return { credit_micros, tier };
      },
      {
        params: OrganizationParams,
        body: Type.Object({
          entry_id: EntryId,
          amount_micros: Type.Integer(),
          is_forced: Type.Boolean({ description: "Also outside of the tier's range of one top-up." }),
        }),
        response: Balance,
      },
    )
    .post(
      '/:organization_id/refund',
      async ({ operator, params: { organization_id }, body: { entry_id, amount_micros } }) => {
        const given = { organization_id, amount_micros, entry_id };
        const { credit_micros, tier } = await refundByHand(services, operator, given);
        return { credit_micros, tier };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ entry_id: EntryId, amount_micros: Type.Integer() }),
        response: Balance,
      },
    )
    .post(
      '/:organization_id/payments/:payment_id/confirm',
      async ({ operator, params: { organization_id, payment_id } }) => {
        const payment = await services.store.payments.findPayment(payment_id);
        if (payment?.organization_id !== organization_id) {
          throw new AccountError('not_found', 'There is no such payment.');
        }
        const confirmed = await confirmManualPayment(services, operator, payment_id);
        return shownPayment(confirmed);
      },
      { params: Type.Object({ organization_id: Id, payment_id: Id }), response: PaymentAnswer },
    )
    .patch(
      '/:organization_id/limits',
      ({ operator, params: { organization_id }, body }) =>
        done(setTierSettings(services, operator, organization_id, body)),
      {
        params: OrganizationParams,
        body: Type.Object(
          {
            minimum_tier: Limit,
            requests_per_minute: Limit,
            tokens_per_minute: Limit,
            questions_per_request: Limit,
            top_up_max_micros: Limit,
          },
          { additionalProperties: false },
        ),
        response: Done,
      },
    )
    .post(
      '/:organization_id/owner',
      async ({ operator, session, params: { organization_id }, body: { email } }) => {
        services.sign_in.countInvitation(session, email);
        const invitation = await invite(services, operator, { organization_id, email, role: 'owner' });
        services.mailInvitation(invitation, session.name);
        return { id: invitation.id };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ email: Email }),
        response: answerOf({ id: Type.String({ description: 'Of the invitation that was mailed.' }) }),
      },
    )
    .post(
      '/:organization_id/suspension',
      async ({ operator, params: { organization_id }, body: { is_suspended } }) => {
        const given = { organization_id, is_suspended };
        const { suspended_at_ms } = await setSuspended(services, operator, given);
        return { suspended_at_ms };
      },
      {
        params: OrganizationParams,
        body: Type.Object({ is_suspended: Type.Boolean() }),
        response: answerOf({ suspended_at_ms: nullable(Time) }),
      },
    );
}

async function whole(
  services: ConsoleServices,
  operator: Actor,
  organization_id: string,
): Promise<Static<typeof Whole>> {
  const overview = await organizationOverview(services, operator, organization_id);
  const { least, most } = topUpRange(overview, services.clock.now_ms());
  const pending = await listPendingPayments(services, operator, organization_id);
  const members = await listMembers(services, operator, organization_id);
  return {
    ...shown(overview),
    top_up: { least_micros: least, most_micros: most },
    pending: pending.map(shownPayment),
    member_list: members.map(({ user_id, email, name, role, created_at_ms }) => ({
      user_id,
      email,
      name,
      role,
      created_at_ms,
    })),
  };
}

function shown(organization: OrganizationOverview): Static<typeof OverviewAnswer> {
  const { id, name, personal_user_id, created_at_ms, credit_micros, held_micros, open_holds } = organization;
  const { paid_micros, first_paid_at_ms, tier_in_force, limits, suspended_at_ms } = organization;
  const { minimum_tier, requests_per_minute, tokens_per_minute } = organization;
  const { questions_per_request, top_up_max_micros, members, last_used_at_ms } = organization;
  return {
    id,
    name,
    is_personal: personal_user_id !== null,
    created_at_ms,
    credit_micros,
    held_micros,
    open_holds,
    paid_micros,
    first_paid_at_ms,
    tier_in_force,
    limits,
    dedicated: {
      minimum_tier,
      requests_per_minute,
      tokens_per_minute,
      questions_per_request,
      top_up_max_micros,
    },
    suspended_at_ms,
    members,
    last_used_at_ms,
  };
}

function cursorOf(text: string): OrganizationCursor {
  const { time_ms, id } = placeOf(text, 'The list has no such place.');
  return { id, created_at_ms: time_ms };
}
