import type { Log } from '../log/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Clock } from '../time/clock.ts';
import type { RequestContext } from './context.ts';

/** Writes one line to the log, of metadata only. */
export function logRequest(
  { log, clock }: { readonly log: Pick<Log, 'request'>; readonly clock: Clock },
  { method }: Pick<Request, 'method'>,
  context: RequestContext,
  status: number,
): void {
  const { request_id, path, started_ms, code, caller, client_address } = context;
  log.request({
    request_id,
    method,
    path: path?.path ?? null,
    status,
    duration_ms: clock.monotonic_ms() - started_ms,
    code,
    model: context.model ?? null,
    mode: context.mode ?? null,
    input_tokens: context.input_tokens ?? null,
    ...(context.is_replayed === true ? { is_replayed: true } : {}),
    trace_id: context.span?.trace_id ?? null,
    client_address: client_address === '' ? null : client_address,
    organization_id: caller?.organization_id ?? null,
    project_id: caller?.project_id ?? null,
    key_id: caller?.key_id ?? null,
  });
}

/**
 * Counts an answered request, and sends its span. That of a client that has spent its budget of refusals is not sent:
 * nobody lists such a request.
 */
export function observeRequest(
  { metrics }: { readonly metrics: Pick<Metrics, 'requestAnswered'> },
  context: RequestContext,
  status: number,
): void {
  const {
    request_id,
    path,
    endpoint = path?.path ?? null,
    model = null,
    mode = null,
    code,
    caller,
  } = context;
  const organization_id = caller?.organization_id ?? null;
  metrics.requestAnswered({ endpoint, model, mode, code, status, organization_id });
  if (context.is_over_budget) return;
  context.span?.end({
    request_id,
    status,
    code,
    organization_id,
    project_id: caller?.project_id ?? null,
    key_id: caller?.key_id ?? null,
  });
}
