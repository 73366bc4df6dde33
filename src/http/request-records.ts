import { isClientGone } from '../decisions/cut-requests.ts';
import type { Log } from '../log/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Clock } from '../time/clock.ts';
import type { RequestContext } from './context.ts';

/** The parts that record requests. */
interface RecordingServices {
  readonly log: Pick<Log, 'request'>;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'requestAnswered'>;
}

/** The status, in log and trace, of a request whose client went away before its answer: nginx calls it so, too. */
const CLIENT_GONE = { status: 499, code: null };

/**
 * Writes one line of metadata to the log, counts the request, and sends its span. The failure of one that its client
 * left is the end of its work, and no fault of the service. Nobody got it, and it is not counted. One whose client has
 * spent its budget of refusals is only counted, because nobody lists such a request.
 */
export function recordRequest(
  { log, clock, metrics }: RecordingServices,
  { method, signal }: Pick<Request, 'method' | 'signal'>,
  context: RequestContext,
  status: number,
): void {
  const { request_id, path, model = null, mode = null, caller, client_address } = context;
  const { endpoint = path?.path ?? null } = context;
  const organization_id = caller?.organization_id ?? null;
  const ending = status >= 500 && isClientGone(signal) ? CLIENT_GONE : { status, code: context.code };
  if (ending !== CLIENT_GONE) {
    metrics.requestAnswered({ endpoint, model, mode, ...ending, organization_id });
  }
  if (context.is_over_budget) return;
  const ids = { organization_id, project_id: caller?.project_id ?? null, key_id: caller?.key_id ?? null };
  log.request({
    request_id,
    method,
    path: path?.path ?? null,
    ...ending,
    duration_ms: clock.monotonic_ms() - context.started_ms,
    model,
    mode,
    input_tokens: context.input_tokens ?? null,
    ...(context.is_replayed === true ? { is_replayed: true } : {}),
    trace_id: context.span?.trace_id ?? null,
    client_address: client_address === '' ? null : client_address,
    ...ids,
  });
  context.span?.end({ request_id, ...ending, ...ids });
}
