import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Refusal } from '../errors/errors.ts';
import { IS_UNPACKED, projectFile } from '../files/project-root.ts';
import { errorResponse, REQUEST_ID_HEADER } from '../http/responses.ts';
import { fileResponse, madeOnce, PAGE_HEADERS, type StaticFile, staticFile } from '../http/static-files.ts';
import { isReading } from './api/own-page.ts';

/** The page that the browser loads first, and that links to all other files. */
const ENTRY = projectFile('src/console/pages/index.html');
/** The program that fits corrections beside the page Evaluate. */
const FIT_WORKER = projectFile('src/console/pages/evaluate/fit-worker.ts');
/** The executable's folder of bundled pages, because nothing is compiled where it runs. */
export const STAGED_PAGES = 'console-pages';
/** Every file but the HTML is served below this path. */
export const ASSETS_PATH = '/console/assets/';

/** The console's pages in memory. */
export interface PageFiles {
  readonly html: StaticFile;
  /** The files by name, which contains a hash of the content. */
  readonly assets: ReadonlyMap<string, StaticFile>;
}

/** A file from the bundler. */
interface BundledFile {
  readonly name: string;
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * Bundles the pages that start at an HTML file, and their worker, which shares no code with them: it has no page. The names of all files contain a hash of their content,
 * except `index.html`. Rejects with the bundler's messages.
 */
export async function bundlePages(entry: string = ENTRY): Promise<readonly BundledFile[]> {
  const workers = await bundled(FIT_WORKER, {});
  const path = JSON.stringify(`${ASSETS_PATH}${workers[0]?.name}`);
  return [...workers, ...(await bundled(entry, { FIT_WORKER_PATH: path }))];
}

async function bundled(
  entry: string,
  define: Readonly<Record<string, string>>,
): Promise<readonly BundledFile[]> {
  const naming = '[name]-[hash].[ext]';
  const built = await Bun.build({
    entrypoints: [entry],
    target: 'browser',
    splitting: true,
    minify: true,
    publicPath: ASSETS_PATH,
    naming: { entry: naming, chunk: naming, asset: naming },
    // Without this Preact's JSX is compiled for development.
    define: { 'process.env.NODE_ENV': '"production"', ...define },
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

/**
 * Returns the bundled files ready to be sent, each compressed once. Rejects when there is no `index.html`
 * among them.
 */
export async function preparedPages(bundled: readonly BundledFile[]): Promise<PageFiles> {
  const files = await Promise.all(bundled.map(({ name, body }) => staticFile(name, body)));
  const html = files.find(({ name }) => name === 'index.html');
  if (html === undefined) throw new Error('The bundled pages have no index.html.');
  return { html, assets: new Map(files.filter((file) => file !== html).map((file) => [file.name, file])) };
}

/**
 * Returns the console's pages, made at the first call: bundled in a checkout, read from their folder in the
 * executable. Rejects when they cannot be made; the next call tries again.
 */
export const pageFiles = madeOnce(
  async (): Promise<PageFiles> => await preparedPages(await (IS_UNPACKED ? stagedPages() : bundlePages())),
);

/** Returns true if `answerPage` answers a request with one of the files. */
export function isServed(request: Request, files: PageFiles): boolean {
  if (!isReading(request)) return false;
  const { pathname } = new URL(request.url);
  return !pathname.startsWith(ASSETS_PATH) || files.assets.has(pathname.slice(ASSETS_PATH.length));
}

/**
 * Returns the response to a request for a page or one of its files. Every path that is not below
 * `ASSETS_PATH` is a page, whose router reads the path in the browser. Errors have the contract's shape: 404
 * for an unknown file, 405 for a method other than GET and HEAD.
 */
export function answerPage(request: Request, files: PageFiles, request_id: string): Response {
  if (!isReading(request)) {
    return errorResponse(request_id, new Refusal('method_not_allowed'), { allow: 'GET, HEAD' });
  }
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(ASSETS_PATH)) {
    return fileResponse(request, files.html, {
      ...PAGE_HEADERS,
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
