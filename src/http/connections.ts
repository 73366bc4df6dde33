/** How many connections may be open. */
export interface ConnectionLimits {
  readonly total: number;
  /** From one address; null where every connection comes from a proxy. */
  readonly per_address: number | null;
}

/** One open connection. */
export interface Connection {
  /** Who it is counted for. */
  readonly address: string;
  /** The client's port. */
  readonly port: number | undefined;
  /** Requests that are being answered on it; more than one where the client does not wait for answers. */
  requests: number;
  /** Since when a response waits to be read by the client, on the clock of `performance`; null when none does. */
  unread_since_ms: number | null;
  close(): void;
}

/**
 * The open connections. Above the limit of its address a new one is closed at once. Above the limit of all, the one
 * that has been without a request for longest makes room, so that clients who keep silent lock nobody out.
 */
export class Connections {
  readonly #open = new Set<Connection>();
  /** Those without a request, the one that has been so for longest first. */
  readonly #idle = new Set<Connection>();
  readonly #by_address = new Map<string, number>();
  #is_draining = false;

  constructor(private readonly limits: ConnectionLimits) {}

  get size(): number {
    return this.#open.size;
  }

  /** Opens a new connection, or closes it and returns false. */
  open(connection: Connection): boolean {
    const { total, per_address } = this.limits;
    const of_address = (this.#by_address.get(connection.address) ?? 0) + 1;
    if ((per_address !== null && of_address > per_address) || !this.#makeRoom(total)) {
      connection.close();
      return false;
    }
    this.#by_address.set(connection.address, of_address);
    this.#open.add(connection);
    this.#idle.add(connection);
    return true;
  }

  /** A request of the connection begins. */
  begin(connection: Connection): void {
    connection.requests += 1;
    this.#idle.delete(connection);
  }

  /** A request of the connection is answered. */
  end(connection: Connection): void {
    connection.requests -= 1;
    // Of several responses one was just read, which gives the client time for the next.
    connection.unread_since_ms = null;
    if (connection.requests > 0 || !this.#open.has(connection)) return;
    if (this.#is_draining) this.#close(connection);
    else this.#idle.add(connection);
  }

  /** The connection is closed. */
  remove(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.#idle.delete(connection);
    const left = (this.#by_address.get(connection.address) ?? 0) - 1;
    if (left > 0) this.#by_address.set(connection.address, left);
    else this.#by_address.delete(connection.address);
  }

  /** Closes every connection that has no request, and every other one when its requests are answered. */
  drain(): void {
    this.#is_draining = true;
    for (const connection of [...this.#idle]) this.#close(connection);
  }

  /** Closes every connection. */
  closeAll(): void {
    for (const connection of [...this.#open]) this.#close(connection);
  }

  /** Closes the connections whose clients have left a response unread since before that time. */
  closeUnread(before_ms: number): void {
    for (const connection of [...this.#open]) {
      if (connection.unread_since_ms !== null && connection.unread_since_ms < before_ms)
        this.#close(connection);
    }
  }

  #makeRoom(total: number): boolean {
    if (this.#open.size < total) return true;
    const [longest_idle] = this.#idle;
    if (longest_idle === undefined) return false;
    this.#close(longest_idle);
    return true;
  }

  #close(connection: Connection): void {
    this.remove(connection);
    connection.close();
  }
}
