import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { Refusal } from '../errors.ts';
import { errorResponse, REQUEST_ID_HEADER } from '../http/responses.ts';
import { IS_UNPACKED, projectFile } from '../project-root.ts';
import { isReading } from './api/own-page.ts';

/** What the browser starts with; everything else is found from it. */
const ENTRY = projectFile('src/console/pages/index.html');
/** Where the executable carries the bundled pages, because nothing is compiled where it runs. */
export const STAGED_PAGES = 'console-pages';
/** Every file but the HTML is served below this path. */
export const ASSETS_PATH = '/console/assets/';

/** Close to the smallest size, at a hundredth of the time that the highest quality takes. */
const BROTLI_QUALITY = 9;
/** A shorter file is sent as it is: compression would save less than the header says. */
const COMPRESSED_BYTES_MIN = 256;

type ContentEncoding = 'br' | 'gzip';

/** One file as it is sent. */
export interface PageFile {
  readonly name: string;
  readonly content_type: string;
  readonly etag: string;
  readonly body: Uint8Array<ArrayBuffer>;
  readonly compressed: ReadonlyMap<ContentEncoding, Uint8Array<ArrayBuffer>>;
}

/** The console's pages in memory. */
export interface PageFiles {
  readonly html: PageFile;
  /** By name; the name has a hash of the content. */
  readonly assets: ReadonlyMap<string, PageFile>;
}

/** A file as the bundler made it. */
interface BundledFile {
  readonly name: string;
  readonly body: Uint8Array<ArrayBuffer>;
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
};

/** On every page: it loads and asks nothing of another host, runs no inline script and is shown in no frame. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  // An address says whose page was read, and with which filters. "no-referrer" would also blank the origin of changes.
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

/**
 * Bundles the pages that start at an HTML file. The names of all files have a hash of their content, but for
 * `index.html`. Rejects with the bundler's messages.
 */
export async function bundlePages(entry: string = ENTRY): Promise<readonly BundledFile[]> {
  const naming = '[name]-[hash].[ext]';
  const built = await Bun.build({
    entrypoints: [entry],
    target: 'browser',
    splitting: true,
    minify: true,
    publicPath: ASSETS_PATH,
    naming: { entry: naming, chunk: naming, asset: naming },
    // Without this Preact's JSX is compiled for development.
    define: { 'process.env.NODE_ENV': '"production"' },
    env: 'disable',
    throw: false,
  });
  if (!built.success) throw new AggregateError(built.logs, 'The pages of the console cannot be bundled.');
  return await Promise.all(
    built.outputs.map(async (output) => ({
      name: output.path.endsWith('.html') ? 'index.html' : basename(output.path),
      body: new Uint8Array(await output.arrayBuffer()),
    })),
  );
}

async function stagedPages(): Promise<readonly BundledFile[]> {
  const folder = projectFile(STAGED_PAGES);
  return await Promise.all(
    (await readdir(folder)).map(async (name) => ({
      name,
      body: new Uint8Array(await Bun.file(join(folder, name)).arrayBuffer()),
    })),
  );
}

async function pageFile({ name, body }: BundledFile): Promise<PageFile> {
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

/** Bundled files as they are sent, each compressed once. Rejects when there is no `index.html` among them. */
export async function preparedPages(bundled: readonly BundledFile[]): Promise<PageFiles> {
  const files = await Promise.all(bundled.map(pageFile));
  const html = files.find(({ name }) => name === 'index.html');
  if (html === undefined) throw new Error('The bundled pages have no index.html.');
  return { html, assets: new Map(files.filter((file) => file !== html).map((file) => [file.name, file])) };
}

let prepared: Promise<PageFiles> | undefined;

/**
 * The console's pages, made at the first call: bundled in a checkout, read from where they were staged in the executable.
 * Rejects when they cannot be made; the next call tries again.
 */
export function pageFiles(): Promise<PageFiles> {
  prepared ??= (async () => await preparedPages(await (IS_UNPACKED ? stagedPages() : bundlePages())))().catch(
    (error: unknown) => {
      prepared = undefined;
      throw error;
    },
  );
  return prepared;
}

/** Whether `answerPage` answers a request with one of the files. */
export function isServed(request: Request, files: PageFiles): boolean {
  if (!isReading(request)) return false;
  const { pathname } = new URL(request.url);
  return !pathname.startsWith(ASSETS_PATH) || files.assets.has(pathname.slice(ASSETS_PATH.length));
}

/**
 * The response to a request for a page or one of its files. Every path that is not below `ASSETS_PATH` is a page, whose
 * router reads the path in the browser. Errors have the contract's shape: 404 for an unknown file, 405 for a method
 * other than GET and HEAD.
 */
export function answerPage(request: Request, files: PageFiles, request_id: string): Response {
  if (!isReading(request)) {
    return errorResponse(request_id, new Refusal('method_not_allowed'), { allow: 'GET, HEAD' });
  }
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(ASSETS_PATH)) {
    return fileResponse(request, files.html, {
      ...SECURITY_HEADERS,
      [REQUEST_ID_HEADER]: request_id,
      // The hashed names in it change with every version.
      'cache-control': 'no-cache',
    });
  }
  const file = files.assets.get(pathname.slice(ASSETS_PATH.length));
  if (file === undefined) return errorResponse(request_id, new Refusal('not_found'));
  return fileResponse(request, file, {
    [REQUEST_ID_HEADER]: request_id,
    'x-content-type-options': 'nosniff',
    'cache-control': 'public, max-age=31536000, immutable',
  });
}

function fileResponse(request: Request, file: PageFile, headers: Readonly<Record<string, string>>): Response {
  const encoding = acceptedEncoding(request, file);
  const body = (encoding === null ? undefined : file.compressed.get(encoding)) ?? file.body;
  // A strong tag names one sequence of bytes, so that each encoding has its own.
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

/** The smallest encoding that the client takes; null for the file as it is. */
function acceptedEncoding(request: Request, file: PageFile): ContentEncoding | null {
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
