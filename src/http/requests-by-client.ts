import type { IncomingMessage } from 'node:http';
import { clientAddress } from './client-address.ts';

/**
 * Finds the client of a request behind a proxy, which names the client in a header, and limits a client's
 * requests in flight. Without a proxy the limit of connections by address does so.
 */
export class RequestsByClient {
  readonly #in_flight = new Map<string, number>();

  /** `header` is in lower case. */
  constructor(
    private readonly header: string,
    private limit: number,
  ) {}

  /** Bounds new requests. */
  setLimit(limit: number): void {
    this.limit = limit;
  }

  /** Returns the address of the client that sent the request over a connection of `peer_address`. */
  clientOf(message: IncomingMessage, peer_address: string): string {
    return clientAddress(forwardedBy(message, this.header), null) || peer_address;
  }

  /**
   * Counts a request that begins. Returns false where the client has too many; `end` must be called even
   * then.
   */
  begin(client: string): boolean {
    const count = (this.#in_flight.get(client) ?? 0) + 1;
    this.#in_flight.set(client, count);
    return count <= this.limit;
  }

  /** Counts a request that is answered. */
  end(client: string): void {
    const left = (this.#in_flight.get(client) ?? 0) - 1;
    if (left > 0) this.#in_flight.set(client, left);
    else this.#in_flight.delete(client);
  }
}

function forwardedBy({ headers }: IncomingMessage, header: string): string | null {
  const value = headers[header];
  return (Array.isArray(value) ? value.join(',') : value) ?? null;
}
