import { type Static, Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { requirePermission } from '../../access/permissions.ts';
import { readOrganization } from '../../accounts/organizations.ts';
import { limitsFor, tierInForce } from '../../contract/tiers.ts';
import { ERRORS, isErrorCode } from '../../errors/errors.ts';
import type { RateLimits } from '../../limits/rate-status.ts';
import type { CountedRefusals } from '../../observability/refusal-counts.ts';
import { answerOf, listOf, nullable, OrganizationParams, Time } from './schemas.ts';
import type { ConsoleServices } from './services.ts';
import { signedIn } from './signed-in.ts';

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

/** Returns the routes of the refused requests of the last 24 hours, and of the limits that are in use now. */
export function recentUsageRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(signedIn(services))
    .get(
      '/refusals',
      async ({ actor, params: { organization_id } }) => {
        await requirePermission(services.store, actor, organization_id, 'see');
        return { items: services.operation.activity.refusalsOf(organization_id).map(explained) };
      },
      { params: OrganizationParams, response: answerOf({ items: listOf(Refused) }) },
    )
    .get(
      '/limits',
      async ({ actor, params: { organization_id } }) => {
        await requirePermission(services.store, actor, organization_id, 'see');
        const organization = await readOrganization(services.store, organization_id);
        const limits = limitsFor(tierInForce(organization, services.clock.now_ms()), organization);
        return { limits: limits === null ? null : await usedOf(services, organization_id, limits) };
      },
      {
        params: OrganizationParams,
        response: answerOf({ limits: nullable(answerOf({ requests: UsedLimit, tokens: UsedLimit })) }),
      },
    );
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
