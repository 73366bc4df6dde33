import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ERRORS, Refusal } from '../errors.ts';
import { clientAddress } from './client-address.ts';
import { type Connection, Connections } from './connections.ts';
import { webRequest, writeResponse } from './exchange.ts';
import { connectionsThatFit } from './file-descriptors.ts';
import { HalfClosedClients } from './half-closed-clients.ts';

/** Another program listens on the port already. */
export class PortTaken extends Error {
  override readonly name = 'PortTaken';
}

/** What answers the requests. */
export interface RequestHandler {
  /** Answers one request of that client (`clientAddress`); its signal is aborted when the client goes away. */
  handle(request: Request, client_address: string): Response | Promise<Response>;
  /** The response to what never became a request. */
  refuse(refusal: Refusal): Response;
}

/** How long a client may take over what; milliseconds. */
export interface ServerTimeouts {
  /** Between two requests. Longer than the 60 s that proxies keep a connection, so that they close it first. */
  readonly idle_ms: number;
  /** From the opening of a connection, or the first byte of a request, to the end of its head. */
  readonly head_ms: number;
  /** For a whole request. Our own reader of bodies is quicker; this one ends bodies that nobody reads. */
  readonly request_ms: number;
  /** For reading a response. */
  readonly response_ms: number;
  /** How often all but the first are looked at. */
  readonly check_ms: number;
}

export const SERVER_TIMEOUTS: ServerTimeouts = {
  idle_ms: 75_000,
  head_ms: 30_000,
  request_ms: 65_000,
  response_ms: 120_000,
  check_ms: 5_000,
};

/** What bounds a server; everything has a default. */
export interface ServerOptions {
  /** Connections that may be open; never more than the file descriptors of the process allow. */
  readonly connection_limit?: number | undefined;
  /** Connections that may be open from one address; half of all by default. */
  readonly connection_limit_per_address?: number | undefined;
  /** The header in which a proxy names the client. The limit by address is then one of requests at once. */
  readonly client_address_header?: string | undefined;
  readonly timeouts?: Partial<ServerTimeouts>;
}

/** A listening server. */
export interface RunningServer {
  /** Where it can be reached, without a slash at the end. */
  readonly address: string;
  /** How many connections may be open. */
  readonly connection_limit: number;
  /**
   * Takes no new connection, lets the requests in flight finish for two minutes, then closes what is left. Resolves when
   * the handler is done with every request, those of clients that are gone included.
   */
  stop(): Promise<void>;
}

/** How long a stop waits for the requests in flight: as long as clients are told to wait for an answer. */
const DRAIN_MAX_MS = 120_000;

/** How long a stop then waits for the handler: longer than two writes wait for another process's lock. */
const ABANDONED_MAX_MS = 15_000;

/** However many file descriptors there are: a connection costs memory too. */
const CONNECTION_LIMIT = 10_000;

const LATE = ERRORS.request_timeout.status;

const HEAD_BYTES_MAX = 16_384;

/**
 * Requests that a client may send on one connection before it has their answers. Hardly any client sends a second one;
 * without a limit one connection could hold a hundred thousand requests.
 */
const PIPELINED_MAX = 8;

/** Seconds after which a client that has too many requests at once may send another. */
const RETRY_AFTER_S = 1;

/** A connection, with the request that came last on it. */
interface HttpConnection extends Connection {
  last_message: IncomingMessage | null;
}

