import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { openPage, PHONE } from '../console/browser.ts';
import { describeInBrowser } from '../console/in-browser.ts';
import { expectReadsWell } from '../console/screens.ts';
import { closeAudited } from '../support/money.ts';
import { MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

describeInBrowser('the API reference in a real browser', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
  });
  afterAll(() => closeAudited(service));

  test('shows every endpoint, asks no other host for anything, and neither axe nor the browser has something to say', async () => {
    await using opened = await openPage(PHONE);
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
