import { join } from 'node:path';
import { swagger } from '@elysiajs/swagger';
import { Elysia } from 'elysia';
import { version } from '../../package.json' with { type: 'json' };
import {
  DecisionRequestSchema,
  DecisionResponseSchema,
  ModeSchema,
  SystemOneRequestSchema,
} from '../decisions/schemas.ts';
import type { SchemaName } from './operations.ts';
import { ErrorResponseSchema, ModelListSchema } from './schemas.ts';
import { ADDITIONS } from './specification-additions.ts';

/** Compressed, because every browser takes it so; `assets/README.md` says where it is from. */
const SCRIPT_PATH = join(import.meta.dir, 'assets', 'scalar-api-reference-1.72.1.js.gz');

const PIECE_BYTES = 65_536;

/**
 * For the page: nothing that it asks for may come from, or go to, another host, and no other page may show it in a
 * frame, where a click could be led to its fields. The second header is for browsers that do not know frame-ancestors.
 */
export const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
} as const;

/** The document's `components.schemas`. Elysia's own `model` would write an invalid `$id` into each of them. */
const DOCUMENTED_SCHEMAS = {
  DecisionRequest: DecisionRequestSchema,
  SystemOneRequest: SystemOneRequestSchema,
  DecisionResponse: DecisionResponseSchema,
  Mode: ModeSchema,
  ModelList: ModelListSchema,
  Error: ErrorResponseSchema,
} satisfies Record<SchemaName, unknown>;

/**
 * The OpenAPI document at `/swagger/json` and its page at `/swagger`. The app must use it directly, because it
 * documents the routes of the instance that it is used by.
 */
export function docsPages() {
  return swagger({
    path: '/swagger',
    scalarCDN: '/swagger/scalar.js',
    scalarConfig: { withDefaultFonts: false, spec: { url: '/swagger/json' } },
    exclude: ['/swagger', '/swagger/json'],
    documentation: {
      // The schemas are JSON Schema as TypeBox makes it, which OpenAPI takes as it is from 3.1 on.
      openapi: '3.1.0',
      info: {
        title: 'Typed Decision Service',
        description: `Typed questions about one record: a probability for every option of every question, in one call.\n\n${ADDITIONS}`,
        version,
      },
      tags: [{ name: 'Decisions' }, { name: 'Models' }],
      components: {
        // As plain JSON: the document's types know nothing of TypeBox's.
        schemas: JSON.parse(JSON.stringify(DOCUMENTED_SCHEMAS)),
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          api_key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        },
      },
    },
  });
}

/** The page's script, pinned and served from here, because the box may have no internet. */
export function docsScript() {
  // Read once: clients who do not read their responses share it.
  let script: Promise<Uint8Array> | undefined;
  return new Elysia({ name: 'docs-script' }).get(
    '/swagger/scalar.js',
    async () => {
      script ??= Bun.file(SCRIPT_PATH).bytes();
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
    },
    {
      detail: { hide: true },
    },
  );
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
