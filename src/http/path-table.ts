import type { KnownPath } from './context.ts';
import type { Route, ServedRoute } from './route.ts';

/** A parameter of a route's path, which stands for one whole segment. */
const PARAMETER = /\{(\w+)\}/g;

/**
 * Returns a request's value of the parameter of its route's path; null for an invalid encoding. A path has
 * one parameter at most.
 */
export function pathParameter(path: string, request: Request): string | null {
  const place = path.split('/').findIndex((segment) => segment.startsWith('{'));
  try {
    return decodeURIComponent(new URL(request.url).pathname.split('/')[place] ?? '');
  } catch {
    // The client's fault: nothing has such a name.
    return null;
  }
}

/** The router: every path of a list of routes, and its route of each method. */
export class PathTable {
  readonly #paths: ReadonlyMap<string, KnownPath>;
  /** The paths with parameters. */
  readonly #patterns: readonly { readonly pattern: RegExp; readonly known: KnownPath }[];
  /** The routes that this service has, by method and path. */
  readonly #routes: ReadonlyMap<string, ServedRoute>;

  /** Throws when two routes have one method and path, or when a path ends with a slash. */
  constructor(routes: readonly Route[]) {
    const by_path = Map.groupBy(routes, ({ path }) => path);
    this.#paths = new Map([...by_path].map(([path, of_path]) => [path, knownPath(path, of_path)]));
    this.#patterns = [...this.#paths.values()]
      .filter(({ path }) => path.includes('{'))
      .map((known) => ({ pattern: new RegExp(`^${known.path.replace(PARAMETER, '[^/]+')}$`), known }));
    this.#routes = new Map(routes.filter(isServed).map((route) => [keyOf(route.method, route), route]));
  }

  /** Returns the route of a path and method, a HEAD's as a GET's; undefined where this service has none. */
  route(path: KnownPath, method: string): ServedRoute | undefined {
    return this.#routes.get(keyOf(method === 'HEAD' ? 'GET' : method, path));
  }

  /** Returns the path of a URL's path, with or without a trailing slash; null when there is none. */
  find(pathname: string): KnownPath | null {
    const path = pathname.length > 1 && pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
    const exact = this.#paths.get(path);
    return exact ?? this.#patterns.find(({ pattern }) => pattern.test(path))?.known ?? null;
  }
}

function isServed(route: Route): route is ServedRoute {
  return route.handle !== null;
}

function keyOf(method: string, { path }: { readonly path: string }): string {
  return `${method} ${path}`;
}

function knownPath(path: string, routes: readonly Route[]): KnownPath {
  if (path.length > 1 && path.endsWith('/'))
    throw new Error(`the path of a route ends with a slash: ${path}`);
  const methods = routes.map(({ method }) => method);
  if (new Set(methods).size < methods.length) throw new Error(`two routes have one method of ${path}`);
  const allowed = routes
    .filter(isServed)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return {
    path,
    headers: Object.assign({}, ...routes.map(({ headers }) => headers)),
    request_id_copy: routes.find(({ request_id_copy }) => request_id_copy)?.request_id_copy ?? null,
    allow: allowed.length === 0 ? null : allowed.join(', '),
    ...(routes.some(({ is_unlisted }) => is_unlisted) ? { is_unlisted: true } : {}),
  };
}
