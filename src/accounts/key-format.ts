import { ERRORS } from '../errors.ts';
import { KEY_LENGTH, KEY_PREFIX } from '../identifiers.ts';

/** How many characters of a key are stored and shown, to tell keys apart. */
const DISPLAY_PREFIX_LENGTH = 12;

const BEARER = /^bearer(?:[ \t]+(.*))?$/i;

const SEND_BEARER = 'send "Authorization: Bearer <API_KEY>"';

/** Why a request carries nothing that could be a key, for its client to read. Never quotes what it carries. */
export class MissingKey {
  constructor(readonly message: string) {}
}

/**
 * The API key that a request carries (contract: authentication): of `Authorization: Bearer`, else of `X-API-Key`.
 * `MissingKey` when there is none, or when its value does not start like a key or is too short to be one
 * (`missing_api_key`). A Bearer header wins even when what it carries is no key.
 */
export function extractKey(headers: Headers): string | MissingKey {
  const authorization = headers.get('authorization')?.trim() ?? '';
  const bearer = BEARER.exec(authorization);
  const value = bearer === null ? headers.get('x-api-key') : bearer[1];
  const key = value?.trim() ?? '';
  if (key.startsWith(KEY_PREFIX) && key.length >= KEY_LENGTH) return key;
  return new MissingKey(key === '' ? whyNoValue(authorization, bearer !== null) : whyNoKey(key));
}

function whyNoValue(authorization: string, is_bearer: boolean): string {
  if (is_bearer) return `The Authorization header has the scheme Bearer and no key: ${SEND_BEARER}.`;
  if (authorization === '') return ERRORS.missing_api_key.message;
  return /\s/.test(authorization)
    ? `The Authorization header has another scheme than Bearer: ${SEND_BEARER}.`
    : `The Authorization header has no scheme: ${SEND_BEARER}.`;
}

function whyNoKey(value: string): string {
  return value.startsWith(KEY_PREFIX)
    ? `The API key is cut: it has ${value.length} characters of ${KEY_LENGTH}.`
    : `What was sent as API key is none of this service: its keys start with "${KEY_PREFIX}".`;
}

/** What is shown of a key: its first 12 characters. */
export function keyDisplayPrefix(secret: string): string {
  return secret.slice(0, DISPLAY_PREFIX_LENGTH);
}
