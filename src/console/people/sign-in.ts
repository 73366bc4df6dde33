/** The parts of a request that sign-in needs. */
export interface Visit {
  /** The headers; only cookies, the user agent, and the host and origin of passkeys are read. */
  readonly headers: Headers;
  /** The client address that it counts by (`src/http/client-address.ts`). */
  readonly client_address: string;
}

/** A signed-in person, whose email address is verified. */
export interface SignedIn {
  readonly user_id: string;
  readonly email: string;
  readonly name: string;
  /** True if the user has the operator's power in the console. */
  readonly is_operator: boolean;
  /** The time at which the account was created. */
  readonly created_at_ms: number;
  /** The client address at the start of the session. */
  readonly client_address: string;
  readonly session_id: string;
  /** The value of `x-csrf-token` in changes: the same for the whole session. */
  readonly csrf_token: string;
  /** The time at which the session ends, unless it is used before. */
  readonly expires_at_ms: number;
  /** `Set-Cookie` values for the response, where the session was extended. Usually none. */
  readonly set_cookies: readonly string[];
}

/** Cookies for the response, each the value of one `Set-Cookie` header. */
export interface Cookies {
  readonly set_cookies: readonly string[];
}

/** The outcome of a right password: a session, or a sign-in that waits ten minutes for its second factor. */
export interface SignInStep extends Cookies {
  readonly needs_second_factor: boolean;
}

/** The second factor of a user: an app that shows codes, and recovery codes. */
export interface SecondFactor {
  readonly is_on: boolean;
  /** The recovery codes that were not used yet. */
  readonly recovery_codes_left: number;
}

/** A passkey, as its owner sees it. */
export interface Passkey {
  readonly id: string;
  readonly name: string;
  readonly created_at_ms: number;
  /** The last sign-in with it; null for none. */
  readonly last_used_at_ms: number | null;
}

/** The question that an authenticator signs; all texts of passkeys are base64url (WebAuthn). */
export interface PasskeyQuestion {
  readonly challenge: string;
  /** The domain that passkeys belong to. */
  readonly domain: string;
}

/** The description of a passkey that a browser makes. */
export interface PasskeyRequest extends PasskeyQuestion {
  readonly service_name: string;
  readonly user_handle: string;
  readonly user_name: string;
  /** COSE's numbers of the algorithms, the preferred one first. */
  readonly algorithms: readonly number[];
  /** The passkeys that the user has, so that no authenticator makes a second one. */
  readonly known_ids: readonly string[];
}

/** A passkey that a browser has made. */
export interface NewPasskey {
  /** The owner's name of it; empty for that of the authenticator. */
  readonly name: string;
  readonly id: string;
  readonly client_data: string;
  readonly attestation: string;
  /** The ways to the authenticator, with commas. */
  readonly transports: string;
}

/** The answer of an authenticator to a question. */
export interface PasskeyAnswer {
  readonly id: string;
  readonly client_data: string;
  readonly authenticator_data: string;
  readonly signature: string;
}

/** An active session, as its user sees it. */
export interface OwnSession {
  readonly id: string;
  /** True if it is the session of the request. */
  readonly is_current: boolean;
  /** Empty where the client sent none. */
  readonly user_agent: string;
  /** An IPv4 address or the /64 network of an IPv6 address. */
  readonly client_address: string;
  readonly created_at_ms: number;
  /** Exact to five minutes. */
  readonly last_seen_at_ms: number;
  readonly expires_at_ms: number;
}

/** The rule of sign-up. */
export type SignUpRule = 'open' | 'invited';
