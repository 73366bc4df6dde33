import type { DecisionServices } from '../decisions/ports.ts';
import type { Log } from '../ops/log.ts';
import type { Metrics } from '../ops/metrics.ts';
import type { Readiness } from '../ops/readiness.ts';
import type { UsageReader } from '../usage/usage-reader.ts';
import type { BodyLimits } from './body-bytes.ts';
import { decisionRoutes } from './decision-routes.ts';
import { documentRoutes } from './document-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { mcpRoute } from './mcp-route.ts';
import { modelRoutes } from './model-routes.ts';
import { referenceRoutes } from './reference-routes.ts';
import type { Route } from './route.ts';
import type { Site } from './site.ts';
import { tokenRoute } from './token-routes.ts';
import { type Payments, webhookRoute } from './webhook-routes.ts';

/** The parts that the routes need. */
export interface RouteServices extends DecisionServices {
  /** The provider whose webhooks are accepted; null where only the operator gives credit. */
  readonly payments: Payments | null;
  readonly site: Site;
  readonly log: Pick<Log, 'error' | 'warn' | 'info'>;
  readonly body_limits: BodyLimits;
  readonly metrics: Metrics;
  readonly reader: UsageReader;
  readonly readiness: Pick<Readiness, 'failing'>;
}

/**
 * Returns every route of the service. Paths, methods, `Allow`, 404, 405 and the API reference, itself
 * included, all come from this list.
 */
export function routesOf(services: RouteServices): readonly Route[] {
  const routes = [
    ...decisionRoutes(services),
    tokenRoute(services),
    ...modelRoutes(services),
    mcpRoute(services),
    webhookRoute(services),
    ...healthRoutes(services),
  ];
  return [...routes, ...documentRoutes(routes, services.site), ...referenceRoutes(routes, services.site)];
}
