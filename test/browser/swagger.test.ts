import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { ChromiumPage, chromiumPath } from '../support/chromium.ts';
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
    await using page = await ChromiumPage.open(program ?? '');
    const { address } = service.server;
    await page.navigate(`${address}/swagger`);
    for (const text of ['Typed Decision Service', '/v1/decisions', '/v1/systemone']) {
      await page.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
    }
    // What is far down is drawn when it is scrolled to.
    await page.until('window.scrollTo(0, 1e9), document.body.innerText.includes("/v1/models")');
    const hosts = page.requested.filter((url) => url.startsWith('http')).map((url) => new URL(url).origin);
    expect(hosts).toContain(address);
    expect(hosts.filter((host) => host !== address)).toEqual([]);
    expect(page.requested).toContain(`${address}/swagger/json`);
    // Every browser asks for an icon that nobody named.
    expect(page.complaints.filter((text) => !text.endsWith('/favicon.ico'))).toEqual([]);
  });
});
