import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { inBackground, type Problems } from '../problems/problems.ts';
import { Connections } from './connections.ts';
import { listen } from './listen.ts';

/**
 * The clients are a Prometheus, a `tds top`, a curl. One address may have all connections, because many read
 * through one proxy.
 */
export const CONNECTION_LIMITS = { total: 64, per_address: null };
const REQUEST_MS = 5_000;
const IDLE_MS = 75_000;
const CHECK_MS = 1_000;

const PATH = '/metrics';

/** The metrics that are served. */
export interface MetricsText {
  readonly content_type: string;
  text(): Promise<string>;
}

export interface MetricsListener {
  /** The address of the metrics. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Serves metrics at `/metrics`, on a listener of its own, because clients of the API must not read them. It
 * is not part of the API, and its few errors are plain text. Metrics that cannot be read are reported. When
 * all connections are taken, the one that has waited longest for its client makes room. Rejects with
 * `ListenRefused`.
 */
export async function startMetricsListener(
  metrics: MetricsText,
  address: { readonly host: string; readonly port: number },
  problems: Pick<Problems, 'report'>,
): Promise<MetricsListener> {
  const connections = new Connections(CONNECTION_LIMITS);
  const read = readOnce(metrics);
  const server = createServer(
    {
      headersTimeout: REQUEST_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: IDLE_MS,
      connectionsCheckingInterval: CHECK_MS,
    },
    async (message, reply) => {
      const connection = connections.of(message.socket);
      // Silent connections make room before it. It never keeps others away, however many read at the same time.
      if (connection !== undefined) connections.workClosable(connection);
      try {
        await answer(read, message, reply);
      } catch (error) {
        problems.report(inBackground('http', error));
        // A partly sent response cannot be taken back.
        if (reply.headersSent) reply.destroy();
        else write(reply, 500, 'The metrics cannot be read.\n');
      }
      // It waits for its client from now on, so that one that does not read the response keeps no connection.
      if (connection !== undefined) connections.wait(connection);
    },
  );
  server.on('connection', (socket) => connections.open(socket));
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

/**
 * Reads the metrics once for all concurrent requests, because each reading takes a millisecond of the event
 * loop.
 */
function readOnce(metrics: MetricsText): MetricsText {
  let reading: Promise<string> | undefined;
  return {
    content_type: metrics.content_type,
    text() {
      reading ??= metrics.text().finally(() => {
        reading = undefined;
      });
      return reading;
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
