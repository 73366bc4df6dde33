import { KEY_LENGTH, KEY_PREFIX } from '../identifiers.ts';

/** How many characters of a key are stored and shown, to tell keys apart. */
const DISPLAY_PREFIX_LENGTH = 12;

const BEARER = /^bearer(?:[ \t]+(.*))?$/i;

/**
 * The API key that a request carries (contract: authentication): of `Authorization: Bearer`, else of `X-API-Key`. Null
 * when there is none, or when its value does not start like a key or is too short to be one (`missing_api_key`). A
 * Bearer header wins even when what it carries is no key.
 */
export function extractKey(headers: Headers): string | null {
  const bearer = BEARER.exec(headers.get('authorization')?.trim() ?? '');
  const value = bearer === null ? headers.get('x-api-key') : bearer[1];
  const key = value?.trim() ?? '';
  return key.startsWith(KEY_PREFIX) && key.length >= KEY_LENGTH ? key : null;
}

/** What is shown of a key: its first 12 characters. */
export function keyDisplayPrefix(secret: string): string {
  return secret.slice(0, DISPLAY_PREFIX_LENGTH);
}
