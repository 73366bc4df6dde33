import type { BodyShare } from './body-budget.ts';

/** The limits of the bytes of unknown clients' arriving bodies. */
export interface UnknownBodyLimits {
  readonly total_bytes: number;
  /** The limit for the bodies of one address. */
  readonly address_bytes: number;
  /**
   * The least that a body counts for: the memory of its connection, even when it has hardly sent anything.
   */
  readonly body_bytes_min: number;
}

/** Allows 128 idle bodies from one address, and 2,048 from all; a webhook of the largest size has room. */
const UNKNOWN_BODY_LIMITS: UnknownBodyLimits = {
  total_bytes: 32 * 1_048_576,
  address_bytes: 2 * 1_048_576,
  body_bytes_min: 16_384,
};

/** An arriving body. */
interface Body {
  readonly address: string;
  readonly end: () => void;
  bytes: number;
}

/** The bodies of one address. */
interface OfAddress {
  readonly bodies: Set<Body>;
  bytes: number;
}

/**
 * The memory for arriving bodies of unknown clients, by address and in total. A new body always finds room,
 * because the oldest one ends: first of its own address and then of all. An honest body arrives within
 * moments, so the oldest one is one that is kept open.
 */
export class UnknownBodies {
  /** The bodies, oldest first. */
  readonly #bodies = new Set<Body>();
  readonly #by_address = new Map<string, OfAddress>();
  #bytes = 0;

  constructor(private readonly limits: UnknownBodyLimits = UNKNOWN_BODY_LIMITS) {}

  /** The bytes taken now, by all addresses. */
  get taken_bytes(): number {
    return this.#bytes;
  }

  /** Returns the share of a new body; `end` is called once if it must end to make room. */
  open(address: string, end: () => void): BodyShare {
    const body: Body = { address, end, bytes: 0 };
    const of_address = this.#by_address.get(address) ?? { bodies: new Set(), bytes: 0 };
    this.#by_address.set(address, of_address);
    this.#bodies.add(body);
    of_address.bodies.add(body);
    const { body_bytes_min } = this.limits;
    let received = 0;
    this.#grow(body, of_address, body_bytes_min);
    return {
      take: (bytes) => {
        received += bytes;
        this.#grow(body, of_address, Math.max(received, body_bytes_min));
        return this.#bodies.has(body);
      },
      close: () => this.#remove(body),
    };
  }

  #grow(body: Body, of_address: OfAddress, bytes: number): void {
    if (!this.#bodies.has(body)) return;
    const more = bytes - body.bytes;
    body.bytes = bytes;
    of_address.bytes += more;
    this.#bytes += more;
    while (of_address.bytes > this.limits.address_bytes) this.#endFirst(of_address.bodies);
    while (this.#bytes > this.limits.total_bytes) this.#endFirst(this.#bodies);
  }

  #endFirst(bodies: ReadonlySet<Body>): void {
    for (const body of bodies) {
      this.#remove(body);
      body.end();
      return;
    }
  }

  #remove(body: Body): void {
    if (!this.#bodies.delete(body)) return;
    this.#bytes -= body.bytes;
    const of_address = this.#by_address.get(body.address);
    if (of_address === undefined) return;
    of_address.bodies.delete(body);
    of_address.bytes -= body.bytes;
    if (of_address.bodies.size === 0) this.#by_address.delete(body.address);
  }
}
