import type { IncomingMessage } from 'node:http';
import { clientAddress } from './client-address.ts';

/**
 * Tells which client a request is of. Behind a proxy, which names the client in a header, it also limits the requests
 * that a client has in flight; without one the connections of an address are limited, and with them its requests.
 */
export class RequestsByClient {
  readonly #in_flight = new Map<string, number>();

  /** `header` is in lower case; null without a proxy. */
  constructor(
    private readonly header: string | null,
    private readonly limit: number,
  ) {}

  /** The address of the client that sent the request over a connection of `peer_address`. */
  clientOf(message: IncomingMessage, peer_address: string): string {
    if (this.header === null) return peer_address;
    return clientAddress(forwardedBy(message, this.header), null) || peer_address;
  }

  /** A request of the client begins. Returns false where the client has too many; `end` must be called even then. */
  begin(client: string): boolean {
    if (this.header === null) return true;
    const count = (this.#in_flight.get(client) ?? 0) + 1;
    this.#in_flight.set(client, count);
    return count <= this.limit;
  }

  /** A request of the client is answered. */
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
