import { defineRoute, type Route } from './route.ts';
import { fileResponse, madeOnce, PAGE_HEADERS, type StaticFile } from './static-files.ts';

/** A page, or a file of one, whose content changes only with the version or with settings. */
interface StaticRoute {
  readonly path: string;
  /** False if the path does not exist. */
  readonly is_served: boolean;
  readonly make: () => Promise<StaticFile>;
}

/** Returns the route of a file that is made at its first request. Browsers revalidate it each time. */
export function staticRoute({ path, is_served, make }: StaticRoute): Route {
  const file = madeOnce(make);
  return defineRoute({
    method: 'GET',
    path,
    refusals: [],
    operation: null,
    headers: { ...PAGE_HEADERS, 'cache-control': 'no-cache' },
    handle: is_served ? async (request) => fileResponse(request, await file(), {}) : null,
  });
}
