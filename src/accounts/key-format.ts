import { KEY_LENGTH, KEY_PREFIX } from '../contract/identifiers.ts';
import { ERRORS } from '../errors/errors.ts';

/** The characters of a key that are stored and shown, to tell keys apart. */
const DISPLAY_PREFIX_LENGTH = 12;

const BEARER = /^bearer(?:[ \t]+(.*))?$/i;

const SEND_BEARER = 'send "Authorization: Bearer <API_KEY>"';

/** The reason why a request has no key, as a message for its client. It never quotes the request. */
export class MissingKey {
  constructor(readonly message: string) {}
}

/**
 * Returns the API key of a request (contract: authentication): from `Authorization: Bearer`, else from
 * `X-API-Key`. Returns `MissingKey` when there is none, or when its value has the wrong start or is too short
 * (`missing_api_key`). A Bearer header takes precedence, even when it holds no key.
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

/** Returns the message for a key that does not exist. Headers of one name that are sent twice arrive as one value. */
export function whyUnknown(key: string): string {
  return key.includes(KEY_PREFIX, 1)
    ? 'The API key was sent more than once: send it in one header.'
    : ERRORS.invalid_api_key.message;
}

/** Returns the part of a key that is shown: its first 12 characters. */
export function keyDisplayPrefix(secret: string): string {
  return secret.slice(0, DISPLAY_PREFIX_LENGTH);
}
