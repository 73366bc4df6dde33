import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Problems } from '../problems/problems.ts';
import { listen } from './listen.ts';

/** Who reads metrics: a Prometheus, a `tds top`, a curl. */
const CONNECTIONS_MAX = 32;
const REQUEST_MS = 5_000;
const IDLE_MS = 75_000;

const PATH = '/metrics';

/** What is read there. */
export interface MetricsText {
  readonly content_type: string;
  text(): Promise<string>;
}

export interface MetricsListener {
  /** Where the metrics are. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Serves metrics at `/metrics`, on a listener of its own: whoever may reach the API is not to read them. It is no part
 * of the API, and its few errors are plain text. Metrics that cannot be read are reported. Rejects with
 * `ListenRefused`.
 */
export async function startMetricsListener(
  metrics: MetricsText,
  address: { readonly host: string; readonly port: number },
  problems: Pick<Problems, 'report'>,
): Promise<MetricsListener> {
  const server = createServer(
    { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, keepAliveTimeout: IDLE_MS },
    (message, reply) => {
      answer(metrics, message, reply).catch((error: unknown) => {
        problems.report({ request_id: null, step: 'http', code: null, error });
        // What is sent in part cannot be taken back.
        if (reply.headersSent) reply.destroy();
        else write(reply, 500, 'The metrics cannot be read.\n');
      });
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  const port = await listen(server, address, { host: '--metrics-host', port: '--metrics-port' });
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  return {
    url: `http://${host}:${port}${PATH}`,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function answer(metrics: MetricsText, message: IncomingMessage, reply: ServerResponse): Promise<void> {
  message.resume();
  const [path] = (message.url ?? '').split('?');
  if (path !== PATH) write(reply, 404, `The metrics are at ${PATH}.\n`);
  else if (message.method !== 'GET' && message.method !== 'HEAD')
    write(reply, 405, 'Metrics are only read.\n');
  else write(reply, 200, await metrics.text(), metrics.content_type);
}

function write(
  reply: ServerResponse,
  status: number,
  text: string,
  type = 'text/plain; charset=utf-8',
): void {
  reply.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    ...(status === 405 ? { allow: 'GET, HEAD' } : {}),
  });
  reply.end(text);
}
