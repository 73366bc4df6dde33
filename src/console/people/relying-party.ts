import { isIP } from 'node:net';

/** The owner of passkeys (WebAuthn): one domain, and the only origin whose pages may use them. */
export interface RelyingParty {
  readonly domain: string;
  readonly origin: string;
}

/** The only name without https that browsers give passkeys to. */
export const LOCAL_DOMAIN = 'localhost';

/**
 * Returns the relying party of the console's public address. Returns null where browsers offer no passkeys: without
 * https, and for an IP address.
 */
export function relyingPartyAt(public_url: string): RelyingParty | null {
  const { protocol, hostname, origin } = new URL(public_url);
  const is_trusted = protocol === 'https:' || hostname === LOCAL_DOMAIN;
  // The brackets are those of an IPv6 address.
  if (!is_trusted || isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0) return null;
  return { domain: hostname, origin };
}

/** The passkeys of a console: for its public address, or without one for pages of this machine. */
export class RelyingParties {
  /** The party of the public address; null without one, or where it can have no passkeys. */
  readonly of_public_url: RelyingParty | null;
  readonly #takes_local: boolean;

  constructor(public_url: string | null) {
    this.of_public_url = public_url === null ? null : relyingPartyAt(public_url);
    this.#takes_local = public_url === null;
  }

  /** Returns true if the page of a request can use passkeys, by its `Host`. */
  isOffered(headers: Headers): boolean {
    return this.of_public_url !== null || this.#isLocal(`http://${headers.get('host')}`);
  }

  /** Returns the party of a change, whose `Origin` was compared with the `Host`; null where passkeys are not offered. */
  of(headers: Headers): RelyingParty | null {
    const origin = headers.get('origin') ?? '';
    return this.of_public_url ?? (this.#isLocal(origin) ? { domain: LOCAL_DOMAIN, origin } : null);
  }

  #isLocal(address: string): boolean {
    return this.#takes_local && URL.canParse(address) && new URL(address).hostname === LOCAL_DOMAIN;
  }
}
