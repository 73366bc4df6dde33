import { swagger } from '@elysiajs/swagger';
import { Elysia } from 'elysia';
import { version } from '../../package.json' with { type: 'json' };
import { projectFile } from '../project-root.ts';
import { documentedSchemas, openApiOperation } from './openapi.ts';
import { elysiaPath } from './path-table.ts';
import { defineRoute, type Handler, type Route } from './route.ts';
import { ADDITIONS } from './specification-additions.ts';

const PAGE_PATH = '/swagger';
const DOCUMENT_PATH = '/swagger/json';
const SCRIPT_PATH = '/swagger/scalar.js';

/** Compressed, because every browser takes it so; `assets/README.md` says where it is from. */
const SCRIPT_FILE = projectFile('src/http/assets/scalar-api-reference-1.72.1.js.gz');

const PIECE_BYTES = 65_536;

/**
 * For the page. Its requests may go to no other host. No other page may show it in a frame, where it could catch clicks
 * on the fields. The second header is for browsers that do not know frame-ancestors.
 */
const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
} as const;

/**
 * The API reference of these routes: its page, its OpenAPI document and the page's script; absent if not `is_served`.
 */
export function referenceRoutes(routes: readonly Route[], is_served: boolean): readonly Route[] {
  const reference = is_served ? referenceOf(routes) : null;
  const given = (path: string): Handler<never> | null =>
    reference === null ? null : () => reference.handle(new Request(`http://localhost${path}`));
  const hidden = { method: 'GET', refusals: [], operation: null } as const;
  return [
    defineRoute({ ...hidden, path: PAGE_PATH, headers: PAGE_HEADERS, handle: given(PAGE_PATH) }),
    defineRoute({ ...hidden, path: DOCUMENT_PATH, handle: given(DOCUMENT_PATH) }),
    defineRoute({ ...hidden, path: SCRIPT_PATH, handle: is_served ? scriptHandler() : null }),
  ];
}

/**
 * Answers the paths of the page and the document. It holds the routes only to document them: their requests never come
 * here.
 */
function referenceOf(routes: readonly Route[]): Pick<Elysia, 'handle'> {
  const shown = routes.flatMap(({ handle, operation, ...route }) =>
    handle === null || operation === null ? [] : [{ ...route, operation }],
  );
  const reference = new Elysia().use(
    swagger({
      path: PAGE_PATH,
      scalarCDN: SCRIPT_PATH,
      scalarConfig: { withDefaultFonts: false, spec: { url: DOCUMENT_PATH } },
      documentation: {
        // The schemas are JSON Schema as TypeBox makes it, which OpenAPI takes as it is from 3.1 on.
        openapi: '3.1.0',
        info: {
          title: 'Typed Decision Service',
          description: `Typed questions about one record: a probability for every option of every question, in one call.\n\n${ADDITIONS}`,
          version,
        },
        tags: [...new Set(shown.map(({ operation }) => operation.tag))].map((name) => ({ name })),
        components: {
          // As plain JSON: the document's types know nothing of TypeBox's. Elysia's own `model` would write an invalid
          // `$id` into each of them.
          schemas: JSON.parse(JSON.stringify(documentedSchemas(shown.map(({ operation }) => operation)))),
          securitySchemes: {
            bearer: { type: 'http', scheme: 'bearer' },
            api_key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
          },
        },
      },
    }),
  );
  for (const { method, path, operation, refusals } of shown) {
    reference.route(method, elysiaPath(path), () => '', { detail: openApiOperation(operation, refusals) });
  }
  return reference;
}

/** The page's script, pinned and served from here, because the box may have no internet. */
function scriptHandler(): Handler<never> {
  // Read once: clients who do not read their responses share it.
  let script: Promise<Uint8Array> | undefined;
  return async () => {
    script ??= Bun.file(SCRIPT_FILE).bytes();
    const bytes = await script.catch((error: unknown) => {
      script = undefined;
      throw error;
    });
    return new Response(inPieces(bytes), {
      headers: {
        'content-type': 'text/javascript; charset=utf-8',
        'content-encoding': 'gzip',
        'content-length': String(bytes.byteLength),
      },
    });
  };
}

/** The bytes, a piece at a time as they are taken. */
function inPieces(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let taken = 0;
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (taken >= bytes.byteLength) return controller.close();
        // A copy, because a reader may take over what it is given.
        controller.enqueue(bytes.slice(taken, taken + PIECE_BYTES));
        taken += PIECE_BYTES;
      },
    },
    { highWaterMark: 0 },
  );
}
