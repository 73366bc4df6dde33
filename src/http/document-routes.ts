import { DOCUMENTS, documentPage, documentPath } from '../docs/documents.ts';
import { SCRIPT_PATH, STYLE_PATH } from '../docs/layout.ts';
import { projectFile } from '../files/project-root.ts';
import { jsonResponse } from './responses.ts';
import { defineRoute, type Route } from './route.ts';
import { type Site, siteLinks } from './site.ts';
import { staticFile, staticRoute } from './static-files.ts';

const utf8 = new TextEncoder();

/**
 * Returns the routes of the documents below `/docs`, and of the files that their pages and the reference
 * load. The errors of `routes` are documented.
 */
export function documentRoutes(routes: readonly Route[], site: Site): readonly Route[] {
  const codes = routes.filter(({ operation }) => operation !== null).flatMap(({ refusals }) => refusals);
  const bar = siteLinks(site, '/docs');
  const pages = DOCUMENTS.map((name) => {
    const make = async () => {
      const html = await documentPage(name, { codes, bar, url: site.public_url ?? site.own_url() });
      return await staticFile('index.html', utf8.encode(html));
    };
    return staticRoute({ path: documentPath(name), is_served: true, make });
  });
  const style = async () =>
    await staticFile('style.css', await joined(['src/docs/assets/palette.css', 'src/docs/assets/style.css']));
  const script = async () => await staticFile('page.js', await joined(['src/docs/assets/page.js']));
  return [
    rootRoute(site),
    ...pages,
    staticRoute({ path: STYLE_PATH, is_served: true, make: style }),
    staticRoute({ path: SCRIPT_PATH, is_served: true, make: script }),
  ];
}

/**
 * `GET /`, for people who know only the address of the service. A browser is led to the documents, whose bar
 * leads to the console. Every other client gets the paths of these as JSON.
 */
function rootRoute(site: Site): Route {
  const paths = {
    docs: documentPath('quickstart'),
    reference: site.has_reference ? '/swagger' : undefined,
    console: site.has_console ? '/console' : undefined,
  };
  return defineRoute({
    method: 'GET',
    path: '/',
    refusals: [],
    operation: null,
    headers: { vary: 'accept', 'cache-control': 'no-cache' },
    handle: ({ headers }, { request_id }) =>
      headers.get('accept')?.includes('text/html') === true
        ? new Response(null, { status: 302, headers: { location: paths.docs } })
        : jsonResponse(request_id, 200, { name: 'Typed Decision Service', ...paths }),
  });
}

/** Returns the joined files of the program. */
async function joined(paths: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
  const texts = await Promise.all(paths.map((path) => Bun.file(projectFile(path)).text()));
  return utf8.encode(texts.join('\n'));
}
