import { isClientGone } from '../decisions/cut-requests.ts';
import type { Log } from '../log/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Clock } from '../time/clock.ts';
import type { RequestContext } from './context.ts';

/** The status, in log and trace, of a request whose client went away before its answer: nginx calls it so, too. */
const CLIENT_GONE = { status: 499, code: null };

/**
 * Returns the recorded status and code of a request. The failure of one that its client left is the end of its work,
 * and no fault of the service: nobody got it.
 */
function recorded(
  { signal }: Pick<Request, 'signal'>,
  { code }: Pick<RequestContext, 'code'>,
  status: number,
): { readonly status: number; readonly code: string | null } {
  return status >= 500 && isClientGone(signal) ? CLIENT_GONE : { status, code };
}

/** Writes one line to the log, of metadata only. */
export function logRequest(
  { log, clock }: { readonly log: Pick<Log, 'request'>; readonly clock: Clock },
  request: Pick<Request, 'method' | 'signal'>,
  context: RequestContext,
  status: number,
): void {
  const { request_id, path, started_ms, caller, client_address } = context;
  log.request({
    request_id,
    method: request.method,
    path: path?.path ?? null,
    ...recorded(request, context, status),
    duration_ms: clock.monotonic_ms() - started_ms,
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
 * Counts an answered request, and sends its span. One that its client left got no response, and is not counted. The span
 * of one whose client has spent its budget of refusals is not sent: nobody lists such a request.
 */
export function observeRequest(
  { metrics }: { readonly metrics: Pick<Metrics, 'requestAnswered'> },
  request: Pick<Request, 'signal'>,
  context: RequestContext,
  status: number,
): void {
  const { request_id, path, endpoint = path?.path ?? null, model = null, mode = null, caller } = context;
  const organization_id = caller?.organization_id ?? null;
  const ending = recorded(request, context, status);
  if (ending !== CLIENT_GONE) {
    metrics.requestAnswered({ endpoint, model, mode, ...ending, organization_id });
  }
  if (context.is_over_budget) return;
  context.span?.end({
    request_id,
    ...ending,
    organization_id,
    project_id: caller?.project_id ?? null,
    key_id: caller?.key_id ?? null,
  });
}
