import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { answerPage, bundlePages, type PageFiles, preparedPages } from '../../src/console/bundle.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { type ConsolePage, DESKTOP, openPage, VIEWS, type View } from './browser.ts';
import { describeInBrowser } from './in-browser.ts';

setDefaultTimeout(120_000);

const SESSION = {
  user: { id: 'user_1', email: 'ada@example.com', name: 'Ada Lovelace', is_operator: true },
  csrf_token: 'token',
  organizations: [
    { id: 'org_1', name: 'Analytical Engines', role: 'owner', is_suspended: false },
    { id: 'org_2', name: 'Ada Lovelace', role: 'reader', is_suspended: false },
  ],
  expires_at_ms: Date.UTC(2030, 0, 1),
};

describeInBrowser('the components of the console in a real browser', () => {
  let server: Bun.Server<undefined>;
  beforeAll(async () => {
    const files: PageFiles = await preparedPages(
      await bundlePages(projectFile('test/console/gallery/index.html')),
    );
    server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: (request) =>
        new URL(request.url).pathname === '/console/api/session'
          ? Response.json(SESSION)
          : answerPage(request, files, 'req_test'),
    });
  });
  afterAll(() => server.stop(true));

  const openGallery = async (view: View): Promise<ConsolePage> => {
    const opened = await openPage(view);
    await opened.page.goto(`http://127.0.0.1:${server.port}/console/o/org_1/gallery`);
    await opened.page.getByRole('heading', { name: 'Gallery' }).waitFor();
    return opened;
  };

  test.each(VIEWS.map((view) => [view.name, view] as const))(
    'axe finds nothing serious, nothing is wider than the screen, and the browser complains about nothing: %s',
    async (name, view) => {
      await using opened = await openGallery(view);
      await opened.photograph(`gallery-${name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      expect(await opened.overflows()).toBe(false);
      await opened.page.getByRole('button', { name: 'Account: Ada Lovelace' }).click();
      expect(await opened.seriousFindings()).toEqual([]);
      await opened.page.keyboard.press('Escape');
      await opened.page.getByRole('button', { name: 'Show Latency as a table' }).click();
      await opened.page.getByRole('button', { name: 'Revoke key…' }).click();
      await opened.photograph(`gallery-dialog-${name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      expect(opened.complaints).toEqual([]);
    },
  );

  test('forced colours leave to see which one is chosen, how full a meter is, and which line is whose', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    // A chart draws its colours once, with those that the reader has then.
    await page.emulateMedia({ forcedColors: 'active' });
    await page.goto(`http://127.0.0.1:${server.port}/console/o/org_1/usage`);
    await page.getByRole('button', { name: 'Account: Ada Lovelace' }).click();
    await page.locator('canvas').nth(1).waitFor();
    // A forced ground keeps its transparency, which shows the same colour below it.
    const grounds = (selector: string) =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll(${JSON.stringify(selector)})].map((one) =>
          getComputedStyle(one).backgroundColor.replace(/^rgba(.*), 0\\)$/, 'rgb$1)'))`,
      );
    const unlike: Readonly<Record<string, string>> = {
      '.segmented input:checked + span': '.segmented input:not(:checked) + span',
      '.side a[aria-current]': '.side a:not([aria-current])',
      '.menu-list > a[aria-current]': '.menu-list > a:not([aria-current])',
      '[role=tab][aria-selected=true]': '[role=tab][aria-selected=false]',
      '.meter-fill': '.meter-track',
      '.probability-fill': '.probability-track',
      '.probability-threshold': '.probability-fill',
    };
    for (const [selector, other] of Object.entries(unlike)) {
      const [some, others] = [await grounds(selector), await grounds(other)];
      expect([selector, some.length > 0, others.length > 0]).toEqual([selector, true, true]);
      expect([selector, some.filter((ground) => others.includes(ground))]).toEqual([selector, []]);
    }
    const unframed = await page.evaluate(
      `[...document.querySelectorAll('.meter-track, .probability-track')]
        .filter((track) => getComputedStyle(track).borderTopWidth === '0px').length`,
    );
    expect(unframed).toBe(0);
    const swatches = await grounds('.chart:nth-child(2) .swatch');
    expect(new Set(swatches).size).toBe(2);
    const drawn = await page.evaluate<string[]>(`(() => {
      const canvas = document.querySelector('.chart:nth-child(2) canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const pixels = Array.from({ length: data.length / 4 }, (_, at) => data.slice(at * 4, at * 4 + 3).join(', '));
      return [...new Set(pixels)].map((colour) => 'rgb(' + colour + ')');
    })()`);
    expect(drawn).toEqual(expect.arrayContaining(swatches));
  });

  test('the navigation leads to the documents', async () => {
    await using opened = await openGallery(DESKTOP);
    const navigation = opened.page.getByRole('navigation', { name: 'Pages' });
    expect(await navigation.getByRole('link', { name: 'Docs' }).getAttribute('href')).toBe('/docs');
  });

  test('the keyboard reaches a dialog, confirms it, and comes back to where it was', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    const opener = page.getByRole('button', { name: 'Revoke key…' });
    const isFocused = async () => (await opener.and(page.locator(':focus')).count()) === 1;
    for (let presses = 0; presses < 80 && !(await isFocused()); presses++) await page.keyboard.press('Tab');
    expect(await isFocused()).toBe(true);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Revoke this key?' });
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(await isFocused()).toBe(true);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('The key is revoked.').waitFor();
    await dialog.waitFor({ state: 'hidden' });
  });

  test('a menu opens, walks and closes by keyboard', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    const menu = page.getByRole('button', { name: 'Organization: Analytical Engines' });
    await menu.focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowDown');
    const isLinkFocused = async (name: string) =>
      (await page.getByRole('link', { name }).and(page.locator(':focus')).count()) === 1;
    expect(await isLinkFocused('Analytical Engines owner')).toBe(true);
    await page.keyboard.press('ArrowDown');
    expect(await isLinkFocused('Ada Lovelace reader')).toBe(true);
    await page.keyboard.press('Escape');
    expect(await menu.getAttribute('aria-expanded')).toBe('false');
  });

  test('a key that follows an opening at once meets the menu and the dialog', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    // Both within one task: nothing is painted between them.
    const openAnd = async (name: string, then: string) =>
      await page.evaluate(`(async () => {
        const opener = [...document.querySelectorAll('button')].find((one) => one.textContent.includes('${name}'));
        opener.focus();
        opener.click();
        await new Promise((resolve) => queueMicrotask(resolve));
        ${then}
      })()`);
    const arrow = "opener.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }));";
    expect(await openAnd('Analytical Engines', `${arrow} return document.activeElement.textContent;`)).toBe(
      'Analytical Enginesowner',
    );
    expect(await openAnd('Revoke key…', "return document.activeElement.closest('dialog') !== null;")).toBe(
      true,
    );
  });

  test('what was entered stays when it is refused', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    await page.getByLabel('Monthly limit').fill('7.5');
    await page.getByLabel('Role').selectOption('developer');
    await page.getByLabel('Record').fill('What was pasted');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('The limit is below what is spent.').waitFor();
    expect(await page.getByLabel('Monthly limit').inputValue()).toBe('7.5');
    expect(await page.getByLabel('Role').inputValue()).toBe('developer');
    expect(await page.getByLabel('Record').inputValue()).toBe('What was pasted');
  });

  test('what the server refuses is said beside its field, which has the focus', async () => {
    await using opened = await openGallery(DESKTOP);
    await opened.page.getByRole('button', { name: 'Save' }).click();
    await opened.page.getByRole('alert').getByText('The limit is below what is spent.').waitFor();
    const limit = opened.page.getByLabel('Monthly limit');
    expect(await limit.getAttribute('aria-invalid')).toBe('true');
    expect(await limit.and(opened.page.locator(':focus')).count()).toBe(1);
  });

  test('dragging over a chart zooms in, and one button shows everything again', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    const reset = page.getByRole('button', { name: 'Reset zoom' });
    const area = await page.locator('.u-over').first().boundingBox();
    if (area === null) throw new Error('There is no chart.');
    const middle = area.y + area.height / 2;
    await page.mouse.move(area.x + 60, middle);
    await page.mouse.down();
    await page.mouse.move(area.x + 200, middle, { steps: 4 });
    expect(await reset.count()).toBe(0);
    await page.mouse.up();
    await reset.click();
    await reset.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Show Requests by hour as a table' }).click();
    const table = page.getByRole('region', { name: 'Requests by hour, as a table' });
    expect(await table.getByRole('row').count()).toBe(49);
    expect(opened.complaints).toEqual([]);
  });

  test('the reader chooses dark or light, and it stays', async () => {
    await using opened = await openGallery(DESKTOP);
    const { page } = opened;
    const ground = async () => await page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await ground();
    await page.getByRole('button', { name: 'Account: Ada Lovelace' }).click();
    await page.getByText('Dark', { exact: true }).click();
    const dark = await ground();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.getByRole('heading', { name: 'Gallery' }).waitFor();
    expect(await ground()).toBe(dark);
  });
});
