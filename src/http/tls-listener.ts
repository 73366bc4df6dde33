import type { Server as HttpServer } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Certificate } from './certificate.ts';
import type { Connections } from './connections.ts';
import type { Exchange } from './exchange.ts';
import type { RequestHandler } from './request-handler.ts';

/** Half a year, for this host only, which limits the lock-out after a return to plain HTTP. */
const STRICT_TRANSPORT = 'max-age=15552000';

/** The options of a TLS listener; times in milliseconds. */
export interface TlsListenerOptions {
  readonly certificate: Certificate;
  /** The time between two requests. */
  readonly idle_ms: number;
  /** The time from the opening of a connection, or the first byte of a request, to the end of its head. */
  readonly head_ms: number;
  /** The time for a whole request. */
  readonly request_ms: number;
  /** Called when a request did not arrive in time. */
  readonly onLate: (secure: TLSSocket) => void;
}

/**
 * Listens for TLS connections and passes each to an HTTP server. `node:https` of Bun 1.4.4 does not show a
 * connection before its handshake: silent ones would use up the file descriptors unseen. Nor does it accept
 * another certificate while it listens. The timeouts of `node:http` do not apply to connections that it is
 * given, so they are here.
 */
export class TlsListener {
  /** The listening server. */
  readonly server: Server;
  readonly #deadlines = new WeakMap<object, Deadline>();

  constructor(
    http: HttpServer,
    private readonly connections: Connections,
    options: TlsListenerOptions,
  ) {
    this.server = createServer((socket) => {
      // A write to a client that is gone fails; the event "close" reports its end.
      socket.on('error', () => {});
      // Before anything of it is read.
      if (connections.open(socket)) this.#handshake(http, socket, options);
    });
  }

  /** The head of a request is there. */
  begin(exchange: Exchange): void {
    this.#deadlines.get(exchange.message.socket)?.begin(exchange);
  }

  #handshake(http: HttpServer, socket: Socket, options: TlsListenerOptions): void {
    const late = setTimeout(() => socket.destroy(), options.head_ms);
    socket.once('close', () => clearTimeout(late));
    const secure = new TLSSocket(socket, { isServer: true, secureContext: options.certificate.context });
    secure.on('error', () => socket.destroy());
    secure.once('secure', () => {
      clearTimeout(late);
      this.connections.secure(socket, secure);
      this.#deadlines.set(secure, new Deadline(secure, options));
      http.emit('connection', secure);
    });
  }
}

/** The clock of one connection, which runs while the client has to send something. */
class Deadline {
  #timer: Timer | undefined;
  #requests = 0;
  #is_idle = false;

  constructor(
    private readonly secure: TLSSocket,
    private readonly options: TlsListenerOptions,
  ) {
    this.#startHead();
    secure.on('data', () => {
      if (!this.#is_idle) return;
      this.#is_idle = false;
      this.#startHead();
    });
    secure.once('close', () => clearTimeout(this.#timer));
  }

  /** The head of a request is there. */
  begin(exchange: Exchange): void {
    const { message, reply } = exchange;
    this.#requests += 1;
    this.#is_idle = false;
    this.#start(this.options.request_ms, () => {
      if (!message.complete && !exchange.is_stream) this.#end();
    });
    const rest = () => {
      // The rest of a request that was answered early keeps its own time.
      if (this.#requests > 0 || !message.complete || this.secure.destroyed) return;
      this.#is_idle = true;
      this.#start(this.options.idle_ms, () => this.secure.destroy());
    };
    reply.once('close', () => {
      this.#requests -= 1;
      rest();
    });
    message.once('end', rest);
  }

  #startHead(): void {
    this.#start(this.options.head_ms, () => this.#end());
  }

  /** Reports that the time is over. A client that then does not close is cut off. */
  #end(): void {
    this.options.onLate(this.secure);
    this.#start(this.options.head_ms, () => this.secure.destroy());
  }

  #start(delay_ms: number, end: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(end, delay_ms);
  }
}

/** Returns the handler with responses that tell browsers to use only TLS for this host (RFC 6797). */
export function withStrictTransport(handler: RequestHandler): RequestHandler {
  const told = (response: Response): Response => {
    response.headers.set('strict-transport-security', STRICT_TRANSPORT);
    return response;
  };
  return {
    handle: async (...given) => told(await handler.handle(...given)),
    refuse: (...given) => told(handler.refuse(...given)),
    report: (failure) => handler.report(failure),
  };
}
