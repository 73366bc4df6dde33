import type { Cookies } from '../people/sign-in.ts';

/** The part of Elysia's `set` with the headers. */
interface ResponseHeaders {
  readonly headers: { 'set-cookie'?: string | string[] };
}

/** Adds these cookies to the response. */
export function giveCookies({ headers }: ResponseHeaders, { set_cookies }: Cookies): void {
  if (set_cookies.length > 0) headers['set-cookie'] = [...set_cookies];
}
