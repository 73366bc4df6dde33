import { timingSafeEqual } from 'node:crypto';
import { refused } from './refusals.ts';

/** The header in which the pages repeat the token of their session. */
export const CSRF_HEADER = 'x-csrf-token';

const READING: readonly string[] = ['GET', 'HEAD'];

/** Whether a request changes nothing. */
export function isReading(request: Request): boolean {
  return READING.includes(request.method);
}

/**
 * Throws `wrong_origin` unless a change was asked for by a page of the console itself. Browsers name the origin of
 * every change, and no page can choose it. Without a configured origin it is compared with the `Host` that was asked:
 * a page under another name has no cookie of ours under it.
 */
export function requireOwnPage(request: Request, public_origin: string | null): void {
  if (isReading(request)) return;
  const origin = request.headers.get('origin');
  const site = request.headers.get('sec-fetch-site');
  if (origin === null || (site !== null && site !== 'same-origin')) throw refused('wrong_origin');
  const is_own =
    public_origin === null ? hostOf(origin) === request.headers.get('host') : origin === public_origin;
  if (!is_own) throw refused('wrong_origin');
  const type = request.headers.get('content-type');
  if (type !== null && type.split(';')[0]?.trim() !== 'application/json')
    throw refused('unsupported_media_type');
}

/** Throws `invalid_csrf_token` unless a change carries the token of its session. */
export function requireToken(request: Request, csrf_token: string): void {
  if (isReading(request)) return;
  const given = Buffer.from(request.headers.get(CSRF_HEADER) ?? '');
  const expected = Buffer.from(csrf_token);
  if (given.length !== expected.length || !timingSafeEqual(given, expected))
    throw refused('invalid_csrf_token');
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}
