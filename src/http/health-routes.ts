import type { WritableJson } from '../json/write-json.ts';
import type { Readiness } from '../observability/readiness.ts';
import { jsonResponse } from './responses.ts';
import { defineRoute, type Route } from './route.ts';

interface HealthServices {
  readonly readiness: Pick<Readiness, 'failing' | 'speeds'>;
}

/** A cached response would be outdated. */
const HEADERS = { 'cache-control': 'no-store' };

const UNLISTED = {
  method: 'GET',
  refusals: [],
  operation: null,
  is_unlisted: true,
  answers_while_draining: true,
} as const;

/**
 * Returns the routes `GET /healthz` and `GET /readyz`, for monitoring, without a key. They are outside of the
 * API and its errors, of log and metrics, and of the budgets of refusals. `GET /health` is `/readyz` for gateways that
 * ask inference servers so: those of llama-server and vLLM say there whether the model can be asked.
 */
export function healthRoutes({ readiness }: HealthServices): readonly Route[] {
  return [
    defineRoute({
      ...UNLISTED,
      path: '/healthz',
      handle: (_, { request_id }) => json(request_id, 200, { status: 'ok' }),
    }),
    readinessRoute('/readyz', 'ready', readiness),
    readinessRoute('/health', 'ok', readiness),
  ];
}

function readinessRoute(path: string, ready: string, readiness: HealthServices['readiness']): Route {
  return defineRoute({
    ...UNLISTED,
    path,
    handle: async (_, { request_id }) => {
      const failing = await readiness.failing();
      const models = readiness.speeds();
      return failing.length === 0
        ? json(request_id, 200, { status: ready, ...(models.length === 0 ? {} : { models }) })
        : json(request_id, 503, { status: 'not_ready', failing });
    },
  });
}

function json(request_id: string, status: number, body: WritableJson): Response {
  return jsonResponse(request_id, status, body, HEADERS);
}
