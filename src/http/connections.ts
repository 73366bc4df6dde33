import type { Socket } from 'node:net';
import { overloaded } from '../errors/errors.ts';
import { clientAddress } from './client-address.ts';
import type { Exchange } from './exchange.ts';

/** The limits of open connections. */
export interface ConnectionLimits {
  readonly total: number;
  /** The limit of one address; null where every connection comes from a proxy. */
  readonly per_address: number | null;
}

/** One open connection, with its newest request. */
export interface Connection {
  /** The address that it counts for. */
  readonly address: string;
  /** The client's port. */
  readonly port: number | undefined;
  /** The number of unanswered requests; more than one where the client pipelines. */
  requests: number;
  /** True if its newest request came from a known client: with the key of an organization that may ask. */
  is_known: boolean;
  /**
   * The time since which a response waits to be read by the client, on the clock of `performance`; null for
   * none.
   */
  unread_since_ms: number | null;
  newest: Exchange | null;
  /** The newest request whose client takes an interim response, which HTTP/1.0 has not. */
  newest_askable: Exchange | null;
  close(): void;
}

/**
 * The open connections. Above the limit of its address a new one is closed at once. Above the limit of all,
 * the one that has waited longest for its client makes room. Therefore clients that are silent, send half a
 * body or do not read a response lock nobody out. A known client's connection is closed only when it is idle
 * and no unknown one waits. A connection with closable work is closed only when none waits, too.
 */
export class Connections {
  readonly #open = new Set<Connection>();
  /** The connection of each socket; under TLS two share one. */
  readonly #of_socket = new WeakMap<object, Connection>();
  /**
   * The connections of unknown clients that wait for a request, a body or the reading of a response, longest
   * first.
   */
  readonly #waiting = new Set<Connection>();
  /** The connections that make room when none waits, longest first: idle ones of known clients, closable work. */
  readonly #closed_last = new Set<Connection>();
  readonly #by_address = new Map<string, number>();
  #is_draining = false;

  constructor(private limits: ConnectionLimits) {}

  get size(): number {
    return this.#open.size;
  }

  /** Bounds new connections; open ones stay, and idle ones make room as before. */
  setLimits(limits: ConnectionLimits): void {
    this.limits = limits;
  }

  /** Opens the connection of a new socket, or closes the socket and returns false. */
  open(socket: Socket): boolean {
    const { total, per_address } = this.limits;
    const address = clientAddress(null, socket.remoteAddress ?? null);
    const of_address = (this.#by_address.get(address) ?? 0) + 1;
    if ((per_address !== null && of_address > per_address) || !this.#makeRoom(total)) {
      socket.destroy();
      return false;
    }
    const connection: Connection = {
      address,
      port: socket.remotePort,
      requests: 0,
      is_known: false,
      unread_since_ms: null,
      newest: null,
      newest_askable: null,
      close: () => socket.destroy(),
    };
    this.#by_address.set(address, of_address);
    this.#open.add(connection);
    this.#of_socket.set(socket, connection);
    socket.once('close', () => this.#remove(connection));
    this.wait(connection);
    return true;
  }

  /** Notes that the connection of `socket` is encrypted, and read from `secure`. */
  secure(socket: Socket, secure: Socket): void {
    const connection = this.#of_socket.get(socket);
    if (connection !== undefined) this.#of_socket.set(secure, connection);
  }

  /** Returns the connection of a socket; undefined where none was opened. */
  of(socket: object): Connection | undefined {
    return this.#of_socket.get(socket);
  }

  /** Returns the connections with an unanswered request. */
  answering(): Connection[] {
    return [...this.#open].filter(({ requests }) => requests > 0);
  }

  /** Counts a request that begins. */
  begin(connection: Connection): void {
    connection.requests += 1;
    connection.is_known = false;
    this.work(connection);
  }

  /** Notes that the newest request is a known client's. */
  know(connection: Connection): void {
    connection.is_known = true;
    this.#waiting.delete(connection);
  }

  /** Notes that the connection waits for its client. */
  wait(connection: Connection): void {
    this.work(connection);
    if (connection.is_known || !this.#open.has(connection)) return;
    this.#waiting.add(connection);
  }

  /** Notes that the service works for the connection, which no longer waits for its client. */
  work(connection: Connection): void {
    this.#waiting.delete(connection);
    this.#closed_last.delete(connection);
  }

  /** Notes that the service works for the connection, which still makes room when none waits. */
  workClosable(connection: Connection): void {
    this.work(connection);
    if (this.#open.has(connection)) this.#closed_last.add(connection);
  }

  /** Counts a request that is answered. */
  end(connection: Connection): void {
    connection.requests -= 1;
    // The client has just read one of several responses, and gets new time for the next.
    connection.unread_since_ms = null;
    if (connection.requests > 0 || !this.#open.has(connection)) return;
    if (this.#is_draining) this.#close(connection);
    else if (connection.is_known) this.#closed_last.add(connection);
    else this.wait(connection);
  }

  /** Closes every idle connection, and every other one after its requests are answered. */
  drain(): void {
    this.#is_draining = true;
    for (const connection of [...this.#open]) if (connection.requests === 0) this.#close(connection);
  }

  /** Closes every connection. */
  closeAll(): void {
    for (const connection of [...this.#open]) this.#close(connection);
  }

  /** Closes the connections of clients that have left a response unread since before that time. */
  closeUnread(before_ms: number): void {
    for (const connection of [...this.#open]) {
      if (connection.unread_since_ms !== null && connection.unread_since_ms < before_ms)
        this.#close(connection);
    }
  }

  /** Removes a closed connection. */
  #remove(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.work(connection);
    const left = (this.#by_address.get(connection.address) ?? 0) - 1;
    if (left > 0) this.#by_address.set(connection.address, left);
    else this.#by_address.delete(connection.address);
  }

  #makeRoom(total: number): boolean {
    // There may be more than one, if the limit was lowered.
    while (this.#open.size >= total) {
      const connection = firstOf(this.#waiting) ?? firstOf(this.#closed_last);
      if (connection === undefined) return false;
      // Its client did not leave: the log tells the two apart.
      connection.newest?.body_failure.abort(overloaded('connections'));
      this.#close(connection);
    }
    return true;
  }

  #close(connection: Connection): void {
    this.#remove(connection);
    connection.close();
  }
}

function firstOf<Item>(items: ReadonlySet<Item>): Item | undefined {
  const [first] = items;
  return first;
}
