import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { ConsoleBrowser, DESKTOP } from '../console/browser.ts';
import { chromiumPath } from '../support/chromium.ts';
import { closeAudited } from '../support/money.ts';
import { MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const program = chromiumPath();
if (program === null)
  console.log('The browser tests are skipped: there is no chromium (apt-get install chromium).');

describe.skipIf(program === null)('the documentation page in a real browser', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ cold: true });
  });
  afterAll(() => closeAudited(service));

  test('shows every endpoint, asks no other host for anything, and the browser has nothing to complain about', async () => {
    await using browser = await ConsoleBrowser.open(program ?? '');
    await using opened = await browser.page(DESKTOP);
    const { page, complaints } = opened;
    const requested: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    const { address } = service.server;
    await page.goto(`${address}/swagger`);
    const shown = (text: string) => page.getByText(text).filter({ visible: true });
    for (const text of ['Typed Decision Service', '/v1/decisions', '/v1/systemone']) {
      await shown(text).first().waitFor();
    }
    // What is far down is drawn when it is scrolled to.
    while ((await shown('/v1/models').count()) === 0) await page.mouse.wheel(0, 1e9);
    const hosts = requested.filter((url) => url.startsWith('http')).map((url) => new URL(url).origin);
    expect(hosts).toContain(address);
    expect(hosts.filter((host) => host !== address)).toEqual([]);
    expect(requested).toContain(`${address}/swagger/json`);
    // Every browser asks for an icon that nobody named.
    expect(complaints.filter((text) => !text.endsWith('/favicon.ico'))).toEqual([]);
  });
});
