import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import { ServiceStopped } from '../errors/abort-reasons.ts';
import { ERRORS, overloaded, Refusal } from '../errors/errors.ts';
import type { Connection, Connections } from './connections.ts';
import { type Exchange, hasBody, isAmbiguous, webRequest, writeResponse } from './exchange.ts';
import type { OnKnown, RequestHandler } from './request-handler.ts';
import type { RequestsByClient } from './requests-by-client.ts';
import { REQUEST_ID_HEADER } from './responses.ts';
import type { TlsListener } from './tls-listener.ts';

/**
 * The most unanswered requests of one connection. Hardly any client sends a second one; without a limit one
 * connection could hold a hundred thousand requests.
 */
const PIPELINED_MAX = 8;

/** The time in milliseconds for the client of a stream that ended early to read the end. */
const LAST_READ_MS = 2_000;

interface AnswererParts {
  readonly handler: RequestHandler;
  readonly connections: Connections;
  /** Null without a proxy, where the client is the other side of the connection. */
  readonly clients: RequestsByClient | null;
  /** Null without TLS. */
  readonly tls: TlsListener | null;
}

/** Passes the requests that node:http read to the handler, and writes the responses. */
export class RequestAnswerer {
  /** The requests that a stop waits for, until the handler is done with each, also where its client is gone. */
  readonly #in_flight = new Set<Promise<void>>();
  /** Functions that each abort a request in progress. */
  readonly #cuts = new Set<() => void>();
  #is_draining = false;
  #ends_connections = false;

  constructor(private readonly parts: AnswererParts) {}

