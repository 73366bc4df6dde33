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
  /** Whether its newest request came from a known client: with the key of an organization that may ask. */
  is_known: boolean;
  /** Since when a response waits to be read by the client, on the clock of `performance`; null when none does. */
  unread_since_ms: number | null;
  close(): void;
}

/**
 * The open connections. Above the limit of its address a new one is closed at once. Above the limit of all, the one
 * that has waited for its client for longest makes room. So clients that are silent, do not finish a body or do not read
 * a response lock nobody out. A known client's connection goes only when it is idle and no unknown one waits.
 */
export class Connections {
  readonly #open = new Set<Connection>();
  /** Those of unknown clients that wait for a request, a body or the reading of a response, for longest first. */
  readonly #waiting = new Set<Connection>();
  /** Those of known clients without a request, the one that has been so for longest first. */
  readonly #idle_known = new Set<Connection>();
  readonly #by_address = new Map<string, number>();
  #is_draining = false;

  constructor(private limits: ConnectionLimits) {}

  get size(): number {
    return this.#open.size;
  }

  /** Bounds what is opened from now on; connections that are open stay, and idle ones make room as ever. */
  setLimits(limits: ConnectionLimits): void {
    this.limits = limits;
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
    this.wait(connection);
    return true;
  }

  /** A request of the connection begins. */
  begin(connection: Connection): void {
    connection.requests += 1;
    connection.is_known = false;
    this.work(connection);
  }

  /** The newest request of the connection turns out to be a known client's. */
  know(connection: Connection): void {
    connection.is_known = true;
    this.#waiting.delete(connection);
  }

  /** The connection waits for its client from now on. */
  wait(connection: Connection): void {
    this.work(connection);
    if (connection.is_known || !this.#open.has(connection)) return;
    this.#waiting.add(connection);
  }

  /** The connection does not wait for its client any more: the service works for it. */
  work(connection: Connection): void {
    this.#waiting.delete(connection);
    this.#idle_known.delete(connection);
  }

  /** A request of the connection is answered. */
  end(connection: Connection): void {
    connection.requests -= 1;
    // The client has just read one of several responses, which gives it time for the next.
    connection.unread_since_ms = null;
    if (connection.requests > 0 || !this.#open.has(connection)) return;
    if (this.#is_draining) this.#close(connection);
    else if (connection.is_known) this.#idle_known.add(connection);
    else this.wait(connection);
  }

  /** The connection is closed. */
  remove(connection: Connection): void {
    if (!this.#open.delete(connection)) return;
    this.work(connection);
    const left = (this.#by_address.get(connection.address) ?? 0) - 1;
    if (left > 0) this.#by_address.set(connection.address, left);
    else this.#by_address.delete(connection.address);
  }

  /** Closes every connection that has no request, and every other one when its requests are answered. */
  drain(): void {
    this.#is_draining = true;
    for (const connection of [...this.#open]) if (connection.requests === 0) this.#close(connection);
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
    // More than one where the limit was lowered.
    while (this.#open.size >= total) {
      const connection = firstOf(this.#waiting) ?? firstOf(this.#idle_known);
      if (connection === undefined) return false;
      this.#close(connection);
    }
    return true;
  }

  #close(connection: Connection): void {
    this.remove(connection);
    connection.close();
  }
}

function firstOf<Item>(items: ReadonlySet<Item>): Item | undefined {
  const [first] = items;
  return first;
}
