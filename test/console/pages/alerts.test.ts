import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { setTierSettings } from '../../../src/accounts/organizations.ts';
import { changeProject } from '../../../src/accounts/projects.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { expectDecision, expectError } from '../../contract/expectations.ts';
import { eventually } from '../../support/eventually.ts';
import { ask } from '../../support/requests.ts';
import { PAGE_VIEWS, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { addMemberPerson, visit } from './visitor.ts';

setDefaultTimeout(120_000);

const DOLLAR = 1_000_000;

describeInBrowser('alerts in the console', () => {
  const made = consoleInBrowser({}, { has_mail_server: true });
  let ada: Person;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com' });
  });

  const page_of = (organization_id: string, page: string) => `/console/o/${organization_id}/${page}`;
  const credit = (organization_id: string, dollars: number) =>
    creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: dollars * DOLLAR });
  const run = () => made.service.service.services.alerts?.run();

  test('the bell counts what is unread, lists it, and leads to its page', async () => {
    const { organization_id } = ada;
    const reader = await addMemberPerson(made, organization_id, 'reader');
    await credit(organization_id, 25);
    await using opened = await visit(made, page_of(organization_id, 'keys'), { person: ada });
    const { page } = opened;
    // The payment, and the tier that it raised.
    const bell = page.getByRole('button', { name: 'Alerts' });
    await page.getByRole('button', { name: 'Alerts 2 unread' }).click();
    const payment = page.getByRole('link', { name: '$25.00 was added to your credit' });
    await payment.waitFor();
    await page.getByRole('link', { name: 'You are now in Tier 1' }).waitFor();
    await eventually(async () => (await bell.textContent()) === 'Alerts');
    expect(await opened.seriousFindings()).toEqual([]);
    await payment.click();
    await page.waitForURL(`**${page_of(organization_id, 'billing')}`);

    // Read stays read, and whom it does not concern has none.
    await page.reload();
    await bell.click();
    await payment.waitFor();
    expect(await bell.textContent()).toBe('Alerts');
    expect(opened.complaints).toEqual([]);
    await using other = await visit(made, page_of(organization_id, 'keys'), { person: reader });
    await other.page.getByRole('button', { name: 'Alerts' }).click();
    await other.page.getByText('Nothing yet. Low credit').waitFor();
    expect(await other.seriousFindings()).toEqual([]);
  });

  test('an amount that the organization sets is alerted to, in the console and by mail', async () => {
    const bea = await addPerson(made, { email: 'bea@example.com' });
    const { organization_id } = bea;
    await using opened = await visit(made, page_of(organization_id, 'billing'), { person: bea });
    const { page } = opened;
    const save = page.getByRole('button', { name: 'Save alert' });
    await page.getByLabel('Alert below').fill('much');
    await save.click();
    await page.getByText('Enter an amount such as 25 or 12.50.').waitFor();
    await page.getByLabel('Alert below').fill('5');
    await save.click();
    await page.getByText('The alert is saved.').waitFor();
    await run();
    await page.reload();
    expect(await page.getByLabel('Alert below').inputValue()).toBe('5');
    await page.getByRole('button', { name: 'Alerts 1 unread' }).click();
    await page.getByText('The balance is $0.00. Requests are refused until somebody adds credit.').waitFor();
    const mails = made.mails.filter(({ to, subject }) => to === bea.email && subject.startsWith('Credit'));
    expect(mails).toMatchObject([{ subject: 'Credit is below $5.00' }]);
    expect(mails[0]?.text).toContain(`${made.service.server.address}/console/o/${organization_id}/billing`);
  });

  test('a limit that refuses a request is reached, of a project and of a key, also below 80% of it', async () => {
    const email = 'dan@example.com';
    const { organization_id, default_project_id: project_id } = await addPerson(made, { email });
    await credit(organization_id, 25);
    const { accounts } = made.service;
    const keyWith = async (monthly_limit_micros: number | null) =>
      (await createKey(accounts, OPERATOR, { project_id, name: 'limited', monthly_limit_micros })).key;
    const free = await keyWith(null);
    const { usage } = await expectDecision(await ask(made.service, free));
    // So many requests, and half of one to spare.
    const limitFor = (requests: number) => Math.floor((requests + 0.5) * usage.cost_usd * DOLLAR);
    const limited = await keyWith(limitFor(1));
    await expectDecision(await ask(made.service, limited));
    await expectError(await ask(made.service, limited), 'api_key_spend_limit');
    await changeProject(accounts, OPERATOR, { project_id, spend_limit_micros: limitFor(2) });
    await expectError(await ask(made.service, free), 'project_spend_limit');
    await run();
    await run();
    const mails = made.mails.filter(({ to, subject }) => to === email && subject.includes('limit'));
    expect(mails.map(({ subject }) => subject).sort()).toEqual([
      'A project has reached its spend limit',
      'An API key has reached its spend limit',
    ]);
  });

  test('alert mails are switched off on the account page, and only there', async () => {
    const cleo = await addPerson(made, { email: 'cleo@example.com' });
    await using opened = await visit(made, '/console/account', { person: cleo });
    const { page } = opened;
    const mailed = page.getByLabel('Mail me alerts');
    await mailed.waitFor();
    expect(await mailed.isChecked()).toBe(true);
    // It stays until the service has taken the change.
    await mailed.click();
    await page.getByText('Alerts are no longer mailed to you.').waitFor();
    await setTierSettings(made.service.accounts, OPERATOR, cleo.organization_id, { minimum_tier: 1 });
    await run();
    expect(made.mails.filter(({ to, subject }) => to === cleo.email && subject.includes('Tier'))).toEqual([]);
    await page.reload();
    await mailed.waitFor();
    expect(await mailed.isChecked()).toBe(false);
    await page.getByRole('button', { name: 'Alerts 1 unread' }).waitFor();
  });

  test('the open list fits each screen', async () => {
    const person = await addPerson(made, { email: 'long@example.com', name: 'A'.repeat(60) });
    await credit(person.organization_id, 25);
    const path = page_of(person.organization_id, 'keys');
    await using opened = await visit(made, path, { person, view: PHONE });
    const { page } = opened;
    await page.getByRole('button', { name: 'Alerts 2 unread' }).waitFor();
    for (const view of [...PAGE_VIEWS, { ...PHONE, name: 'narrow', width: 320 }]) {
      await opened.show(view);
      await page.getByRole('button', { name: /^Alerts/ }).click();
      const payment = page.getByRole('link', { name: '$25.00 was added to your credit' });
      const box = await payment.boundingBox();
      expect(box?.x ?? -1).toBeGreaterThanOrEqual(0);
      expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(view.width);
      expect(await opened.overflows()).toBe(false);
      expect(await opened.seriousFindings()).toEqual([]);
      await opened.photograph(`alerts-${view.name}`);
      await page.keyboard.press('Escape');
      await payment.waitFor({ state: 'hidden' });
    }
  });
});
