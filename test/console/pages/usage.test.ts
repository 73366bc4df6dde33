import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/accounts/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { createProject } from '../../../src/accounts/projects.ts';
import { DAY_MS } from '../../../src/clock.ts';
import { chromiumPath } from '../../support/chromium.ts';
import { ConsoleBrowser, type ConsolePage, DESKTOP, VIEWS, type View } from '../browser.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from '../people.ts';
import { addUsage } from '../usage-rows.ts';

setDefaultTimeout(120_000);

const program = chromiumPath();
if (program === null)
  console.log('The browser tests are skipped: there is no chromium (apt-get install chromium).');

const REQUESTS = 620;
/** Every 31st was refused. */
const ERRORS = REQUESTS / 31;
const OTHER_REQUESTS = 62;
const OLD_REQUESTS = 31;
const ROLLED_UP_REQUESTS = 1_000;

describe.skipIf(program === null)('the usage page', () => {
  let made: TestConsole;
  let browser: ConsoleBrowser;
  let ada: Person;
  let grace: Person;
  let other_project: { readonly project_id: string; readonly api_key_id: string };

  beforeAll(async () => {
    made = await startTestConsole();
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
    db.$client
      .query(
        `INSERT INTO usage_days (organization_id, day, project_id, api_key_id, model, mode, endpoint, status, requests,
          questions, input_tokens, cost_micros)
        VALUES ($organization_id, $day, $project_id, $api_key_id, 'decision-1', 'fast', '/v1/decisions', 200,
          ${ROLLED_UP_REQUESTS}, 5000, 500000, 250000)`,
      )
      .run({
        organization_id,
        project_id: default_project_id,
        api_key_id,
        day: new Date(now_ms - 50 * DAY_MS).toISOString().slice(0, 10),
      });
    browser = await ConsoleBrowser.open(program ?? '');
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await made.close();
  });

  /** The page as somebody sees it. */
  const open = async (person: Person, query = '', view: View = DESKTOP): Promise<ConsolePage> => {
    const opened = await browser.page(view);
    const url = `${made.service.server.address}/console`;
    await opened.page.context().addCookies(
      person.cookie.split('; ').map((cookie) => {
        const [name = '', value = ''] = cookie.split('=');
        return { name, value, url };
      }),
    );
    await opened.page.goto(`${url}/o/${ada.organization_id}/usage${query}`);
    await opened.page.getByRole('heading', { name: 'Usage' }).waitFor();
    return opened;
  };

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

  test.each(VIEWS.map((view) => [view.name, view] as const))(
    'reads well, has nothing serious for axe, and fits the screen: %s',
    async (name, view) => {
      await using opened = await open(ada, '', view);
      await tile(opened.page, 'Requests', String(REQUESTS + OTHER_REQUESTS));
      await opened.page.getByRole('option', { name: 'Support mails' }).waitFor({ state: 'attached' });
      await opened.photograph(`usage-${name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      expect(await opened.overflows()).toBe(false);
      expect(opened.complaints).toEqual([]);
    },
  );
});
