import { timingSafeEqual } from 'node:crypto';
import { refused } from './refusals.ts';

/** The header in which the pages repeat the token of their session. */
export const CSRF_HEADER = 'x-csrf-token';

/** Media types that no form of another site can send: JSON, and lines of it. */
const JSON_TYPES: readonly (string | undefined)[] = ['application/json', 'application/x-ndjson'];

const READING: readonly string[] = ['GET', 'HEAD'];

/** Returns true if a request changes nothing. */
export function isReading(request: Request): boolean {
  return READING.includes(request.method);
}

/** The address of the console. */
export interface OwnOrigin {
  /** The origin, such as `https://tds.example.com`; null to trust the `Host` of requests. */
  readonly public_origin: string | null;
  /** True if it is certainly https; if false, a proxy may still use https. */
  readonly is_https: boolean;
}

/**
 * Throws `wrong_origin` unless a change comes from a page of the console itself. Browsers send the origin
 * with every change, and no page can choose it. Without a configured origin it is compared with the request's
 * `Host`. A page under another name has no cookie of ours there. Throws `unsupported_media_type` for a body
 * that is not JSON.
 */
export function requireOwnPage(request: Request, own: OwnOrigin): void {
  if (isReading(request)) return;
  const { headers } = request;
  const origin = headers.get('origin');
  const site = headers.get('sec-fetch-site');
  if (origin === null || (site !== null && site !== 'same-origin')) throw refused('wrong_origin');
  if (!isOwn(origin, headers.get('host'), own)) throw refused('wrong_origin');
  const type = headers.get('content-type');
  const is_json = JSON_TYPES.includes(type?.split(';')[0]?.trim());
  if (!is_json && (type !== null || request.body !== null)) throw refused('unsupported_media_type');
}

function isOwn(origin: string, host: string | null, { public_origin, is_https }: OwnOrigin): boolean {
  if (public_origin !== null) return origin === public_origin;
  const schemes = is_https ? ['https:'] : ['http:', 'https:'];
  // A sandboxed page has the origin "null".
  if (!URL.canParse(origin)) return false;
  const named = new URL(origin);
  return schemes.includes(named.protocol) && named.host === host;
}

/** Throws `invalid_csrf_token` unless a change has the token of its session. */
export function requireToken(request: Request, csrf_token: string): void {
  if (isReading(request)) return;
  const given = Buffer.from(request.headers.get(CSRF_HEADER) ?? '');
  const expected = Buffer.from(csrf_token);
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw refused('invalid_csrf_token');
}
