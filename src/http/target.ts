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

/** A request line with a path; the method is any token (RFC 9110, 5.6.2). */
const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) (\/\S*) HTTP\/1\.[01]\r\n/;

/** The method and the target of the request that `text` begins with; null when it begins with none. */
export function firstLine(text: string): { readonly method: string; readonly target: string } | null {
  const [, method, target] = REQUEST_LINE.exec(text) ?? [];
  return method === undefined || target === undefined ? null : { method, target };
}
