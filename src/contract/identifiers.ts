import { randomBytes } from 'node:crypto';
import { customAlphabet, nanoid } from 'nanoid';

const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomPart = customAlphabet(ALPHANUMERIC, 24);

/** The prefixes of ids by kind (contract: `dec_`, `req_`). */
const ID_PREFIXES = {
  user: 'user',
  organization: 'org',
  project: 'proj',
  key: 'key',
  payment: 'pay',
  entry: 'entry',
  invitation: 'inv',
  decision: 'dec',
  request: 'req',
  process: 'proc',
  session: 'sess',
  sign_in_account: 'acct',
  verification: 'ver',
  second_factor: 'factor',
  passkey: 'passkey',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/** The id of an entry by hand, as the command line or a page of the console draws it. */
export const ENTRY_ID = /^entry_[0-9A-Za-z_-]{16,64}$/;

/** The start of every API key (contract: authentication). */
export const KEY_PREFIX = 'sk_svc_';
const KEY_RANDOM_LENGTH = 32;
const LINK_TOKEN_BYTES = 32;
/** The length of a key in characters. */
export const KEY_LENGTH = KEY_PREFIX.length + KEY_RANDOM_LENGTH;

/** The source of ids and secrets; tests give their own. */
export interface Identifiers {
  /** Returns a new unique id such as `req_…`. */
  id(kind: IdKind): string;
  /** Returns a new API key: the prefix and 32 random characters of A-Z, a-z, 0-9, `-` and `_`. */
  apiKey(): string;
  /** Returns a secret for a mailed link: 32 random bytes as 43 characters of A-Z, a-z, 0-9, `-` and `_`. */
  linkToken(): string;
}

/** Ids from the system's cryptographic random source. */
export const randomIdentifiers: Identifiers = {
  id: (kind) => `${ID_PREFIXES[kind]}_${randomPart()}`,
  apiKey: () => KEY_PREFIX + nanoid(KEY_RANDOM_LENGTH),
  linkToken: () => randomBytes(LINK_TOKEN_BYTES).toString('base64url'),
};