  /** Answers the requests that the server reads. */
  listenTo(server: HttpServer): void {
    server.on('request', (message, reply) => this.#begin(message, reply, false));
    server.on('checkContinue', (message, reply) => this.#begin(message, reply, true));
    // An unknown expectation may be ignored (RFC 9110, 10.1.1); node:http's own response has no request id.
    server.on('checkExpectation', (message, reply) => this.#begin(message, reply, false));
  }

  /** Answers a request; `is_waiting` is true if the client waits to be asked for the body. */
  #begin(message: IncomingMessage, reply: ServerResponse, is_waiting: boolean): void {
    const connection = this.parts.connections.of(message.socket);
    if (connection === undefined || connection.requests === PIPELINED_MAX || message.socket.destroyed) {
      message.socket.destroy();
      return;
    }
    const answered = this.#answer(connection, message, reply, is_waiting)
      // Without a response, the client would wait until its own deadline.
      .catch((error: unknown) => {
        this.parts.handler.report({ request_id: null, code: null, error });
        message.socket.destroy();
      });
    // No stop waits for the refusals of later requests.
    if (this.#is_draining) return;
    this.#in_flight.add(answered);
    void answered.then(() => this.#in_flight.delete(answered));
  }

  /** Makes every further response the last one of its connection. */
  endConnections(): void {
    this.#ends_connections = true;
  }

  /** Makes every further response the last one of its connection; a stop does not wait for later requests. */
  drain(): void {
    this.endConnections();
    this.#is_draining = true;
  }

  /** Aborts the requests in progress: their clients get an error. Returns their number. */
  cut(): number {
    const { size } = this.#in_flight;
    for (const cut of this.#cuts) cut();
    return size;
  }

  /** Resolves when no request is in flight, or after `max_ms`; with true if there is none. */
  async ended(max_ms: number): Promise<boolean> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, max_ms);
    await Promise.race([Promise.all(this.#in_flight), late.promise]);
    clearTimeout(timer);
    return this.#in_flight.size === 0;
  }

  async #answer(
    connection: Connection,
    message: IncomingMessage,
    reply: ServerResponse,
    is_waiting: boolean,
  ): Promise<void> {
    const { handler, clients, connections } = this.parts;
    const client = clients?.clientOf(message, connection.address) ?? connection.address;
    const is_within_limit = clients?.begin(client) ?? true;
    const { gone, exchange } = this.#open(connection, message, reply, () => clients?.end(client));
    const refusal = is_within_limit ? refusalOfTarget(message) : overloaded('requests_of_address');
    const response =
      refusal === null
        ? await respond(
            handler,
            client,
            () =>
              webRequest(message, {
                signal: gone,
                body_failure: exchange.body_failure.signal,
                onFirstRead: () => {
                  connections.wait(connection);
                  if (is_waiting) reply.writeContinue();
                },
                onReceived: () => connections.work(connection),
              }),
            (is_stream) => {
              exchange.is_stream = is_stream ?? false;
              connections.know(connection);
            },
          )
        : handler.refuse(refusal, client);
    const must_end = clients !== null && isUnfinished(message);
    if (this.#ends_connections || must_end || endsConnection(response, message, connection)) {
      reply.shouldKeepAlive = false;
    }
    await writeResponse(response, reply, {
      onUnread: () => {
        connection.unread_since_ms ??= performance.now();
        connections.wait(connection);
      },
      // A client that reads slowly still counts as reading.
      onTaken: () => {
        connection.unread_since_ms = null;
        connections.work(connection);
      },
      beforeEnd: must_end ? () => restIsDiscarded(message) : null,
    }).catch((error: unknown) => {
      handler.report({ request_id: response.headers.get(REQUEST_ID_HEADER), code: null, error });
      message.socket.destroy();
    });
    if (message.complete) return;
    if (exchange.is_stream) void closeAfterRest(message);
    // A body that its reader gave up is paused, and the next request is behind it.
    else message.resume();
  }

  /**
   * Counts the request until its reply is closed. Returns it with the signal for a client that is gone.
   */
  #open(
    connection: Connection,
    message: IncomingMessage,
    reply: ServerResponse,
    onClosed: () => void,
  ): { readonly gone: AbortSignal; readonly exchange: Exchange } {
    const { connections, tls } = this.parts;
    const gone = new AbortController();
    const exchange: Exchange = {
      message,
      reply,
      body_failure: new AbortController(),
      is_closed: false,
      is_asked: false,
      is_stream: false,
    };
    const cut = () => {
      exchange.body_failure.abort(overloaded('stopping'));
      gone.abort(new ServiceStopped());
    };
    this.#cuts.add(cut);
    connections.begin(connection);
    connection.newest = exchange;
    if (message.httpVersionMinor > 0) connection.newest_askable = exchange;
    tls?.begin(exchange);
    message.on('error', nothing);
    reply.on('error', nothing);
    reply.once('close', () => {
      exchange.is_closed = true;
      this.#cuts.delete(cut);
      if (!reply.writableFinished) gone.abort();
      // Waits for a turn of the event loop. Otherwise all requests of one packet would be answered in one
      // turn.
      setImmediate(() => connections.end(connection));
      onClosed();
    });
    return { gone: gone.signal, exchange };
  }
}

/** Returns the handler's response, or an error response if the handler fails. */
export async function respond(
  handler: RequestHandler,
  client_address: string,
  makeRequest: () => Request,
  onKnown: OnKnown = () => {},
): Promise<Response> {
  try {
    return await handler.handle(makeRequest(), client_address, onKnown);
  } catch (error) {
    const refusal = new Refusal('internal_error');
    const response = handler.refuse(refusal, client_address);
    handler.report({ request_id: response.headers.get(REQUEST_ID_HEADER), code: refusal.code, error });
    return response;
  }
}

/**
 * Returns true if a response ends its connection. After a late body, its rest would be read as the next
 * request. An unknown client's body without room must not keep its connection either.
 */
function endsConnection({ status }: Response, message: IncomingMessage, { is_known }: Connection): boolean {
  if (status === ERRORS.request_timeout.status) return true;
  return status === ERRORS.overloaded.status && !message.complete && !is_known;
}

/**
 * Returns true while the rest of a request is still to come. A proxy such as HAProxy 2.6 may give the rest up and send
 * another client's request, which would be read as that rest.
 */
function isUnfinished(message: IncomingMessage): boolean {
  return hasBody(message) && !message.complete;
}

/**
 * Discards the rest of a body, so that the client of an early response can read its end. With unread bytes the close of
 * the connection would be a reset, which proxies answer with 502. Resolves when all of it came, the client is gone, or
 * after the time for it.
 */
async function restIsDiscarded(message: IncomingMessage): Promise<void> {
  if (message.complete || message.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const late = setTimeout(resolve, LAST_READ_MS);
  late.unref();
  message.once('end', resolve).once('close', resolve).resume();
  await promise;
  clearTimeout(late);
}

/** Discards the rest of a body, and closes the connection where it does not come in time. */
async function closeAfterRest(message: IncomingMessage): Promise<void> {
  await restIsDiscarded(message);
  if (!message.complete) message.socket.destroy();
}

function nothing(): void {
  // A client that goes away is no failure; the close of its response handles it.
}

/** Returns the refusal of a path that programs may read differently, or null. */
function refusalOfTarget({ url = '/' }: IncomingMessage): Refusal<'malformed_request'> | null {
  if (!isAmbiguous(url)) return null;
  return new Refusal('malformed_request', {
    message: 'The path has a backslash, a segment of dots or a control character.',
  });
}
