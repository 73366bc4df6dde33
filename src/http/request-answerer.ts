import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceStopped } from '../decisions/cut-requests.ts';
import { ERRORS, Refusal } from '../errors.ts';
import type { Connections } from './connections.ts';
import { stopping } from './draining.ts';
import { webRequest, writeResponse } from './exchange.ts';
import type { HalfClosedClients } from './half-closed-clients.ts';
import { type RequestHandler, respond } from './request-handler.ts';
import type { RequestsByClient } from './requests-by-client.ts';
import { RequestsInFlight } from './requests-in-flight.ts';
import { REQUEST_ID_HEADER } from './responses.ts';
import type { Exchange, HttpConnection, SocketConnections } from './socket-connections.ts';
import { isAmbiguous } from './target.ts';
import type { TlsListener } from './tls-listener.ts';

/**
 * Requests that a client may send on one connection before it has their answers. Hardly any client sends a second one;
 * without a limit one connection could hold a hundred thousand requests.
 */
const PIPELINED_MAX = 8;

/** Seconds after which a client that has too many requests at once may send another. */
const RETRY_AFTER_S = 1;

interface AnswererParts {
  readonly handler: RequestHandler;
  readonly connections: Connections;
  readonly sockets: SocketConnections;
  readonly clients: RequestsByClient;
  /** Null over TLS: there a client that sends its end is gone, and the socket tells. */
  readonly half_closed: HalfClosedClients | null;
  /** Null in the clear. */
  readonly tls: TlsListener | null;
}

/** Has the requests that node:http read answered by the handler, and writes the responses. */
export class RequestAnswerer {
  /** The requests that a stop waits for. */
  readonly in_flight = new RequestsInFlight();
  /** Those that came later, whose refusals no stop waits for. */
  readonly #refused = new RequestsInFlight();
  /** Cuts a request that is being answered. */
  readonly #cuts = new Set<() => void>();
  #is_draining = false;
  #ends_connections = false;

  constructor(private readonly parts: AnswererParts) {}

  /** Answers a request; `is_waiting` says that the client waits to be asked for the body. */
  begin(message: IncomingMessage, reply: ServerResponse, is_waiting: boolean): void {
    const connection = this.parts.sockets.of(message.socket);
    if (connection === undefined || connection.requests === PIPELINED_MAX || message.socket.destroyed) {
      message.socket.destroy();
      return;
    }
    (this.#is_draining ? this.#refused : this.in_flight).add(
      this.#answer(connection, message, reply, is_waiting)
        // A response that never comes would be waited for until the client's own deadline.
        .catch((error: unknown) => {
          this.parts.handler.report({ request_id: null, code: null, error });
          message.socket.destroy();
        }),
    );
  }

  /** From now on every response is the last one of its connection. */
  endConnections(): void {
    this.#ends_connections = true;
  }

  /** From now on every response is the last one of its connection, and no stop waits for what comes. */
  drain(): void {
    this.endConnections();
    this.#is_draining = true;
  }

  /** Ends the requests that are still being answered: their clients get an error. Returns how many those are. */
  cut(): number {
    const { count } = this.in_flight;
    for (const cut of this.#cuts) cut();
    return count;
  }

  async #answer(
    connection: HttpConnection,
    message: IncomingMessage,
    reply: ServerResponse,
    is_waiting: boolean,
  ): Promise<void> {
    const { handler, clients, connections } = this.parts;
    const client = clients.clientOf(message, connection.address);
    const is_within_limit = clients.begin(client);
    const { gone, body_failure } = this.#open(connection, message, reply, () => clients.end(client));
    const refusal = is_within_limit ? refusalOfTarget(message) : tooManyRequests();
    const response =
      refusal === null
        ? await respond(
            handler,
            client,
            () =>
              webRequest(message, {
                signal: gone,
                body_failure,
                onFirstRead: () => {
                  connections.wait(connection);
                  if (is_waiting) reply.writeContinue();
                },
                onReceived: () => connections.work(connection),
              }),
            () => connections.know(connection),
          )
        : handler.refuse(refusal);
    if (this.#ends_connections || endsConnection(response, message, connection)) {
      reply.shouldKeepAlive = false;
    }
    connection.unread_since_ms ??= performance.now();
    connections.wait(connection);
    // A client that reads slowly is no client that does not read.
    const onTaken = () => {
      connection.unread_since_ms = performance.now();
      connections.wait(connection);
    };
    await writeResponse(response, reply, onTaken).catch((error: unknown) => {
      handler.report({ request_id: response.headers.get(REQUEST_ID_HEADER), code: null, error });
      message.socket.destroy();
    });
  }

  /**
   * Counts the request until its reply is closed. Returns the signals for a client that is gone and for a body whose
   * rest cannot be read.
   */
  #open(
    connection: HttpConnection,
    message: IncomingMessage,
    reply: ServerResponse,
    onClosed: () => void,
  ): { readonly gone: AbortSignal; readonly body_failure: AbortSignal } {
    const { connections, half_closed, tls } = this.parts;
    const client_port = connection.port;
    const gone = new AbortController();
    const exchange: Exchange = { message, reply, body_failure: new AbortController(), is_closed: false };
    const cut = () => {
      exchange.body_failure.abort(stopping());
      gone.abort(new ServiceStopped());
    };
    this.#cuts.add(cut);
    connections.begin(connection);
    connection.newest = exchange;
    tls?.begin(message, reply);
    // An interim response is for clients of HTTP/1.1 only.
    if (message.httpVersionMinor > 0) half_closed?.watch(client_port, () => reply.writeContinue());
    message.on('error', nothing);
    reply.on('error', nothing);
    reply.once('close', () => {
      exchange.is_closed = true;
      this.#cuts.delete(cut);
      half_closed?.forget(client_port);
      if (!reply.writableFinished) gone.abort();
      // Waits for a turn of the event loop: otherwise requests that come in one packet would all be answered in one
      // turn.
      setImmediate(() => connections.end(connection));
      onClosed();
    });
    return { gone: gone.signal, body_failure: exchange.body_failure.signal };
  }
}

/**
 * Whether a response ends its connection: the rest of a body that was late would be read as the next request. A body of
 * an unknown client for which there is no room must not keep its connection either.
 */
function endsConnection(
  { status }: Response,
  message: IncomingMessage,
  { is_known }: HttpConnection,
): boolean {
  if (status === ERRORS.request_timeout.status) return true;
  return status === ERRORS.overloaded.status && !message.complete && !is_known;
}

function nothing(): void {
  // A client that goes away is no failure; what it left is seen by the close of its response.
}

/** The refusal of a path that is not the same to everybody who reads it. */
function refusalOfTarget({ url = '/' }: IncomingMessage): Refusal<'malformed_request'> | null {
  if (!isAmbiguous(url)) return null;
  return new Refusal('malformed_request', {
    message: 'The path has a backslash, a segment of dots or a control character.',
  });
}

function tooManyRequests(): Refusal<'overloaded'> {
  return new Refusal('overloaded', {
    message: 'This address has too many requests at once.',
    retry_after_s: RETRY_AFTER_S,
  });
}
