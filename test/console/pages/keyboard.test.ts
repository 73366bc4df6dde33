import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { Locator, Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { creditByHand, startTopUp } from '../../../src/payments/credit.ts';
import { manualProvider } from '../../../src/payments/manual.ts';
import { DAY_MS } from '../../../src/time/clock.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { addUsage } from '../usage-rows.ts';
import { choose, pressOn, tabTo, typeForm, typeInto } from './keyboard.ts';
import { addMemberPerson, visit } from './visitor.ts';

setDefaultTimeout(120_000);

/** Sign-in, keys and playground have such a test in their own files. */
describeInBrowser('by keyboard alone', () => {
  const made = consoleInBrowser();
  let ada: Person;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace', is_operator: true });
    const { organization_id } = ada;
    await creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    await addMemberPerson(made, organization_id, 'reader', 'Rita Reader');
  });

  const open = (path: string) => visit(made, path, { person: ada });
  const openOwn = (name: string) => open(`/console/o/${ada.organization_id}/${name}`);
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const dialogButton = (page: Page, name: string) =>
    page.getByRole('dialog').getByRole('button', { name, exact: true });

  test('a project is created, limited and archived', async () => {
    await using opened = await openOwn('projects');
    const { page } = opened;
    await pressOn(page, button(page, 'Create project'));
    await typeForm(page, { Name: 'Checkout' });
    await page.getByText('Checkout is created.').waitFor();
    await pressOn(page, button(page, 'Edit Checkout'));
    await typeForm(page, { 'Monthly spend limit': '12.50' });
    await page.getByRole('row', { name: 'Checkout' }).getByText('$0.00 of $12.50').waitFor();
    await pressOn(page, button(page, 'Archive Checkout'));
    await pressOn(page, dialogButton(page, 'Archive project'));
    await page.getByText('Checkout is archived.').waitFor();
    await tabTo(page, page.getByRole('tab', { name: 'Active' }));
    await page.keyboard.press('ArrowRight');
    await page.getByRole('row', { name: 'Checkout' }).waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('somebody is invited, gets another role, and is removed', async () => {
    await using opened = await openOwn('members');
    const { page } = opened;
    await pressOn(page, button(page, 'Invite a member'));
    await typeForm(page, { 'Email address': 'grace@example.com' });
    await page.getByText('An invitation is on its way to grace@example.com.').waitFor();
    await pressOn(page, button(page, 'Change the role of Rita Reader'));
    await choose(page, page.getByRole('dialog').getByLabel('Role'), 'Developer');
    await pressOn(page, dialogButton(page, 'Change role'));
    await page.getByText('Rita Reader is now developer.').waitFor();
    await pressOn(page, button(page, 'Remove Rita Reader'));
    await pressOn(page, dialogButton(page, 'Remove member'));
    await page.getByText('Rita Reader is removed.').waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('the organization is renamed, and its audit log is filtered', async () => {
    await using opened = await openOwn('settings');
    const { page } = opened;
    await typeForm(page, { Name: 'Analytical Engines' });
    await page.getByText('The name is saved.').waitFor();
    await pressOn(page, page.getByRole('link', { name: 'Audit log' }));
    await page.getByText('Renamed the organization.').waitFor();
    await choose(page, page.getByLabel('Action'), 'Created a project');
    await page.getByText('Renamed the organization.').waitFor({ state: 'detached' });
    expect(opened.complaints).toEqual([]);
  });

  test('usage is shown for another time, and credit is looked up', async () => {
    await using opened = await openOwn('usage');
    const { page } = opened;
    const span = page.getByRole('group', { name: 'Time span' });
    await tabTo(page, span.locator('input:checked'));
    const before = page.url();
    await page.keyboard.press('ArrowRight');
    await page.waitForURL((url) => url.href !== before);
    await pressOn(page, page.getByRole('link', { name: 'Billing' }));
    await page.getByText('$25.00').first().waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('an operator finds an organization, gives it credit, and changes the price of a model', async () => {
    await using opened = await open('/console/operator/organizations');
    const { page } = opened;
    await tabTo(page, page.getByRole('searchbox', { name: 'Search' }));
    await page.keyboard.type('ada@example');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('text') === 'ada@example');
    // The list of before the search may still be there, whose first link is another.
    await pressOn(page, page.locator(`main a[href*="${ada.organization_id}"]`).first());
    await pressOn(page, button(page, 'Give credit…'));
    await typeForm(page, { Amount: '5' });
    await pressOn(page, button(page, 'Give $5.00'));
    await page.getByText('$30.00').first().waitFor();
    await pressOn(page, page.getByRole('link', { name: 'Models' }));
    await pressOn(page, button(page, 'Change the price of decision-1'));
    await typeInto(page, { 'Dollars for 1M input tokens': '0.6' });
    await pressOn(page, dialogButton(page, 'Change price'));
    await page.getByRole('cell', { name: '$0.60' }).waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('the focus stays near an element that goes, and comes back from a dialog that is removed', async () => {
    const { organization_id, default_project_id: project_id } = ada;
    const { accounts, db } = made.service;
    await startTopUp(accounts, OPERATOR, manualProvider, { organization_id, amount_micros: 5_000_000 });
    const { id: api_key_id } = await createKey(accounts, OPERATOR, { project_id, name: 'Production' });
    const now_ms = Date.now();
    addUsage(db, {
      ...{ organization_id, project_id, api_key_id },
      ...{ requests: 62, from_ms: now_ms - DAY_MS, to_ms: now_ms },
    });
    await using opened = await openOwn('playground');
    const { page } = opened;
    const hasFocus = (target: Locator) => target.and(page.locator(':focus')).waitFor();
    const content = page.locator('main');
    const goTo = (path: string) => page.goto(`${made.origin}/console/o/${organization_id}/${path}`);

    for (const _ of [1, 2]) await pressOn(page, button(page, 'Add a question: yes or no'));
    const removal = page.getByRole('button', { name: /^Remove question_/ });
    const questions = await removal.count();
    await pressOn(page, removal.first());
    await hasFocus(page.locator('.question-list'));
    expect(await removal.count()).toBe(questions - 1);

    await goTo('usage?status=200');
    await pressOn(page, button(page, 'Clear filters'));
    await hasFocus(content);
    await pressOn(page, button(page, 'Show Cost as a table'));
    const cost = page.getByRole('region', { name: 'Cost, as a table' });
    await pressOn(page, cost.getByRole('button').nth(1));
    await page.getByText('No requests in this time').waitFor();
    await hasFocus(content);
    await goTo('usage?request=req_none');
    await pressOn(page, button(page, 'Show all requests'));
    await hasFocus(content);

    await goTo('billing');
    await pressOn(page, button(page, 'Cancel…'));
    await pressOn(page, dialogButton(page, 'Cancel top-up'));
    await page.getByRole('heading', { name: 'Waiting for payment' }).waitFor({ state: 'detached' });
    await hasFocus(content);

    await page.route('**/account/second-factor', (route) => route.abort());
    await page.goto(`${made.origin}/console/account`);
    const section = page.locator('.section', { hasText: 'Two-step sign-in' });
    await section.getByRole('button', { name: 'Try again' }).waitFor();
    await page.unroute('**/account/second-factor');
    await pressOn(page, section.getByRole('button', { name: 'Try again' }));
    await hasFocus(section.getByRole('heading'));
    await pressOn(page, button(page, 'Set up two-step sign-in…'));
    await page.keyboard.press('Escape');
    await hasFocus(button(page, 'Set up two-step sign-in…'));
  });
});
