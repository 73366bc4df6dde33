import { Elysia } from 'elysia';
import { AuditLogPage, AuditLogQuery, readAuditLog } from '../audit-log.ts';
import type { ConsoleServices } from '../services.ts';
import { auditRoutes } from './audit.ts';
import { inboxRoutes } from './inbox.ts';
import { liveRoutes } from './live.ts';
import { modelRoutes } from './models.ts';
import { operatorOnly } from './operator-only.ts';
import { organizationRoutes } from './organizations.ts';
import { problemRoutes } from './problems.ts';

/** Returns all routes for the operators of the service. */
export function operatorRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/operator' })
    .use(inboxRoutes(services))
    .use(organizationRoutes(services))
    .use(modelRoutes(services))
    .use(liveRoutes(services))
    .use(auditRoutes(services))
    .use(problemRoutes(services))
    .use(serviceAuditLogRoutes(services));
}

/** Returns the route of operators' acts on the service as a whole, newest first. */
function serviceAuditLogRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(operatorOnly(services))
    .get('/trail', ({ operator, query }) => readAuditLog(services, operator, null, query), {
      query: AuditLogQuery,
      response: AuditLogPage,
    });
}
