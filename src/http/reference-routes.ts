import { swagger } from '@elysiajs/swagger';
import { Elysia } from 'elysia';
import { version } from '../../package.json' with { type: 'json' };
import { checkedDocument } from '../docs/openapi-document.ts';
import { referencePage } from '../docs/reference-page.ts';
import { documentedSchemas, openApiOperation } from './openapi.ts';
import type { Route } from './route.ts';
import { type Site, siteLinks } from './site.ts';
import { ADDITIONS } from './specification-additions.ts';
import { staticFile, staticRoute } from './static-files.ts';

const PAGE_PATH = '/swagger';
const DOCUMENT_PATH = '/openapi.json';

const utf8 = new TextEncoder();

/**
 * Returns the API reference of these routes: its OpenAPI document and its page; absent where the site has
 * none.
 */
export function referenceRoutes(routes: readonly Route[], site: Site): readonly Route[] {
  const is_served = site.has_reference;
  const document = () => documentOf(routes, site.public_url);
  const json = async () => await staticFile('openapi.json', utf8.encode(JSON.stringify(await document())));
  const page = async () => {
    const html = referencePage(checkedDocument(await document()), siteLinks(site, PAGE_PATH));
    return await staticFile('index.html', utf8.encode(html));
  };
  return [
    staticRoute({ path: PAGE_PATH, is_served, make: page }),
    staticRoute({ path: DOCUMENT_PATH, is_served, make: json }),
    // The default address of @elysiajs/swagger, which clients may use.
    staticRoute({ path: `${PAGE_PATH}/json`, is_served, make: json }),
  ];
}

/**
 * Returns the OpenAPI document of the shown routes, without their handlers, because it only describes them.
 */
async function documentOf(routes: readonly Route[], public_url: string | null): Promise<unknown> {
  const shown = routes.flatMap(({ handle, operation, ...route }) =>
    handle === null || operation === null ? [] : [{ ...route, operation }],
  );
  const operations = shown.map(({ operation }) => operation);
  const reference = new Elysia().use(
    swagger({
      path: PAGE_PATH,
      specPath: DOCUMENT_PATH,
      documentation: {
        // TypeBox's schemas are JSON Schema, which OpenAPI accepts unchanged from 3.1 on.
        openapi: '3.1.0',
        info: {
          title: 'Typed Decision Service',
          description:
            'Typed questions about one record: a probability for every option of every question, in one call.',
          version,
        },
        // Without a public address, the document's own is used.
        servers: [{ url: public_url ?? '/' }],
        tags: [
          ...[...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
          { name: 'Additions to the specification', description: ADDITIONS },
        ],
        components: {
          // As plain JSON, because the document's types do not have TypeBox's. Elysia's own `model` would
          // write an invalid `$id` into each of them.
          schemas: JSON.parse(JSON.stringify(documentedSchemas(operations))),
          securitySchemes: {
            bearer: {
              type: 'http',
              scheme: 'bearer',
              description: 'The API key as `Authorization: Bearer <API_KEY>`. It wins where both are sent.',
            },
            api_key: {
              type: 'apiKey',
              in: 'header',
              name: 'X-API-Key',
              description: 'The API key as `X-API-Key: <API_KEY>`.',
            },
          },
        },
      },
    }),
  );
  for (const { method, path, ...route } of shown) {
    // Elysia writes a parameter as `:id`.
    const elysia_path = path.replace(/\{(\w+)\}/g, ':$1');
    reference.route(method, elysia_path, () => '', { detail: openApiOperation(route) });
  }
  return await (await reference.handle(new Request(`http://localhost${DOCUMENT_PATH}`))).json();
}
