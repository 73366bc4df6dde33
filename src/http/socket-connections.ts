import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { clientAddress } from './client-address.ts';
import type { Connection, Connections } from './connections.ts';

/** A request of a connection, with its reply. */
export interface Exchange {
  readonly message: IncomingMessage;
  readonly reply: ServerResponse;
  /** Aborted with a refusal when the rest of its body cannot be read. */
  readonly body_failure: AbortController;
  /** Set once the reply is closed; the connection counts it until the next turn of the event loop. */
  is_closed: boolean;
  /** True if the client may send and read without end: no clock of a whole request ends it. */
  is_stream: boolean;
}

/** A connection, with its newest request. */
export interface HttpConnection extends Connection {
  newest: Exchange | null;
}

/** The connection of each socket; under TLS two sockets share one. */
export class SocketConnections {
  readonly #of_socket = new WeakMap<object, HttpConnection>();

  constructor(private readonly connections: Connections) {}

  /** Opens the connection of a new socket, or closes the socket and returns false. */
  open(socket: Socket): boolean {
    const connection: HttpConnection = {
      address: clientAddress(null, socket.remoteAddress ?? null),
      port: socket.remotePort,
      requests: 0,
      is_known: false,
      unread_since_ms: null,
      newest: null,
      close: () => socket.destroy(),
    };
    if (!this.connections.open(connection)) return false;
    this.#of_socket.set(socket, connection);
    socket.once('close', () => this.connections.remove(connection));
    return true;
  }

  /** Notes that the connection of `socket` is encrypted, and read from `secure`. */
  secure(socket: Socket, secure: Socket): void {
    const connection = this.#of_socket.get(socket);
    if (connection !== undefined) this.#of_socket.set(secure, connection);
  }

  /** Returns the connection of a socket; undefined where none was opened. */
  of(socket: object): HttpConnection | undefined {
    return this.#of_socket.get(socket);
  }
}
