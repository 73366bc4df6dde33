/** The scheme and the host of an absolute URL, whether or not they are well formed. */
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/**
 * The URL of a request's target, on `localhost`: no route depends on the host, which may be missing (as in HTTP/1.0)
 * or be no host at all. A fragment, which has no place in a target, is left out.
 */
export function urlOf(target: string): string {
  const [path = ''] = target.replace(ORIGIN, '').split('#');
  return `http://localhost${path.startsWith('/') ? '' : '/'}${path}`;
}
