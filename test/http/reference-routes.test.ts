import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { expectError } from '../contract/expectations.ts';
import { startTestService, type TestService } from '../support/service.ts';

const PATHS = ['/swagger', '/swagger/', '/swagger/json', '/openapi.json'];
const TRANSFERRED_BYTES_MAX = 400_000;

describe('the API reference', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
  });
  afterAll(() => service.close());

  test('has the operations first and the additions to the contract last', async () => {
    const html = await (await service.fetch('/swagger')).text();
    const headings = [...html.matchAll(/<h[23] id="([^"]+)"/g)].map(([, id]) => id ?? '');
    expect(headings[0]).toBe('authentication');
    expect(headings.indexOf('post-v1-decisions')).toBeWithin(1, headings.indexOf('schemas'));
    expect(headings.at(-1)).toBe('additions-to-the-specification');
  });

  test('links to nothing but the service itself, and every anchor that it links to is there', async () => {
    const html = await (await service.fetch('/swagger')).text();
    const links = [...html.matchAll(/<a [^>]*?href="([^"]+)"/g)].map(([, href]) => href ?? '');
    expect(links.length).toBeGreaterThan(20);
    for (const href of new Set(links)) {
      if (href.startsWith('#')) expect(html).toContain(` id="${href.slice(1)}"`);
      else expect([href, (await service.fetch(href)).status]).toEqual([href, 200]);
    }
  });

  test.each(['/swagger', '/swagger/'])(
    '%s runs no inline script, is shown in no frame, and takes less than 400 kB with all that it loads',
    async (path) => {
      const page = await service.fetch(path);
      expect(page.headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      );
      expect(page.headers.get('x-frame-options')).toBe('DENY');
      const html = await page.text();
      expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
      let bytes = Buffer.byteLength(html);
      for (const [, loaded = ''] of html.matchAll(/(?:src|rel="stylesheet" href)="([^"]+)"/g)) {
        const file = await service.fetch(loaded);
        expect([loaded, file.status]).toEqual([loaded, 200]);
        bytes += (await file.bytes()).byteLength;
      }
      expect(bytes).toBeLessThan(TRANSFERRED_BYTES_MAX);
    },
  );

  test('is not sent again to a browser that has it', async () => {
    const first = await service.fetch('/swagger');
    const etag = first.headers.get('etag') ?? '';
    const again = await service.fetch('/swagger', { headers: { 'if-none-match': etag } });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });
});

describe('the API reference, switched off', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true, api_reference: false });
  });
  afterAll(() => service.close());

  for (const path of PATHS) {
    test(`${path} is a path that does not exist, whatever the method`, async () => {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        await expectError(await service.fetch(path, { method }), 'not_found');
      }
    });
  }

  test('the rest of the service answers as ever', async () => {
    await expectError(await service.fetch('/v1/models'), 'missing_api_key');
  });
});
