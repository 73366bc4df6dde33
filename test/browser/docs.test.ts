import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { DOCUMENTS, documentPath } from '../../src/docs/documents.ts';
import { DESKTOP, openPage, PHONE } from '../console/browser.ts';
import { describeInBrowser } from '../console/in-browser.ts';
import { expectReadsWell } from '../console/screens.ts';
import { MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

describeInBrowser('the documents in a real browser', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
  });
  afterAll(() => service.close());

  test(
    'axe finds nothing serious, nothing is wider than the screen, no other host is asked, the browser complains of nothing',
    async () => {
      await using opened = await openPage(PHONE);
      const { page, complaints } = opened;
      const hosts = new Set<string>();
      page.on('request', (request) => hosts.add(new URL(request.url()).host));
      for (const document of DOCUMENTS) {
        await page.goto(`${service.server.address}${documentPath(document)}`);
        await page.locator('h1').waitFor();
        await expectReadsWell(opened, `document-${document}`);
      }
      expect([...hosts].filter((host) => host !== '')).toEqual([new URL(service.server.address).host]);
      expect(complaints).toEqual([]);
    },
    // Every document is one page.
    2 * MODEL_TEST_TIMEOUT_MS,
  );

  test('on a phone the pages are behind a button, and axe has nothing to say of them', async () => {
    await using opened = await openPage(PHONE);
    const { page } = opened;
    await page.goto(`${service.server.address}/docs`);
    const link = page.getByRole('link', { name: 'Errors and retries' }).first();
    expect(await link.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Menu' }).click();
    await link.waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await link.click();
    await page.getByRole('heading', { name: 'Errors and retries' }).waitFor();
  });

  test('a piece of code is copied by its button', async () => {
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await page.goto(`${service.server.address}/docs`);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const shown = await page.locator('pre').first().textContent();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(shown);
  });

  test('the colours are those that the reader chose in the console', async () => {
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    const ground = async () => await page.evaluate('getComputedStyle(document.body).backgroundColor');
    await page.goto(`${service.server.address}/docs`);
    const light = await ground();
    await page.evaluate('localStorage.setItem("tds-theme", "dark")');
    await page.reload();
    expect(await ground()).not.toBe(light);
  });
});
