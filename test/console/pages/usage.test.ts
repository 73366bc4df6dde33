import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { createProject } from '../../../src/accounts/projects.ts';
import { DAY_MS } from '../../../src/time/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { type ConsolePage, DESKTOP, DESKTOP_DARK, openPage, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { addUsage } from '../usage-rows.ts';
import { carrySession } from './visitor.ts';

setDefaultTimeout(120_000);

const REQUESTS = 620;
const OTHER_REQUESTS = 62;
const OLD_REQUESTS = 31;
const ROLLED_UP_REQUESTS = 1_000;

function utcDay(time_ms: number): string {
  return new Date(time_ms).toISOString().slice(0, 10);
}

describeInBrowser('the usage page', () => {
  const made = consoleInBrowser();
  let ada: Person;
  let grace: Person;
  let other_project: { readonly project_id: string; readonly api_key_id: string };

  beforeAll(async () => {
    const { accounts, db } = made.service;
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
    grace = await addPerson(made, { email: 'grace@example.com', name: 'Grace Hopper' });
    const { organization_id, default_project_id } = ada;
    await addMember(accounts, OPERATOR, { organization_id, user_id: grace.user_id, role: 'reader' });
    const addKey = (project_id: string, name: string) => createKey(accounts, OPERATOR, { project_id, name });
    const { id: api_key_id } = await addKey(default_project_id, 'Production');
    const { id: project_id } = await createProject(accounts, OPERATOR, {
      organization_id,
      name: 'Support mails',
    });
    other_project = { project_id, api_key_id: (await addKey(project_id, 'Mail reader')).id };
    const now_ms = Date.now();
    const own = { organization_id, project_id: default_project_id, api_key_id };
    addUsage(db, { ...own, requests: REQUESTS, from_ms: now_ms - 6 * DAY_MS, to_ms: now_ms - DAY_MS / 24 });
    addUsage(db, {
      ...own,
      ...other_project,
      requests: OTHER_REQUESTS,
      from_ms: now_ms - 3 * DAY_MS,
      to_ms: now_ms - DAY_MS,
      model: 'decision-0',
    });
    addUsage(db, {
      ...own,
      requests: OLD_REQUESTS,
      from_ms: now_ms - 20 * DAY_MS,
      to_ms: now_ms - 19 * DAY_MS,
    });
    addRolledUp({ ...own, day: utcDay(now_ms - 50 * DAY_MS) });
  });

  /** Writes a day that was rolled up. */
  const addRolledUp = (of: {
    readonly organization_id: string;
    readonly project_id: string;
    readonly api_key_id: string;
    readonly day: string;
  }) => {
    made.service.db.$client
      .query(
        `INSERT INTO usage_days (organization_id, day, project_id, api_key_id, model, mode, endpoint, status, requests,
          questions, input_tokens, cost_micros)
        VALUES ($organization_id, $day, $project_id, $api_key_id, 'decision-1', 'fast', '/v1/decisions', 200,
          ${ROLLED_UP_REQUESTS}, 5000, 500000, 250000)`,
      )
      .run(of);
  };

  /** Goes to the page as somebody. */
  const show = async (opened: ConsolePage, person: Person, organization_id: string, query: string) => {
    await carrySession(opened, made, person);
    await opened.page.goto(`${made.service.server.address}/console/o/${organization_id}/usage${query}`);
  };

  /** The page of an organization as somebody sees it, once it says so. */
  const open = async (
    person: Person,
    query = '',
    view: View = DESKTOP,
    organization_id = ada.organization_id,
    text = 'What you asked',
  ): Promise<ConsolePage> => {
    const opened = await openPage(view);
    await show(opened, person, organization_id, query);
    await opened.page.getByText(text).waitFor();
    return opened;
  };

  /** How many of Ada's requests the database has from a time on and before another. */
  const usedBetween = (from_ms = 0, to_ms = 0): number =>
    made.service.db.$client
      .query<{ requests: number }, [number, number, string]>(
        'SELECT count(*) AS requests FROM usage_records WHERE time_ms >= ? AND time_ms < ? AND organization_id = ?',
      )
      .get(from_ms, to_ms, ada.organization_id)?.requests ?? 0;

  /** The ids of all of Ada's requests, newest first. */
  const requestIds = (): string[] =>
    made.service.db.$client
      .query<{ request_id: string }, [string]>(
        'SELECT request_id FROM usage_records WHERE organization_id = ? ORDER BY time_ms DESC, request_id DESC',
      )
      .all(ada.organization_id)
      .map(({ request_id }) => request_id);

  /** Waits until a tile says so. */
  const tile = (page: Page, title: string, value: string) =>
    page.locator('.tile').filter({ hasText: title }).getByText(value, { exact: true }).waitFor();

  /** The lines of the CSV that the page links to. */
  const exported = async (page: Page): Promise<string[]> => {
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Export CSV' }).click();
    const text = await Bun.file(await (await downloading).path()).text();
    return text.trimEnd().split('\r\n');
  };

  test.each([1280, 1440, 1920])(
    'the table has all of its columns in sight beside long names: %d',
    async (width) => {
      const view = { name: 'wide', width, height: 900, theme: 'light' } as const;
      const person = await addPerson(made, { email: `wide-${width}@example.com` });
      const { organization_id, default_project_id: project_id } = person;
      const named = await createKey(made.service.accounts, OPERATOR, {
        project_id,
        name: `Support inbox classifier ${width}`,
      });
      const to_ms = made.service.clock.now_ms() - 1_000;
      addUsage(made.service.db, {
        organization_id,
        project_id,
        api_key_id: named.id,
        requests: 3,
        from_ms: to_ms - 60_000,
        to_ms,
      });
      await using opened = await open(person, `?key=${named.id}`, view, organization_id);
      await opened.page.locator('.table-frame').waitFor();
      const cut =
        '(() => { const { scrollWidth, clientWidth } = document.querySelector(".table-frame"); return scrollWidth - clientWidth; })()';
      expect(await opened.page.evaluate(cut)).toBe(0);
    },
  );

  test('reads well, has nothing serious for axe, and fits the screen', async () => {
    await using opened = await open(ada, '', PHONE);
    await tile(opened.page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
    await opened.page.getByRole('option', { name: 'Support mails' }).waitFor({ state: 'attached' });
    await expectReadsWell(opened, 'usage');
    expect(opened.complaints).toEqual([]);
  });

  test('reads as well where it is opened on a desk in the dark, where charts are drawn for it from the start', async () => {
    await using opened = await open(ada, '', DESKTOP_DARK);
    await tile(opened.page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
    expect(await opened.seriousFindings()).toEqual([]);
    expect(await opened.overflows()).toBe(false);
    expect(opened.complaints).toEqual([]);
  });

  test('filters are in the address, so that a link shows the same, and the export has exactly that', async () => {
    await using opened = await open(ada);
    const { page } = opened;
    await tile(page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
    expect(
      await page.locator('.tile').filter({ hasText: 'Median' }).locator('.tile-note').textContent(),
    ).toMatch(/^p90 [\d.]+\sm?s\s+p99 [\d.]+\sm?s\s*$/);
    await page.getByLabel('Project').selectOption({ label: 'Support mails' });
    await tile(page, 'Requests', String(OTHER_REQUESTS));
    await page.getByText(`${OTHER_REQUESTS} requests, newest first.`).waitFor();
    await page.getByLabel('API key').selectOption(other_project.api_key_id);
    await page.getByLabel('Model').selectOption('decision-0');
    await tile(page, 'Requests', String(OTHER_REQUESTS));
    await page.getByLabel('Mode', { exact: true }).selectOption('fast');
    // Of 62 every 4th from the first on is in consistent mode.
    await tile(page, 'Requests', '46');
    await page.getByLabel('Status', { exact: true }).selectOption('503');
    // The first and the 32nd were refused, and the first was in consistent mode.
    await tile(page, 'Requests', '1');
    await tile(page, 'Errors', '100.0%');
    await tile(page, 'Cost', '$0.00');
    const [header, line, ...more] = await exported(page);
    expect(header).toBe(
      'time_utc,model,mode,endpoint,project,api_key,status,questions,input_tokens,cost_usd,latency_ms,request_id',
    );
    expect(line).toContain(',decision-0,fast,/v1/decisions,Support mails,Mail reader,503,0,0,');
    expect(more).toEqual([]);

    await using linked = await open(grace, new URL(page.url()).search);
    await tile(linked.page, 'Requests', '1');
    await linked.page.getByRole('option', { name: 'Support mails' }).waitFor({ state: 'attached' });
    expect(await linked.page.getByLabel('Project').inputValue()).toBe(other_project.project_id);
    expect(await linked.page.getByLabel('Status', { exact: true }).inputValue()).toBe('503');

    await page.getByLabel('Model').selectOption('decision-1');
    await page.getByText('No request matches these filters').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await tile(page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
    expect(new URL(page.url()).search).toBe('');
    expect(opened.complaints).toEqual([]);
  });

  test('500 requests of one hour are a curve in 7 days, grouped as chosen, and the whole span is one click away', async () => {
    const person = await addPerson(made, { email: 'curve@example.com' });
    const { organization_id, default_project_id: project_id } = person;
    const { id: api_key_id } = await createKey(made.service.accounts, OPERATOR, {
      project_id,
      name: 'Curve',
    });
    const from_ms = Date.now() - 3 * DAY_MS;
    const times = { from_ms, to_ms: from_ms + DAY_MS / 24 };
    addUsage(made.service.db, { organization_id, project_id, api_key_id, requests: 500, ...times });
    await using opened = await open(person, '', DESKTOP, organization_id);
    const { page } = opened;
    await tile(page, 'Requests', '500');
    await page.getByText(/^All requests came from/).waitFor();
    const chart = page.getByRole('figure', { name: /^(Requests|Cost) by/ });
    // The numbers at the axis are drawn, and no text of the page.
    await page.evaluate(`{
      const { fillText } = CanvasRenderingContext2D.prototype;
      globalThis.drawn = [];
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        if (this.canvas.closest('figure').textContent.startsWith('Cost by')) drawn.push(text);
        return fillText.call(this, text, ...place);
      };
    }`);
    await chart.getByLabel('Shown').selectOption('Cost');
    await eventually(() => page.evaluate<boolean>("drawn.some((text) => text.startsWith('$'))"));
    await chart.getByLabel('Shown').selectOption('Requests');
    await chart.getByRole('button', { name: 'Show Requests by status as a table' }).click();
    const bars = chart.getByRole('row').filter({ hasNotText: /\s0\s+0$/ });
    expect(await bars.count()).toBeGreaterThan(50);
    await chart.getByLabel('Group by').selectOption('By mode');
    await chart.getByRole('columnheader', { name: 'consistent' }).waitFor();
    await chart.getByLabel('Shown').selectOption('Cost');
    await page.getByRole('button', { name: 'Show Cost by mode as a chart' }).waitFor();
    expect(new URL(page.url()).search).toBe('?group=mode&measure=cost_micros');
    await page.getByRole('button', { name: 'Show 7 days whole' }).click();
    await page.getByRole('button', { name: 'Show only the time with requests' }).waitFor();
    await tile(page, 'Requests', '500');
    expect(await bars.count()).toBeLessThan(200);
    expect(opened.complaints).toEqual([]);
  });

  test('dragging over one chart narrows the whole page, by the address too, and there are ways back', async () => {
    await using opened = await open(ada);
    const { page } = opened;
    await tile(page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
    const plot = page.locator('.u-over').nth(2);
    // Filters above the charts come with a later answer, and would move what was measured.
    await page.getByLabel('Model').waitFor();
    await plot.scrollIntoViewIfNeeded();
    const area = await plot.boundingBox();
    if (area === null) throw new Error('There is no chart.');
    const y = area.y + area.height / 2;
    await page.mouse.move(area.x + area.width / 2, y);
    await page.mouse.down();
    await page.mouse.move(area.x + area.width * 0.75, y, { steps: 4 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'Back to 7 days' }).waitFor();
    const { searchParams } = new URL(page.url());
    const [from_ms, to_ms] = ['from', 'to'].map((field) => Date.parse(searchParams.get(field) ?? ''));
    const inside = usedBetween(from_ms, to_ms);
    expect(inside).toBeGreaterThan(0);
    expect(inside).toBeLessThan(REQUESTS);
    await tile(page, 'Requests', String(inside));
    await page.getByText(`${inside} requests, newest first.`).waitFor();
    expect((await exported(page)).length).toBe(1 + inside);

    await page.reload();
    await tile(page, 'Requests', String(inside));
    await page.getByRole('button', { name: 'Back to 7 days' }).click();
    await tile(page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
  });

  test('the keyboard zooms by the table of a chart, and the browser goes back', async () => {
    await using opened = await open(ada, '?span=month');
    const { page } = opened;
    const all = REQUESTS + OTHER_REQUESTS + OLD_REQUESTS;
    await tile(page, 'Requests', String(all));
    await page.getByRole('button', { name: 'Show Cost as a table' }).press('Enter');
    const rows = page.getByRole('region', { name: 'Cost, as a table' }).getByRole('row');
    const day = rows.filter({ hasText: '$' }).getByTitle('Zoom to this time').nth(-3);
    await day.press('Enter');
    await page.getByRole('button', { name: 'Back to 30 days' }).waitFor();
    const { searchParams } = new URL(page.url());
    const from_ms = Date.parse(searchParams.get('from') ?? '');
    expect(Date.parse(searchParams.get('to') ?? '') - from_ms).toBe(DAY_MS);
    await tile(page, 'Requests', String(usedBetween(from_ms, from_ms + DAY_MS)));
    await page.goBack();
    await tile(page, 'Requests', String(all));
  });

  test('days are UTC wherever they are read, also when the clocks change there', async () => {
    const konrad = await addPerson(made, { email: 'konrad@example.com', name: 'Konrad Zuse' });
    const { organization_id, default_project_id: project_id } = konrad;
    const { id: api_key_id } = await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Own' });
    const days = Array.from({ length: 17 }, (_, index) => utcDay(Date.UTC(2025, 2, 22 + index)));
    for (const day of days) addRolledUp({ organization_id, project_id, api_key_id, day });
    await using opened = await openPage(DESKTOP, 'Europe/Berlin');
    const { page } = opened;
    await show(opened, konrad, organization_id, `?span=${days[0]}..${days.at(-1)}`);
    await page.getByText('Days are UTC.').waitFor();
    await page.getByRole('button', { name: 'Show Cost as a table' }).click();
    const rows = page.getByRole('region', { name: 'Cost, as a table' }).getByRole('row');
    const shown = days.map((day) => {
      const date = new Date(day).toLocaleDateString('en-US', { dateStyle: 'medium', timeZone: 'UTC' });
      return [`${date}, 00:00:00 UTC`, '$0.25'];
    });
    const cells = (await rows.allInnerTexts()).slice(1).map((text) => text.split(/\s*\t\s*/));
    expect(cells).toEqual(shown);
    await rows.getByTitle('Zoom to this time').first().press('Enter');
    await page.getByText('Mar 22, 00:00:00 to Mar 23, 2025, 00:00:00 UTC').waitFor();
    // Days are typed digit by digit; those that are no span stay, and are told.
    const first = page.getByLabel('First day (UTC)');
    const spanIs = (span: string) => page.waitForURL((url) => url.searchParams.get('span') === span);
    await first.focus();
    await page.keyboard.type('03252025');
    await spanIs('2025-03-25..2025-04-07');
    await first.fill('2025-04-10');
    await page.getByLabel('Last day (UTC)').focus();
    await page.getByText('The first day is after the last.').waitFor();
    expect(await first.inputValue()).toBe('2025-04-10');
    await page.keyboard.type('04122025');
    await spanIs('2025-04-10..2025-04-12');
    expect(await page.getByText('The first day is after the last.').count()).toBe(0);
    expect(opened.complaints).toEqual([]);
  });

  test('hours begin in the chosen zone, at once when it is changed', async () => {
    await using opened = await openPage(DESKTOP, 'Asia/Kolkata');
    const { page } = opened;
    await show(opened, ada, ada.organization_id, '?span=week&whole=true');
    await page.getByRole('button', { name: 'Show Cost as a table' }).click();
    const rows = page.getByRole('region', { name: 'Cost, as a table' }).getByRole('row');
    const times = async () =>
      (await rows.allInnerTexts()).slice(1).map((text) => text.split('\t')[0]?.trim());
    const local = await times();
    expect(local.length).toBeGreaterThan(100);
    for (const time of local) expect(time).toMatch(/:00:00/);
    await page.getByRole('button', { name: /^Account/ }).click();
    await page.getByText('UTC', { exact: true }).click();
    await rows
      .filter({ hasText: /:00:00 UTC/ })
      .first()
      .waitFor();
    const utc = await times();
    expect(utc.length).toBeGreaterThan(100);
    for (const time of utc) expect(time).toMatch(/:00:00 UTC/);
    expect(opened.complaints).toEqual([]);
  });

  test('the table grows page by page, and leads to each request', async () => {
    await using opened = await open(ada);
    const { page } = opened;
    const table = page.getByRole('table', { name: 'Requests' });
    const rows = table.locator('tbody tr');
    await rows.nth(49).waitFor();
    expect(await table.locator('th').allTextContents()).toEqual([
      'Time',
      'Request id',
      'Model',
      'Mode',
      'Project',
      'API key',
      'Status',
      'Questions',
      'Input tokens',
      'Cost',
      'Latency',
    ]);
    expect(await rows.count()).toBe(50);
    await page.getByRole('button', { name: 'Show more' }).click();
    await rows.nth(99).waitFor();
    const ids = await table.locator('tbody a').evaluateAll((links) => links.map((link) => link.title));
    expect(ids).toEqual(requestIds().slice(0, 100));
    // Nothing is cut off at a desk.
    const frame = page.getByRole('region', { name: 'Requests', exact: true });
    expect(
      await frame.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
    ).toBeLessThanOrEqual(0);

    await rows.nth(99).getByRole('link').click();
    const request = page.getByRole('region', { name: 'The request' });
    await request.getByText(ids[99] ?? '').waitFor();
    expect(await page.locator('.u-over').count()).toBe(0);
    // A reader who comes back finds the rows that were there, and no more.
    await page.goBack();
    await rows.nth(99).waitFor();
    expect(await rows.count()).toBe(100);
    // Where the second page fails, the first one is there.
    const second = /[?&]after=/;
    await page.route(second, (route) => route.abort());
    await page.reload();
    await rows.nth(49).waitFor();
    expect(await rows.count()).toBe(50);
    const failure = page.getByText('The service cannot be reached.');
    await page.getByRole('button', { name: 'Show more' }).click();
    await failure.waitFor();
    await page.unroute(second);
    await page.getByRole('button', { name: 'Try again' }).click();
    await rows.nth(99).waitFor();
    expect(await failure.count()).toBe(0);
    // Another view begins with its first ones.
    await page.getByLabel('Model', { exact: true }).selectOption('decision-1');
    await rows.nth(50).waitFor({ state: 'detached' });
    expect(await rows.count()).toBe(50);
  });

  test('a request is found by its id whenever it was made, and a wrong id is said to be none', async () => {
    await using opened = await open(ada);
    const { page } = opened;
    const oldest = requestIds().at(-1) ?? '';
    const find = page.getByRole('searchbox', { name: 'Request id' });
    await find.fill(` ${oldest} `);
    await find.press('Enter');
    const request = page.getByRole('region', { name: 'The request' });
    await request.getByText(oldest).waitFor();
    // The first of all was refused.
    await request.getByText('503').waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await opened.photograph('usage-request');
    expect((await exported(page)).map((line) => line.split(',').at(-1))).toEqual(['request_id', oldest]);
    await find.fill('req_none');
    await find.press('Enter');
    await page.getByText('Request not found').waitFor();
    await page.getByRole('button', { name: 'Show all requests' }).click();
    await tile(page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
  });

  test('rolled-up days count in totals, and the page says that they have no latency and no rows', async () => {
    await using opened = await open(ada, '?span=all');
    const { page } = opened;
    const rows = REQUESTS + OTHER_REQUESTS + OLD_REQUESTS;
    await tile(page, 'Requests', (rows + ROLLED_UP_REQUESTS).toLocaleString('en-US'));
    await page.getByText('1,000 of these requests are kept as daily totals').waitFor();
    await page.getByText(`${rows} requests, newest first.`).waitFor();
    await opened.photograph('usage-all');
    expect((await exported(page)).length).toBe(1 + rows);
    await page.getByText('Days', { exact: true }).click();
    await page.getByLabel('Last day (UTC)').fill(utcDay(Date.now() - 40 * DAY_MS));
    await tile(page, 'Requests', ROLLED_UP_REQUESTS.toLocaleString('en-US'));
    await tile(page, 'Median latency', '–');
    await page.getByText('All of these requests are kept as daily totals').waitFor();
    await page.getByText('Only daily totals are left of this time').waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await opened.photograph('usage-rolled-up');
  });

  test('a phone shows of each request what tells them apart, in a card of a few lines', async () => {
    await using opened = await open(ada, '', PHONE);
    const row = opened.page.getByRole('table', { name: 'Requests' }).locator('tbody tr').first();
    await row.waitFor();
    const shown = await row
      .locator('td:visible')
      .evaluateAll((cells) => cells.map((cell) => cell.getAttribute('data-title') ?? 'Time'));
    expect(shown).toEqual(['Time', 'Request id', 'Status', 'Cost', 'Latency']);
    expect((await row.boundingBox())?.height ?? Number.NaN).toBeLessThan(160);
  });

  test('an organization that asked nothing is told what to do', async () => {
    await using opened = await open(grace, '', DESKTOP, grace.organization_id);
    const { page } = opened;
    await page.getByText('No requests in this time').waitFor();
    await page.getByRole('button', { name: 'Show all time' }).click();
    await page.getByText('No requests yet').waitFor();
    // An organization without an answer looks here for the reason.
    await page.getByText('No request was refused.').waitFor();
    expect(await page.getByRole('link', { name: 'API keys' }).getAttribute('href')).toBe(
      `/console/o/${grace.organization_id}/keys`,
    );
    expect(opened.complaints).toEqual([]);
  });

  test('"Refresh" asks for everything on the page again, and what is shown stays meanwhile', async () => {
    await using opened = await open(ada);
    const { page } = opened;
    await page.getByText('No request was refused.').waitFor();
    await page.getByLabel('Model').waitFor();
    const answer = Promise.withResolvers<void>();
    const parts = ['refusals', 'values', 'series', 'rows'];
    // Entries are of what was answered: the requests that follow are those of the button.
    await page.waitForFunction((parts) => {
      const answered = performance.getEntriesByType('resource').map(({ name }) => name);
      return parts.every((part) => answered.some((name) => name.includes(`/usage/${part}`)));
    }, parts);
    await page.route('**/usage/refusals', async (route) => {
      await answer.promise;
      await route.continue();
    });
    const asked = parts.map((part) =>
      page.waitForRequest((request) => request.url().includes(`/usage/${part}`)),
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await Promise.all(asked);
    expect(await page.getByText('No request was refused.').count()).toBe(1);
    const answered = page.waitForResponse((response) => response.url().includes('/usage/refusals'));
    answer.resolve();
    expect((await answered).status()).toBe(200);
  });

  test('a failed read says so with its request id, and can be tried again', async () => {
    await using opened = await openPage(DESKTOP);
    await opened.page.route('**/usage/series?*', (route) => route.abort());
    await show(opened, ada, ada.organization_id, '');
    await opened.page.getByText('The service cannot be reached.').waitFor();
    await opened.page.unroute('**/usage/series?*');
    await opened.page.getByRole('button', { name: 'Try again' }).click();
    await tile(opened.page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
    // The figures of one span are none of another that could not be read.
    await opened.page.route('**/usage/series?*', (route) => route.abort());
    await opened.page.getByText('30 days', { exact: true }).click();
    await opened.page.getByText('The service cannot be reached.').waitFor();
    expect(await opened.page.locator('.tile').count()).toBe(0);
    await opened.page.unroute('**/usage/series?*');
    await opened.page.getByRole('button', { name: 'Try again' }).click();
    await tile(opened.page, 'Requests', String(REQUESTS + OTHER_REQUESTS + OLD_REQUESTS));
  });
});
