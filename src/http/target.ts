/** The scheme and the host of an absolute URL. Neither must be well formed. */
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/**
 * Returns the URL of a request's target (the path, or the absolute URL, of its request line), on `localhost`.
 * The host is replaced because no route depends on it, and because it may be missing (HTTP/1.0) or malformed.
 * A fragment is dropped, because RFC 9112 allows none in a target.
 */
export function urlOf(target: string): string {
  const [path = ''] = target.replace(ORIGIN, '').split('#');
  return `http://localhost${path.startsWith('/') ? '' : '/'}${path}`;
}

/**
 * The parts of a path that programs read differently: a backslash, a segment of dots, encoded or not, and a
 * control character.
 */
const AMBIGUOUS = /\\|%5c|(?:^|\/|%2f)(?:\.|%2e){1,2}(?:\/|%2f|$)|[\0- \x7f]/i;

/**
 * Returns true if the path of a target may be read as another path. A proxy could let it through as a
 * harmless path, while the service reads one below `/console`.
 */
export function isAmbiguous(target: string): boolean {
  const [path = ''] = target.replace(ORIGIN, '').split(/[?#]/);
  return AMBIGUOUS.test(path);
}

/** A request line whose target is a path. The method is any token (RFC 9110, 5.6.2). */
const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) (\/\S*) HTTP\/1\.[01]\r\n/;

/** Returns the method and the target of the request line at the start of `text`; null when there is none. */
export function firstLine(text: string): { readonly method: string; readonly target: string } | null {
  const [, method, target] = REQUEST_LINE.exec(text) ?? [];
  return method === undefined || target === undefined ? null : { method, target };
}
