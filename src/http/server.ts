import { createServer, type Server as HttpServer } from 'node:http';
import { Refusal } from '../errors/errors.ts';
import { CLIENT_TIMEOUT_MS } from '../time/client-timeout.ts';
import type { Certificate } from './certificate.ts';
import { Connections } from './connections.ts';
import { connectionsThatFit } from './file-descriptors.ts';
import { HalfClosedClients } from './half-closed-clients.ts';
import { listen } from './listen.ts';
import { HEAD_BYTES_MAX, RawRefusals } from './raw-refusals.ts';
import { RequestAnswerer } from './request-answerer.ts';
import type { RequestHandler } from './request-handler.ts';
import { RequestsByClient } from './requests-by-client.ts';
import { TlsListener, withStrictTransport } from './tls-listener.ts';

/** The time limits of a client; milliseconds. */
export interface ServerTimeouts {
  /**
   * The time between two requests. Longer than the 60 s that proxies keep a connection, so that they close it
   * first.
   */
  readonly idle_ms: number;
  /**
   * The time from the opening of a connection, or the first byte of a request, to the end of its head. Bun's
   * own parser closes such a connection without a response after 8 to 12 s, by the phase of its clock. This
   * time and one check must be shorter.
   */
  readonly head_ms: number;
  /**
   * The time for a whole request. Our own reader of bodies has a shorter limit; this one ends bodies that
   * nothing reads.
   */
  readonly request_ms: number;
  /** The time for reading a response. */
  readonly response_ms: number;
  /** The interval at which all but the first are checked. */
  readonly check_ms: number;
}

const SERVER_TIMEOUTS: ServerTimeouts = {
  idle_ms: 75_000,
  head_ms: 6_000,
  request_ms: 65_000,
  response_ms: 120_000,
  check_ms: 1_000,
};

/** The options of a server, all with defaults. */
export interface ServerOptions {
  /** The most open connections; never more than the file descriptors of the process allow. */
  readonly connection_limit?: number | undefined;
  /** The most open connections from one address; half of all by default. */
  readonly connection_limit_per_address?: number | undefined;
  /**
   * The header in which a proxy names the client. The limit by address is then one of concurrent requests.
   */
  readonly client_address_header?: string | undefined;
  /** The certificate for TLS; without one the server uses plain HTTP. */
  readonly certificate?: Certificate | undefined;
  readonly timeouts?: Partial<ServerTimeouts>;
  /** The milliseconds that a stop gives the requests in flight. */
  readonly drain_ms?: number | undefined;
}

/** The limits of open connections, with defaults. */
export type ConnectionBounds = Pick<ServerOptions, 'connection_limit' | 'connection_limit_per_address'>;

/** A listening server. */
export interface RunningServer {
  /** The address of the server, without a trailing slash. */
  readonly address: string;
  /** The number of open connections, and their limit. */
  readonly connections: number;
  readonly connection_limit: number;
  /** Bounds new connections; the file descriptors count as they did at the start. */
  setConnectionLimits(bounds: ConnectionBounds): void;
  /** Makes every further response the last one of its connection, so that clients connect to another node. */
  endConnections(): void;
  /**
   * Waits for the requests in flight for `drain_ms`, then aborts the rest: their clients get an error. Later
   * requests are refused by the handler, and not waited for. Resolves with the number of aborted ones, when
   * the handler is done with every request, also those of clients that are gone.
   */
  stop(): Promise<number>;
}

/** The default time that a stop gives the requests in flight: a client's timeout. */
const DRAIN_MS = CLIENT_TIMEOUT_MS;

/** The least time that a stop gives clients to read their responses. */
const LAST_READ_MS = 1_000;

/**
 * The time that a stop gives the handler to end aborted requests: longer than two writes wait for a process's
 * lock.
 */
const CUT_MAX_MS = 15_000;

/** The most connections, regardless of file descriptors, because a connection costs memory too. */
const CONNECTION_LIMIT = 10_000;

