import { Elysia } from 'elysia';
import type { ConsoleServices } from '../services.ts';
import { readTrail, TrailPage, TrailQuery } from '../trail.ts';
import { auditRoutes } from './audit.ts';
import { liveRoutes } from './live.ts';
import { modelRoutes } from './models.ts';
import { operatorOnly } from './operator-only.ts';
import { organizationRoutes } from './organizations.ts';
import { problemRoutes } from './problems.ts';

/** Returns all routes for the operators of the service. */
export function operatorRoutes(services: ConsoleServices) {
  return new Elysia({ prefix: '/operator' })
    .use(organizationRoutes(services))
    .use(modelRoutes(services))
    .use(liveRoutes(services))
    .use(auditRoutes(services))
    .use(problemRoutes(services))
    .use(serviceTrailRoutes(services));
}

/** Returns the route of operators' acts on the service as a whole, newest first. */
function serviceTrailRoutes(services: ConsoleServices) {
  return new Elysia()
    .use(operatorOnly(services))
    .get('/trail', ({ operator, query }) => readTrail(services, operator, null, query), {
      query: TrailQuery,
      response: TrailPage,
    });
}
