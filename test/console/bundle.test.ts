import { beforeAll, describe, expect, test } from 'bun:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import {
  ASSETS_PATH,
  answerPage,
  bundlePages,
  type PageFiles,
  pageFiles,
  preparedPages,
} from '../../src/console/bundle.ts';

const COMPRESSED_BYTES_MAX = 150_000;

let files: PageFiles;
beforeAll(async () => {
  files = await pageFiles();
});

const get = (path: string, init: RequestInit = {}) =>
  answerPage(new Request(`http://localhost${path}`, init), files, 'req_1');

/** Some file of the pages with this ending. */
function assetPath(ending: string): string {
  const name = [...files.assets.keys()].find((one) => one.endsWith(ending));
  return `${ASSETS_PATH}${name ?? `no file ends with ${ending}`}`;
}

describe('a page', () => {
  test.each([
    '/console',
    '/console/',
    '/console/sign-in',
    '/console/o/org_1/usage?from=1',
    '/console/operator/models',
  ])('has the same HTML at %s, which no browser uses again without asking', async (path) => {
    const response = get(path);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('x-request-id')).toBe('req_1');
    expect(await response.text()).toContain('<div id="page">');
  });

  test('loads nothing of another host, runs no inline script, and is shown in no frame', async () => {
    const response = get('/console');
    expect(response.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(response.headers.get('x-frame-options')).toBe('DENY');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    const html = await response.text();
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
    const loaded = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path ?? '');
    expect(loaded.length).toBeGreaterThanOrEqual(3);
    for (const path of loaded) {
      expect(path).toStartWith(ASSETS_PATH);
      expect(get(path).status).toBe(200);
    }
  });
});

describe('a file of the pages', () => {
  test.each([
    ['.js', 'text/javascript; charset=utf-8'],
    ['.css', 'text/css; charset=utf-8'],
    ['.svg', 'image/svg+xml'],
  ])('%s is kept for ever under its hashed name', (ending, type) => {
    const path = assetPath(ending);
    expect(path).toMatch(/-[0-9a-z]{8}\.\w+$/);
    const { headers, status } = get(path);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe(type);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('has the same content in every encoding, and the smallest that the client takes', async () => {
    const path = assetPath('.css');
    const asked = async (accept: string) => {
      const response = get(path, { headers: { 'accept-encoding': accept } });
      const body = Buffer.from(await response.arrayBuffer());
      expect(response.headers.get('content-length')).toBe(String(body.byteLength));
      expect(response.headers.get('vary')).toBe('accept-encoding');
      return { encoding: response.headers.get('content-encoding'), body };
    };
    const plain = await asked('identity');
    const gzip = await asked('gzip, deflate');
    const brotli = await asked('gzip, deflate, br, zstd');
    expect([plain.encoding, gzip.encoding, brotli.encoding]).toEqual([null, 'gzip', 'br']);
    expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true);
    expect(brotliDecompressSync(brotli.body).equals(plain.body)).toBe(true);
    expect((await asked('br;q=0, gzip')).encoding).toBe('gzip');
    expect((await asked('GZIP; q=0.5')).encoding).toBe('gzip');
  });

  test('is not sent again to a client that has it, in the encoding that it has', () => {
    const path = assetPath('.js');
    const tag = (accept: string) =>
      get(path, { headers: { 'accept-encoding': accept } }).headers.get('etag') ?? '';
    const again = (accept: string, condition: string) =>
      get(path, { headers: { 'accept-encoding': accept, 'if-none-match': condition } }).status;
    expect(tag('br')).toMatch(/^"[^"]+"$/);
    expect(tag('br')).not.toBe(tag('gzip'));
    expect(again('br', tag('br'))).toBe(304);
    expect(again('br', `"other", W/${tag('br')}`)).toBe(304);
    expect(again('gzip', tag('br'))).toBe(200);
    expect(again('br', '"other"')).toBe(200);
  });

  test('is described without its body to HEAD', async () => {
    const response = get(assetPath('.css'), { method: 'HEAD' });
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(1_000);
    expect(await response.text()).toBe('');
  });

  test('that does not exist is the error of the contract', async () => {
    for (const path of [`${ASSETS_PATH}none.js`, `${ASSETS_PATH}index.html`, ASSETS_PATH]) {
      const response = get(path);
      expect(response.status).toBe(404);
      expect(await response.json()).toEqual({
        error: {
          type: 'not_found_error',
          code: 'not_found',
          message: 'This path does not exist.',
          param: null,
        },
        request_id: 'req_1',
      });
    }
  });
});

test('a page is only read', async () => {
  const response = get('/console', { method: 'POST' });
  expect(response.status).toBe(405);
  expect(response.headers.get('allow')).toBe('GET, HEAD');
  expect(await response.json()).toMatchObject({ error: { code: 'method_not_allowed' } });
});

/** The names of files in which a file's text matches a pattern, whose group is the name. */
const namesIn = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, name]) => name ?? '').filter((name) => files.assets.has(name));

test('the first visit of any page loads under 150 kB compressed', () => {
  const bytesOf = ({ body, compressed }: typeof files.html) =>
    compressed.get('gzip')?.byteLength ?? body.byteLength;
  const textOf = (name: string) => new TextDecoder().decode(files.assets.get(name)?.body);
  const html = new TextDecoder().decode(files.html.body);
  const linked = namesIn(html, /\/console\/assets\/([^"]+)/g);
  /** A file with all that it loads before it runs. */
  const withImports = (name: string, loaded = new Set<string>()): Set<string> => {
    if (loaded.has(name)) return loaded;
    loaded.add(name);
    if (!name.endsWith('.js')) return loaded;
    for (const other of namesIn(textOf(name), /(?:from|import)"\/console\/assets\/([^"]+)"/g))
      withImports(other, loaded);
    return loaded;
  };
  const loadsLater = (name: string) => namesIn(textOf(name), /import\("\/console\/assets\/([^"]+)"\)/g);
  const pages = linked.filter((name) => name.endsWith('.js')).flatMap(loadsLater);
  expect(pages.length).toBeGreaterThan(20);
  for (const page of pages) {
    const loaded = new Set([...linked, page].flatMap((name) => [...withImports(name)]));
    const assets = [...loaded].map((name) => files.assets.get(name) ?? files.html);
    const bytes = [files.html, ...assets].reduce((sum, file) => sum + bytesOf(file), 0);
    expect([page, bytes, bytes < COMPRESSED_BYTES_MAX]).toEqual([page, bytes, true]);
    expect(loaded.size).toBeGreaterThan(linked.length + 1);
  }
});

test('no code of the server reaches the browser', () => {
  for (const [name, { body }] of [...files.assets, ['index.html', files.html] as const])
    expect([name, /node:|bun:|drizzle/.exec(new TextDecoder().decode(body))?.[0]]).toEqual([name, undefined]);
});

test('the same sources make the same names, so that a restart keeps what browsers have', async () => {
  const again = await preparedPages(await bundlePages());
  expect([...again.assets.keys()].sort()).toEqual([...files.assets.keys()].sort());
  expect(again.html.etag).toBe(files.html.etag);
});
