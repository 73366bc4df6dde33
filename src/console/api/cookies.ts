import type { Static } from '@sinclair/typebox';
import type { Cookies } from '../people/sign-in.ts';
import type { Done } from './schemas.ts';

/** The part of Elysia's `set` with the headers. */
interface ResponseHeaders {
  readonly headers: { 'set-cookie'?: string | string[] };
}

/** Adds these cookies to the response. */
export function giveCookies({ headers }: ResponseHeaders, { set_cookies }: Cookies): void {
  if (set_cookies.length > 0) headers['set-cookie'] = [...set_cookies];
}

/** Adds the cookies of a change to the response, and resolves with that of a change without a result. */
export async function doneWith(set: ResponseHeaders, change: Promise<Cookies>): Promise<Static<typeof Done>> {
  giveCookies(set, await change);
  return { done: true };
}
