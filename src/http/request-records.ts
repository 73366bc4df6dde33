import { isLeftByClient } from '../errors/abort-reasons.ts';
import type { Refusal } from '../errors/errors.ts';
import type { AttemptBudget, AttemptBudgets } from '../limits/attempt-budgets.ts';
import type { Log, RequestLine } from '../log/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type Clock, MS_PER_S } from '../time/clock.ts';
import type { LoggedRefusal, RequestContext } from './context.ts';

/** The parts that record requests. */
interface RecordingServices {
  readonly log: Pick<Log, 'request'>;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, 'requestAnswered'>;
}

/** The status, in log and trace, of a request whose client went away before its answer: nginx calls it so, too. */
const CLIENT_GONE_STATUS = 499;

/**
 * The log lines that an address may cause by refusals without a route: so many at once, and one more after each
 * `refill_ms`. Bytes that are not HTTP cost a client nothing. All are in the metrics.
 */
export const PORT_REFUSAL_LINES: AttemptBudget = { at_once: 60, refill_ms: MS_PER_S };

/** The lines of each address. */
export type PortRefusalLines = AttemptBudgets<'line'>;

/**
 * Writes one line of metadata to the log, counts the request, and sends its span. A refusal is recorded with its own
 * status, whatever that of the response is: an agent reads of one in a response of 200. The failure of one that its client
 * left is the end of its work, and no fault of the service. Nobody got it, and it is not counted. A client that ended its
 * sending within its body counts as gone, because one that was killed looks the same. One whose client has spent its
 * budget of refusals is only counted, because nobody lists such a request.
 */
export function recordRequest(
  { log, clock, metrics }: RecordingServices,
  { method, signal }: Pick<Request, 'method' | 'signal'>,
  context: RequestContext,
  answered_status: number,
): void {
  const { request_id, path, model = null, mode = null, caller, client_address } = context;
  const { endpoint = path?.path ?? null } = context;
  const organization_id = caller?.organization_id ?? null;
  const status = context.refusal?.status ?? answered_status;
  const is_client_gone = isLeftByClient({ ...context.refusal, status }, signal);
  const refusal = is_client_gone ? null : context.refusal;
  const ending = { status: is_client_gone ? CLIENT_GONE_STATUS : status, code: refusal?.code ?? null };
  if (!is_client_gone) {
    metrics.requestAnswered({ endpoint, model, mode, ...ending, organization_id });
  }
  if (context.is_over_budget) return;
  const ids = { organization_id, project_id: caller?.project_id ?? null, key_id: caller?.key_id ?? null };
  log.request({
    request_id,
    method,
    path: path?.path ?? null,
    ...ending,
    ...whyRefused(refusal),
    duration_ms: clock.monotonic_ms() - context.started_ms,
    model,
    mode,
    input_tokens: context.input_tokens ?? null,
    ...(context.is_replayed === true ? { is_replayed: true } : {}),
    trace_id: context.span?.trace_id ?? null,
    client_address: addressOrNull(client_address),
    ...ids,
  });
  context.span?.end({ request_id, ...ending, ...ids });
}

/** Counts a refusal without a route, and writes its line to the log where the client has one left. */
export function recordPortRefusal(
  { log, clock, metrics }: RecordingServices,
  lines: PortRefusalLines,
  request_id: string,
  refusal: Refusal,
  client_address: string,
): void {
  const { code, status } = refusal;
  const unknown = { model: null, mode: null, organization_id: null };
  metrics.requestAnswered({ endpoint: null, ...unknown, code, status });
  if (lines.spend('line', client_address, clock.monotonic_ms()) > 0) return;
  log.request({
    ...{ request_id, method: null, path: null, status, code },
    ...whyRefused(refusal),
    ...{ duration_ms: 0, ...unknown, input_tokens: null, trace_id: null, project_id: null, key_id: null },
    client_address: addressOrNull(client_address),
  });
}

/** Returns what the log says of a refusal beside its code. */
function whyRefused(refusal: LoggedRefusal | null): Pick<RequestLine, 'reason' | 'retry_after_s'> {
  const { reason = null, retry_after_s = null } = refusal ?? {};
  return { ...(reason === null ? {} : { reason }), ...(retry_after_s === null ? {} : { retry_after_s }) };
}

function addressOrNull(client_address: string): string | null {
  return client_address === '' ? null : client_address;
}
