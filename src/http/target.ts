/** The scheme and the host of an absolute URL, whether or not they are well formed. */
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/**
 * The request with a URL whose path can be told: itself, or, when its Host header is missing (as in HTTP/1.0) or is no
 * host, or when its target has a fragment, the same request on `localhost` without it. No route depends on the host.
 */
export function withPlainUrl(request: Request): Request {
  const { url } = request;
  if (URL.canParse(url) && !url.includes('#')) return request;
  const [target = ''] = url.replace(ORIGIN, '').split('#');
  return new Request(`http://localhost${target.startsWith('/') ? '' : '/'}${target}`, request);
}
