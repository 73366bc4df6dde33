import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { ConsoleBrowser, PHONE } from '../console/browser.ts';
import { expectReadsWell } from '../console/screens.ts';
import { chromiumPath } from '../support/chromium.ts';
import { closeAudited } from '../support/money.ts';
import { MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const program = chromiumPath();
if (program === null)
  console.log('The browser tests are skipped: there is no chromium (apt-get install chromium).');

describe.skipIf(program === null)('the API reference in a real browser', () => {
  let service: TestService;
  let browser: ConsoleBrowser;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
    browser = await ConsoleBrowser.shared(program ?? '');
  });
  afterAll(() => closeAudited(service));

  test('shows every endpoint, asks no other host for anything, and neither axe nor the browser has something to say', async () => {
    await using opened = await browser.page(PHONE);
    const { page } = opened;
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    const { address } = service.server;
    await page.goto(`${address}/swagger`);
    for (const path of ['/v1/decisions', '/v1/decisions/batch', '/v1/systemone']) {
      await page.getByRole('heading', { name: `POST ${path}`, exact: true }).waitFor();
    }
    await page.getByRole('heading', { name: 'GET /v1/models', exact: true }).waitFor();
    await expectReadsWell(opened, 'reference');
    expect(opened.complaints).toEqual([]);
    const hosts = requested.filter((url) => url.startsWith('http')).map((url) => new URL(url).origin);
    expect(new Set(hosts)).toEqual(new Set([address]));
  });
});