/** Serves over HTTP, or HTTPS where there is a certificate. Rejects with `ListenRefused`. */
export async function startServer(
  answering: RequestHandler,
  address: { readonly host: string; readonly port: number },
  options: ServerOptions = {},
): Promise<RunningServer> {
  const timeouts = { ...SERVER_TIMEOUTS, ...options.timeouts };
  const that_fit = connectionsThatFit();
  let { total, per_address } = limitsOf(options, that_fit);
  const { certificate, drain_ms = DRAIN_MS } = options;
  const handler = certificate === undefined ? answering : withStrictTransport(answering);
  const header = options.client_address_header?.toLowerCase() ?? null;

  const connections = new Connections({ total, per_address: header === null ? per_address : null });
  // Over TLS the socket shows that a client which sent its end is gone.
  const half_closed = certificate === undefined ? new HalfClosedClients(connections) : null;
  const server = httpServer(timeouts, half_closed?.is_supported ?? false);
  const refusals = new RawRefusals(handler, connections);
  const tls =
    certificate === undefined
      ? null
      : new TlsListener(server, connections, {
          ...timeouts,
          certificate,
          onLate: (secure) => refusals.refuse(secure, new Refusal('request_timeout')),
        });
  const clients = header === null ? null : new RequestsByClient(header, per_address);
  const answerer = new RequestAnswerer({ handler, connections, clients, tls });
  answerer.listenTo(server);
  refusals.listenTo(server);

  const listener = tls?.server ?? server.on('connection', (socket) => connections.open(socket));
  const port = await listen(listener, address);
  half_closed?.start(port);
  const unread = setInterval(
    () => connections.closeUnread(performance.now() - timeouts.response_ms),
    timeouts.check_ms,
  );
  unread.unref();

  const scheme = certificate === undefined ? 'http' : 'https';
  return {
    address: `${scheme}://${address.host.includes(':') ? `[${address.host}]` : address.host}:${port}`,
    get connections() {
      return connections.size;
    },
    get connection_limit() {
      return total;
    },
    setConnectionLimits(bounds) {
      ({ total, per_address } = limitsOf(bounds, that_fit));
      connections.setLimits({ total, per_address: header === null ? per_address : null });
      clients?.setLimit(per_address);
    },
    endConnections: () => answerer.endConnections(),
    async stop() {
      const deadline_ms = performance.now() + drain_ms;
      answerer.drain();
      connections.drain();
      const is_finished = await answerer.ended(drain_ms);
      const cut = is_finished ? 0 : answerer.cut();
      await answerer.ended(CUT_MAX_MS);
      // Only now, because until here new clients are told when to come back.
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      connections.drain();
      const late = setTimeout(
        () => connections.closeAll(),
        Math.max(LAST_READ_MS, deadline_ms - performance.now()),
      );
      await closed;
      clearTimeout(late);
      clearInterval(unread);
      half_closed?.stop();
      return cut;
    },
  };
}

function limitsOf(
  { connection_limit = CONNECTION_LIMIT, connection_limit_per_address }: ConnectionBounds,
  that_fit: number,
): { readonly total: number; readonly per_address: number } {
  const total = Math.min(connection_limit, that_fit);
  return { total, per_address: connection_limit_per_address ?? Math.ceil(total / 2) };
}

function httpServer(timeouts: ServerTimeouts, allows_half_open: boolean): HttpServer {
  const server = createServer({
    // HTTP/1.0 has no Host. Only the console uses it, and refuses a change without one.
    requireHostHeader: false,
    keepAliveTimeout: timeouts.idle_ms,
    headersTimeout: timeouts.head_ms,
    requestTimeout: timeouts.request_ms,
    connectionsCheckingInterval: timeouts.check_ms,
    maxHeaderSize: HEAD_BYTES_MAX,
  });
  return Object.assign(server, { httpAllowHalfOpen: allows_half_open });
}