/** Serves over HTTP. Rejects with `PortTaken`. */
export async function startServer(
  handler: RequestHandler,
  address: { readonly host: string; readonly port: number },
  options: ServerOptions = {},
): Promise<RunningServer> {
  const timeouts = { ...SERVER_TIMEOUTS, ...options.timeouts };
  const total = Math.min(options.connection_limit ?? CONNECTION_LIMIT, connectionsThatFit());
  const per_address = options.connection_limit_per_address ?? Math.ceil(total / 2);
  const header = options.client_address_header?.toLowerCase();
  const connections = new Connections({ total, per_address: header === undefined ? per_address : null });
  const of_socket = new WeakMap<object, HttpConnection>();
  const requests_by_client = new Map<string, number>();
  /** Requests that the handler is not done with. */
  let unfinished = 0;
  let onFinished = () => {};
  let is_stopping = false;

  const server = createServer({
    // HTTP/1.0 knows no Host, and no route depends on it.
    requireHostHeader: false,
    keepAliveTimeout: timeouts.idle_ms,
    headersTimeout: timeouts.head_ms,
    requestTimeout: timeouts.request_ms,
    connectionsCheckingInterval: timeouts.check_ms,
    maxHeaderSize: HEAD_BYTES_MAX,
  });

  const half_closed = new HalfClosedClients();
  Object.assign(server, { httpAllowHalfOpen: half_closed.is_supported });

  server.on('connection', (socket: Socket) => {
    const connection: HttpConnection = {
      address: clientAddress(null, socket.remoteAddress ?? null),
      port: socket.remotePort,
      requests: 0,
      unread_since_ms: null,
      last_message: null,
      close: () => socket.destroy(),
    };
    if (!connections.admit(connection)) return;
    of_socket.set(socket, connection);
    socket.once('close', () => connections.remove(connection));
  });

  const answer = async (
    connection: HttpConnection,
    message: IncomingMessage,
    reply: ServerResponse,
    is_waiting: boolean,
  ): Promise<void> => {
    connections.begin(connection);
    connection.last_message = message;
    const gone = new AbortController();
    const client =
      header === undefined
        ? connection.address
        : clientAddress(forwardedBy(message, header), null) || connection.address;
    // Without a proxy the connections of an address are limited, and with them its requests.
    const is_crowded = header !== undefined && countUp(requests_by_client, client) > per_address;
    const client_port = connection.port;
    // An interim response is for clients of HTTP/1.1 only.
    if (message.httpVersionMinor > 0) half_closed.watch(client_port, () => reply.writeContinue());
    message.on('error', nothing);
    reply.on('error', nothing);
    reply.once('close', () => {
      half_closed.forget(client_port);
      if (!reply.writableFinished) gone.abort();
      // Not before the event loop turns, or requests that come in one piece would all be answered in one turn.
      setImmediate(() => connections.end(connection));
      if (header !== undefined) countDown(requests_by_client, client);
    });
    const response = is_crowded
      ? handler.refuse(tooManyRequests())
      : await respond(handler, message, client, {
          signal: gone.signal,
          onFirstRead: () => {
            if (is_waiting) reply.writeContinue();
          },
        });
    // What is still to come of a body that was not in time would be taken for the next request.
    if (is_stopping || response.status === LATE) reply.shouldKeepAlive = false;
    connection.unread_since_ms ??= performance.now();
    await writeResponse(response, reply);
  };

  const begin = (message: IncomingMessage, reply: ServerResponse, is_waiting: boolean) => {
    const connection = of_socket.get(message.socket);
    if (connection === undefined || connection.requests === PIPELINED_MAX || message.socket.destroyed) {
      message.socket.destroy();
      return;
    }
    unfinished += 1;
    answer(connection, message, reply, is_waiting)
      // A response that cannot be written would be waited for until the client's own deadline.
      .catch(() => message.socket.destroy())
      .finally(() => {
        unfinished -= 1;
        if (unfinished === 0) onFinished();
      });
  };
  server.on('request', (message, reply) => begin(message, reply, false));
  server.on('checkContinue', (message, reply) => begin(message, reply, true));
  // An expectation that nobody knows may be ignored (RFC 9110, 10.1.1); node:http's own answer has no request id.
  server.on('checkExpectation', (message, reply) => begin(message, reply, false));

  const refuseRaw = async (socket: Duplex, refusal: Refusal) => {
    const connection = of_socket.get(socket);
    const is_answering = (connection?.requests ?? 0) > 0;
    const is_answered = connection?.last_message?.complete === false;
    // One request gets one response: a second would be taken for that of the next request.
    if (!socket.writable || is_answering || is_answered) socket.destroy();
    else socket.end(await rawResponse(handler.refuse(refusal)));
  };
  server.on('clientError', (error: Error & { readonly code?: string }, socket) => {
    void refuseRaw(socket, refusalOf(error.code));
  });
  server.on('connect', (_message, socket) => void refuseRaw(socket, new Refusal('malformed_request')));

  await listen(server, address);
  half_closed.start(portOf(server));
  const unread = setInterval(
    () => connections.closeUnread(performance.now() - timeouts.response_ms),
    timeouts.check_ms,
  );
  unread.unref();
  return {
    address: `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${portOf(server)}`,
    connection_limit: total,
    async stop() {
      is_stopping = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.drain();
      const late = setTimeout(() => connections.closeAll(), DRAIN_MAX_MS);
      await closed;
      clearTimeout(late);
      clearInterval(unread);
      half_closed.stop();
      if (unfinished === 0) return;
      const finished = Promise.withResolvers<void>();
      onFinished = finished.resolve;
      const abandoned = setTimeout(finished.resolve, ABANDONED_MAX_MS);
      await finished.promise;
      clearTimeout(abandoned);
    },
  };
}

/** The handler's response; its failure is one of ours. */
async function respond(
  handler: RequestHandler,
  message: IncomingMessage,
  client_address: string,
  options: Parameters<typeof webRequest>[1],
): Promise<Response> {
  try {
    return await handler.handle(webRequest(message, options), client_address);
  } catch {
    return handler.refuse(new Refusal('internal_error'));
  }
}

function forwardedBy({ headers }: IncomingMessage, header: string): string | null {
  const value = headers[header];
  return (Array.isArray(value) ? value.join(',') : value) ?? null;
}

function nothing(): void {
  // A client that goes away is no failure; what it left is seen by the close of its response.
}

/** Counts one more, and returns how many there are. */
function countUp(counts: Map<string, number>, name: string): number {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  return count;
}

function countDown(counts: Map<string, number>, name: string): void {
  const left = (counts.get(name) ?? 0) - 1;
  if (left > 0) counts.set(name, left);
  else counts.delete(name);
}

function tooManyRequests(): Refusal {
  return new Refusal('overloaded', {
    message: 'This address has too many requests at once.',
    retry_after_s: RETRY_AFTER_S,
  });
}

/** What the parser of HTTP, or its clock, refused. */
function refusalOf(code: string | undefined): Refusal {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Refusal('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new Refusal('headers_too_large');
  return new Refusal('malformed_request');
}

/** A response as the bytes that go over the wire, the last ones of their connection. */
async function rawResponse(response: Response): Promise<string> {
  const body = await response.text();
  const lines = [`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`];
  response.headers.forEach((value, name) => {
    lines.push(`${name}: ${value}`);
  });
  lines.push('connection: close', `content-length: ${Buffer.byteLength(body)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

async function listen(server: Server, { host, port }: { readonly host: string; readonly port: number }) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  // A second process on the same port would keep its own rate limits without anybody noticing.
  server.listen({ host, port, exclusive: true }, resolve);
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
      throw new PortTaken(
        `Port ${port} is taken: stop the program that listens on it, or choose another with --port.`,
        { cause: error },
      );
    }
    throw error;
  }
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}
