import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { chromiumPath } from '../../support/chromium.ts';
import { ConsoleBrowser } from '../browser.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from '../people.ts';
import { choose, pressOn, tabTo, typeForm, typeInto } from './keyboard.ts';
import { addMemberPerson, visit } from './visitor.ts';

setDefaultTimeout(120_000);

const program = chromiumPath();

/** Sign-in, keys and playground have such a test in their own files. */
describe.skipIf(program === null)('by keyboard alone', () => {
  let made: TestConsole;
  let browser: ConsoleBrowser;
  let ada: Person;
  beforeAll(async () => {
    made = await startTestConsole();
    browser = await ConsoleBrowser.shared(program ?? '');
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace', is_operator: true });
    const { organization_id } = ada;
    await creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    await addMemberPerson(made, organization_id, 'reader', 'Rita Reader');
  });
  afterAll(() => made.close());

  const open = (path: string) => visit(browser, made, path, { person: ada });
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
});
