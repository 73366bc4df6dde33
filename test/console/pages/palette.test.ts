import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { DESKTOP, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { addUsage } from '../usage-rows.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser('the command palette', () => {
  const made = consoleInBrowser();
  let ada: Person;
  let key_id: string;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
    const { organization_id, default_project_id: project_id } = ada;
    const key = await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Support inbox' });
    key_id = key.id;
    const to_ms = Date.now();
    const own = { organization_id, project_id, api_key_id: key_id };
    addUsage(made.service.db, { ...own, requests: 3, from_ms: to_ms - 60_000, to_ms });
  });

  const open = async (view: View = DESKTOP) => {
    const path = `/console/o/${ada.organization_id}/overview`;
    const opened = await visit(made, path, { person: ada, view });
    await opened.page.getByRole('heading', { name: 'Overview' }).waitFor();
    return opened;
  };

  /** Letters that are typed before the field has the focus go elsewhere. */
  const untilFocused = (page: Page) =>
    page.getByRole('combobox', { name: 'Search pages' }).and(page.locator(':focus')).waitFor();
  const press = async (page: Page) => {
    await page.keyboard.press('Control+k');
    await untilFocused(page);
  };

  test('the keyboard alone leads to a page, a key, a request and a document', async () => {
    await using opened = await open();
    const { page } = opened;
    const field = page.getByRole('combobox', { name: 'Search pages' });
    const option = (name: string) => page.getByRole('option', { name });
    await press(page);
    await page.keyboard.type('memb');
    await option('Members Page').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Members' }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);

    await press(page);
    await page.keyboard.type('support');
    await option('Support inbox Key').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/usage?key=${key_id}`);

    const request_id = made.service.db.$client
      .query<{ request_id: string }, []>('SELECT request_id FROM usage_records LIMIT 1')
      .get()?.request_id;
    await press(page);
    await page.keyboard.type((request_id ?? '').slice(0, 14));
    await option(`${request_id} Request`).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/usage?request=${request_id}`);

    await press(page);
    // One that is older than the newest is looked up.
    await page.keyboard.type('req_0123456789');
    await option('req_0123456789 Request').waitFor();
    await page.keyboard.press('Escape');
    await field.waitFor({ state: 'detached' });
    await press(page);
    await page.keyboard.type('docs err');
    await option('Errors and retries Docs').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/errors');
    expect(opened.complaints).toEqual([]);
  });

  test('the arrows choose, and what is not found is said to be none', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.getByRole('button', { name: /^Search/ }).click();
    await untilFocused(page);
    const chosen = page.getByRole('listbox', { name: 'Results' }).getByRole('option', { selected: true });
    await chosen.filter({ hasText: 'Overview' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await chosen.filter({ hasText: 'Playground' }).waitFor();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    expect(await chosen.count()).toBe(1);
    await page.keyboard.type('zzzz');
    await page.getByText('No results.').waitFor();
    await page.keyboard.press('Enter');
    expect(await page.getByRole('dialog').isVisible()).toBe(true);
  });

  test('axe finds nothing serious, and it fits the screen', async () => {
    await using opened = await open(PHONE);
    await opened.page.getByRole('button', { name: /^Search/ }).click();
    await untilFocused(opened.page);
    await opened.page.keyboard.type('o');
    await opened.page.getByRole('option', { name: 'Support inbox Key' }).waitFor();
    await expectReadsWell(opened, 'palette');
    expect(opened.complaints).toEqual([]);
  });
});
