import { randomBytes } from 'node:crypto';
import { customAlphabet, nanoid } from 'nanoid';

const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const randomPart = customAlphabet(ALPHANUMERIC, 24);

/** What an id can name; the prefix says what it is (contract: `dec_`, `req_`). */
const ID_PREFIXES = {
  user: 'user',
  organization: 'org',
  project: 'proj',
  key: 'key',
  payment: 'pay',
  invitation: 'inv',
  decision: 'dec',
  request: 'req',
  process: 'proc',
  session: 'sess',
  sign_in_account: 'acct',
  verification: 'ver',
} as const;

export type IdKind = keyof typeof ID_PREFIXES;

/** Every API key starts with this (contract: authentication). */
export const KEY_PREFIX = 'sk_svc_';
const KEY_RANDOM_LENGTH = 32;
const LINK_TOKEN_BYTES = 32;
/** A full key in characters. */
export const KEY_LENGTH = KEY_PREFIX.length + KEY_RANDOM_LENGTH;

/** Where ids and secrets come from; tests give their own. */
export interface Identifiers {
  /** A new unique id such as `req_…`. */
  id(kind: IdKind): string;
  /** A new API key: the prefix and 32 random characters of A-Z, a-z, 0-9, `-` and `_`. */
  apiKey(): string;
  /** A secret for a link that is mailed: 32 random bytes as 43 characters of A-Z, a-z, 0-9, `-` and `_`. */
  linkToken(): string;
}

/** Ids from the system's cryptographic random source. */
export const randomIdentifiers: Identifiers = {
  id: (kind) => `${ID_PREFIXES[kind]}_${randomPart()}`,
  apiKey: () => KEY_PREFIX + nanoid(KEY_RANDOM_LENGTH),
  linkToken: () => randomBytes(LINK_TOKEN_BYTES).toString('base64url'),
};
