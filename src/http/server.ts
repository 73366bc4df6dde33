import { createServer, type IncomingMessage, METHODS, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ERRORS, type ErrorCode, Refusal } from '../errors.ts';
import type { Certificate } from './certificate.ts';
import { clientAddress } from './client-address.ts';
import { type Connection, Connections } from './connections.ts';
import { webRequest, writeResponse } from './exchange.ts';
import { connectionsThatFit } from './file-descriptors.ts';
import { HalfClosedClients } from './half-closed-clients.ts';
import { REQUEST_ID_HEADER } from './responses.ts';
import { firstLine, urlOf } from './target.ts';
import { TlsListener } from './tls-listener.ts';

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
  /** Takes the cause of a failure of ours, beside the response that tells the client of it, if any does. */
  report(failure: HandlerFailure): void;
}

/** What went wrong between a request and its response. */
export interface HandlerFailure {
  /** The id of the response; null where there is none. */
  readonly request_id: string | null;
  /** What the client was told; null where it got nothing, or not all of its response. */
  readonly code: ErrorCode | null;
  readonly error: unknown;
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
  /** Serves over TLS with this certificate; without one in the clear. */
  readonly certificate?: Certificate | undefined;
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

/** Stands for the methods that `Request` does not know, and would take for GET: it knows this one, and no path does. */
const METHOD_OF_NO_PATH = 'TRACE';

/** The newest request of a connection. */
interface Exchange {
  readonly message: IncomingMessage;
  readonly reply: ServerResponse;
  /** Aborted with a refusal when what is still to come of its body cannot be read. */
  readonly body_failure: AbortController;
  /** Set once the reply is closed; the connection counts it until the event loop turns. */
  is_closed: boolean;
}

/** What was wrong with the bytes of a connection, and the packet in which it was. */
type ParserError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

/** A connection, with the request that came last on it. */
interface HttpConnection extends Connection {
  newest: Exchange | null;
}

/** Serves over HTTP, or HTTPS where there is a certificate. Rejects with `PortTaken`. */
export async function startServer(
  handler: RequestHandler,
  address: { readonly host: string; readonly port: number },
  options: ServerOptions = {},
): Promise<RunningServer> {
  const timeouts = { ...SERVER_TIMEOUTS, ...options.timeouts };
  const total = Math.min(options.connection_limit ?? CONNECTION_LIMIT, connectionsThatFit());
  const per_address = options.connection_limit_per_address ?? Math.ceil(total / 2);
  const { certificate } = options;
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
  Object.assign(server, { httpAllowHalfOpen: certificate === undefined && half_closed.is_supported });

  const admit = (socket: Socket): boolean => {
    const connection: HttpConnection = {
      address: clientAddress(null, socket.remoteAddress ?? null),
      port: socket.remotePort,
      requests: 0,
      unread_since_ms: null,
      newest: null,
      close: () => socket.destroy(),
    };
    if (!connections.admit(connection)) return false;
    of_socket.set(socket, connection);
    socket.once('close', () => connections.remove(connection));
    return true;
  };

  const answer = async (
    connection: HttpConnection,
    message: IncomingMessage,
    reply: ServerResponse,
    is_waiting: boolean,
  ): Promise<void> => {
    connections.begin(connection);
    tls?.begin(message, reply);
    const gone = new AbortController();
    const body_failure = new AbortController();
    const exchange: Exchange = { message, reply, body_failure, is_closed: false };
    connection.newest = exchange;
    const client =
      header === undefined
        ? connection.address
        : clientAddress(forwardedBy(message, header), null) || connection.address;
    // Without a proxy the connections of an address are limited, and with them its requests.
    const is_crowded = header !== undefined && countUp(requests_by_client, client) > per_address;
    const client_port = connection.port;
    // An interim response is for clients of HTTP/1.1 only.
    // Over TLS a client that sends its end is gone, and that is seen.
    if (message.httpVersionMinor > 0 && certificate === undefined)
      half_closed.watch(client_port, () => reply.writeContinue());
    message.on('error', nothing);
    reply.on('error', nothing);
    reply.once('close', () => {
      exchange.is_closed = true;
      half_closed.forget(client_port);
      if (!reply.writableFinished) gone.abort();
      // Not before the event loop turns, or requests that come in one piece would all be answered in one turn.
      setImmediate(() => connections.end(connection));
      if (header !== undefined) countDown(requests_by_client, client);
    });
    const response = is_crowded
      ? handler.refuse(tooManyRequests())
      : await respond(handler, client, () =>
          webRequest(message, {
            signal: gone.signal,
            body_failure: body_failure.signal,
            onFirstRead: () => {
              if (is_waiting) reply.writeContinue();
            },
          }),
        );
    // What is still to come of a body that was not in time would be taken for the next request.
    if (is_stopping || response.status === LATE) reply.shouldKeepAlive = false;
    connection.unread_since_ms ??= performance.now();
    await writeResponse(response, reply).catch((error: unknown) => {
      handler.report({ request_id: response.headers.get(REQUEST_ID_HEADER), code: null, error });
      message.socket.destroy();
    });
  };

  const begin = (message: IncomingMessage, reply: ServerResponse, is_waiting: boolean) => {
    const connection = of_socket.get(message.socket);
    if (connection === undefined || connection.requests === PIPELINED_MAX || message.socket.destroyed) {
      message.socket.destroy();
      return;
    }
    unfinished += 1;
    answer(connection, message, reply, is_waiting)
      // A response that never comes would be waited for until the client's own deadline.
      .catch((error: unknown) => {
        handler.report({ request_id: null, code: null, error });
        message.socket.destroy();
      })
      .finally(() => {
        unfinished -= 1;
        if (unfinished === 0) onFinished();
      });
  };
  server.on('request', (message, reply) => begin(message, reply, false));
  server.on('checkContinue', (message, reply) => begin(message, reply, true));
  // An expectation that nobody knows may be ignored (RFC 9110, 10.1.1); node:http's own answer has no request id.
  server.on('checkExpectation', (message, reply) => begin(message, reply, false));

  /** What was sent on a connection is no request: the last response there, unless an earlier one is still to come. */
  const refuseRaw = async (socket: Duplex, refusal: Refusal, target: string | null = null) => {
    const connection = of_socket.get(socket);
    const last = connection?.newest ?? null;
    if (connection !== undefined && connection.requests > 0 && last !== null && !last.is_closed) {
      last.reply.shouldKeepAlive = false;
      last.reply.once('close', () => connection.close());
      last.body_failure.abort(refusal);
      return;
    }
    // One request gets one response: a second would be taken for that of the next request.
    const is_answered = last?.message.complete === false;
    if (connection === undefined || !socket.writable || is_answered) {
      socket.destroy();
      return;
    }
    const response =
      target === null
        ? handler.refuse(refusal)
        : await respond(
            handler,
            connection.address,
            () => new Request(urlOf(target), { method: METHOD_OF_NO_PATH }),
          );
    socket.end(await rawResponse(response));
  };
  const hasRequest = (socket: Duplex) => (of_socket.get(socket)?.newest ?? null) !== null;
  server.on('clientError', (error: ParserError, socket) => {
    void refuseRaw(socket, refusalOf(error.code), targetOfUnknownMethod(error, hasRequest(socket)));
  });
  server.on('connect', (_message, socket) => void refuseRaw(socket, new Refusal('malformed_request')));

  const tls =
    certificate === undefined
      ? null
      : new TlsListener(server, {
          ...timeouts,
          certificate,
          admit,
          onSecure: (socket, secure) => {
            const connection = of_socket.get(socket);
            if (connection !== undefined) of_socket.set(secure, connection);
          },
          onLate: (secure) => void refuseRaw(secure, new Refusal('request_timeout')),
        });
  const listener = tls?.server ?? server.on('connection', admit);
  await listen(listener, address);
  const port = portOf(listener);
  half_closed.start(port);
  const scheme = certificate === undefined ? 'http' : 'https';
  const unread = setInterval(
    () => connections.closeUnread(performance.now() - timeouts.response_ms),
    timeouts.check_ms,
  );
  unread.unref();
  return {
    address: `${scheme}://${address.host.includes(':') ? `[${address.host}]` : address.host}:${port}`,
    connection_limit: total,
    async stop() {
      is_stopping = true;
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
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
  client_address: string,
  makeRequest: () => Request,
): Promise<Response> {
  try {
    return await handler.handle(makeRequest(), client_address);
  } catch (error) {
    const refusal = new Refusal('internal_error');
    const response = handler.refuse(refusal);
    handler.report({ request_id: response.headers.get(REQUEST_ID_HEADER), code: refusal.code, error });
    return response;
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

/**
 * The target of a request whose method the parser does not know; null when that is not what it refused, or when it is
 * not certain that the packet begins with this request.
 */
function targetOfUnknownMethod(
  { code, rawPacket }: ParserError,
  has_earlier_requests: boolean,
): string | null {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return null;
  const line = firstLine(rawPacket.toString('latin1', 0, HEAD_BYTES_MAX));
  if (line === null) return null;
  // A packet of several requests begins with one that was read, whose method the parser puts in lower case.
  if (has_earlier_requests && METHODS.includes(line.method.toUpperCase())) return null;
  return line.target;
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
