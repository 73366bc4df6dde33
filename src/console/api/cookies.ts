import type { Cookies } from '../people/sign-in.ts';

/** The part of Elysia's `set` that takes headers. */
interface ResponseHeaders {
  readonly headers: { 'set-cookie'?: string | string[] };
}

/** Answers with these cookies. */
export function giveCookies({ headers }: ResponseHeaders, { set_cookies }: Cookies): void {
  if (set_cookies.length > 0) headers['set-cookie'] = [...set_cookies];
}
