import type { BodyBudget } from '../limits/body-budget.ts';
import type { Log } from '../log/log.ts';
import type { Readiness } from '../observability/readiness.ts';
import type { Tracing } from '../observability/tracing.ts';
import type { UsageReader } from '../store/usage-reader.ts';
import { batchRoute } from './batch-route.ts';
import { type DecisionRouteServices, decisionRoutes } from './decision-routes.ts';
import { documentRoutes } from './document-routes.ts';
import type { Draining } from './draining.ts';
import { healthRoutes } from './health-routes.ts';
import { mcpRoute } from './mcp-route.ts';
import { modelRoutes } from './model-routes.ts';
import { referenceRoutes } from './reference-routes.ts';
import type { Route } from './route.ts';
import type { Site } from './site.ts';
import { tokenRoute } from './token-routes.ts';
import { type Payments, webhookRoute } from './webhook-routes.ts';

/** The parts that the routes need. */
export interface RouteServices extends DecisionRouteServices {
  /** The provider whose webhooks are accepted; null where only the operator gives credit. */
  readonly payments: Payments | null;
  readonly site: Site;
  readonly log: Pick<Log, 'request' | 'error' | 'warn' | 'info'>;
  readonly tracing: Pick<Tracing, 'begin'>;
  /** Begins when the service is being stopped. */
  readonly draining: Draining;
  /** The memory for lines of batches that are being answered. */
  readonly batch_lines: BodyBudget;
  readonly reader: UsageReader;
  readonly readiness: Pick<Readiness, 'failing' | 'speeds'>;
}

/**
 * Returns every route of the service. Paths, methods, `Allow`, 404, 405 and the API reference, itself
 * included, all come from this list.
 */
export function routesOf(services: RouteServices): readonly Route[] {
  const routes = [
    ...decisionRoutes(services),
    batchRoute(services),
    tokenRoute(services),
    ...modelRoutes(services),
    mcpRoute(services),
    webhookRoute(services),
    ...healthRoutes(services),
  ];
  return [...routes, ...documentRoutes(routes, services.site), ...referenceRoutes(routes, services.site)];
}
