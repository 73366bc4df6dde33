import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { defineRoute, type Route } from './route.ts';

/** Close to the smallest size, at a hundredth of the time of the highest quality. */
const BROTLI_QUALITY = 9;
/** The smallest file that is compressed: below, the header would cost more than is saved. */
const COMPRESSED_BYTES_MIN = 256;

type ContentEncoding = 'br' | 'gzip';

/** A file in memory, ready to be sent. */
export interface StaticFile {
  readonly name: string;
  readonly content_type: string;
  readonly etag: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly compressed: ReadonlyMap<ContentEncoding, Uint8Array<ArrayBuffer>>;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json',
};

/** The headers of every page: it uses no other host, runs no inline script, and cannot be framed. */
export const PAGE_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  // An address reveals the page and its filters. "no-referrer" would also blank the origin of changes.
  'referrer-policy': 'strict-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

const compressors: readonly (readonly [
  ContentEncoding,
  (body: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>,
])[] = [
  [
    'br',
    (body) =>
      promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } }),
  ],
  ['gzip', (body) => promisify(gzip)(body, { level: 9 })],
];

/** Returns a file with that name, whose extension gives its type; its body is compressed once. */
export async function staticFile(name: string, body: Uint8Array<ArrayBuffer>): Promise<StaticFile> {
  const compressed = body.byteLength < COMPRESSED_BYTES_MIN ? [] : compressors;
  return {
    name,
    body,
    content_type: CONTENT_TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
    etag: `"${new Bun.CryptoHasher('sha256').update(body).digest('base64url')}"`,
    compressed: new Map(
      await Promise.all(
        compressed.map(async ([encoding, compress]) => [encoding, await compress(body)] as const),
      ),
    ),
  };
}

/** Returns the response to a GET or HEAD of a file; 304 where the client has it already. */
export function fileResponse(
  request: Request,
  file: StaticFile,
  headers: Readonly<Record<string, string>>,
): Response {
  const encoding = acceptedEncoding(request, file);
  const body = (encoding === null ? undefined : file.compressed.get(encoding)) ?? file.body;
  // A strong tag names one sequence of bytes, so each encoding has its own.
  const etag = encoding === null ? file.etag : file.etag.replace(/"$/, `-${encoding}"`);
  const common = { ...headers, etag, vary: 'accept-encoding' };
  if (matchesEtag(request.headers.get('if-none-match'), etag)) {
    return new Response(null, { status: 304, headers: common });
  }
  return new Response(request.method === 'HEAD' ? null : body, {
    headers: {
      ...common,
      'content-type': file.content_type,
      'content-length': String(body.byteLength),
      ...(encoding === null ? {} : { 'content-encoding': encoding }),
    },
  });
}

/** Returns the smallest encoding that the client accepts; null for the uncompressed file. */
function acceptedEncoding(request: Request, file: StaticFile): ContentEncoding | null {
  const accepted = new Set(
    (request.headers.get('accept-encoding') ?? '')
      .toLowerCase()
      .split(',')
      .map((part) => part.split(';').map((word) => word.trim()))
      .filter(([, quality]) => quality === undefined || !/^q=0(?:\.0*)?$/.test(quality))
      .map(([name]) => name),
  );
  return [...file.compressed.keys()].find((encoding) => accepted.has(encoding)) ?? null;
}

function matchesEtag(condition: string | null, etag: string): boolean {
  if (condition === null) return false;
  return condition.split(',').some((one) => {
    const tag = one.trim().replace(/^W\//, '');
    return tag === '*' || tag === etag;
  });
}

/**
 * Returns a function that makes its result at the first call and caches it. A failure is not cached, so that
 * the next call tries again.
 */
export function madeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

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
