import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import type { Actor } from '../../../access/actor.ts';
import { listMembers } from '../../../accounts/members.ts';
import {
  type OrganizationCursor,
  type OrganizationOverview,
  organizationOverview,
  searchOrganizations,
} from '../../../accounts/organization-search.ts';
import { listPendingPayments, topUpRange } from '../../../payments/credit.ts';
import { AuditLogPage, AuditLogQuery, readAuditLog } from '../audit-log.ts';
import { Limits, PaymentAnswer, shownPayment } from '../billing.ts';
import { cursorAt, placeOf } from '../cursor.ts';
import { MemberFields } from '../members.ts';
import { answerOf, listOf, Micros, nullable, OrganizationParams, only, Time } from '../schemas.ts';
import type { ConsoleServices } from '../services.ts';
import { operatorOnly } from './operator-only.ts';
import { organizationChangeRoutes } from './organization-changes.ts';
import { organizationCreditRoutes } from './organization-credit.ts';

/** The lines of one page of the search. */
const PAGE_LINES = 50;

const Dedicated = answerOf({
  minimum_tier: nullable(Type.Integer()),
  requests_per_minute: nullable(Type.Integer()),
  tokens_per_minute: nullable(Type.Integer()),
  questions_per_request: nullable(Type.Integer()),
  top_up_max_micros: nullable(Micros),
});

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
  dedicated: Dedicated,
  suspended_at_ms: nullable(Time),
  members: Type.Integer(),
  last_used_at_ms: nullable(Time),
};
const OverviewAnswer = answerOf(Overview);

const Member = answerOf(MemberFields);

const Whole = answerOf({
  ...Overview,
  top_up: answerOf({ least_micros: Micros, most_micros: Micros }),
  pending: listOf(PaymentAnswer),
  member_list: listOf(Member),
});

/**
 * Returns the routes of all organizations: search, credit by hand, limits, suspension, members and audit
 * log of each.
 */
export function organizationRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/organizations' })
    .use(readingRoutes(services))
    .use(organizationCreditRoutes(services))
    .use(organizationChangeRoutes(services));
}

/** Returns the routes that change nothing: the search, and all of one organization with its audit log. */
function readingRoutes(services: ConsoleServices) {
  return new Elysia()
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
    );
}

async function whole(
  services: ConsoleServices,
  operator: Actor,
  organization_id: string,
): Promise<Static<typeof Whole>> {
  const overview = await organizationOverview(services, operator, organization_id);
  const { least, most } = topUpRange(overview, services.clock.now_ms());
  const pending = await listPendingPayments(services, operator, { organization_id });
  const members = await listMembers(services, operator, organization_id);
  return {
    ...shown(overview),
    top_up: { least_micros: least, most_micros: most },
    pending: pending.map(shownPayment),
    member_list: members.map((member) => only(Member, member)),
  };
}

function shown(organization: OrganizationOverview): Static<typeof OverviewAnswer> {
  const is_personal = organization.personal_user_id !== null;
  const dedicated = only(Dedicated, organization);
  return only(OverviewAnswer, { ...organization, is_personal, dedicated });
}

function cursorOf(text: string): OrganizationCursor {
  const { time_ms, id } = placeOf(text, 'The list has no such place.');
  return { id, created_at_ms: time_ms };
}
