import type { KnownPath } from './context.ts';
import type { Route } from './route.ts';

/** Every path of a list of routes. */
export class PathTable {
  readonly #paths: ReadonlyMap<string, KnownPath>;

  /** Throws when two routes have one method and path, or when a path ends with a slash. */
  constructor(routes: readonly Route[]) {
    const by_path = Map.groupBy(routes, ({ path }) => path);
    this.#paths = new Map([...by_path].map(([path, of_path]) => [path, knownPath(path, of_path)]));
  }

  /** The path that a URL's path means, with or without a slash at its end; null when there is none. */
  find(pathname: string): KnownPath | null {
    const path = pathname.length > 1 && pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
    return this.#paths.get(path) ?? null;
  }
}

function knownPath(path: string, routes: readonly Route[]): KnownPath {
  if (path.length > 1 && path.endsWith('/'))
    throw new Error(`the path of a route ends with a slash: ${path}`);
  const methods = routes.map(({ method }) => method);
  if (new Set(methods).size < methods.length) throw new Error(`two routes have one method of ${path}`);
  const allowed = routes
    .filter(({ handle }) => handle !== null)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return {
    path,
    headers: Object.assign({}, ...routes.map(({ headers }) => headers)),
    allow: allowed.length === 0 ? null : allowed.join(', '),
    ...(routes.some(({ is_unlisted }) => is_unlisted) ? { is_unlisted: true } : {}),
  };
}
