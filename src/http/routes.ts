/** Every path that the service knows, with the methods that it takes; a HEAD goes wherever a GET does. */
export const ROUTES = {
  '/v1/decisions': ['POST'],
  '/v1/systemone': ['POST'],
  '/v1/models': ['GET', 'HEAD'],
  '/webhooks/paddle': ['POST'],
  '/swagger': ['GET', 'HEAD'],
  '/swagger/json': ['GET', 'HEAD'],
  '/swagger/scalar.js': ['GET', 'HEAD'],
} as const satisfies Record<string, readonly string[]>;

export type KnownPath = keyof typeof ROUTES;

/** The value of `Allow` for a path. */
export function allowOf(path: KnownPath): string {
  return ROUTES[path].join(', ');
}

/** The path that a URL's path means, with or without a slash at its end; null when the service has no such path. */
export function knownPath(pathname: string): KnownPath | null {
  const path = pathname.length > 1 && pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
  return isKnown(path) ? path : null;
}

function isKnown(path: string): path is KnownPath {
  return Object.hasOwn(ROUTES, path);
}
