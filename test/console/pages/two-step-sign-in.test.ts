import { expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { appCode, wrongCode } from '../../support/totp.ts';
import { DESKTOP, openPage, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, PASSWORD, type Person } from '../people.ts';
import { addMemberPerson, visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser('two-step sign-in in a real browser', () => {
  const made = consoleInBrowser();

  /** Signs in with the password; the code is asked for next. */
  async function enterPassword(page: Page, email: string): Promise<void> {
    await page.goto(`${made.service.server.address}/console/account`);
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Enter your code' }).waitFor();
  }

  /** Turns it on through the API, as the page does; returns the app's address, and the recovery codes. */
  async function turnOn({ ask }: Person): Promise<{ app_url: string; recovery_codes: string[] }> {
    const path = '/console/api/account/second-factor';
    const begun = JSON.parse(await (await ask(path, { body: { password: PASSWORD } })).text());
    const confirmed = await ask(`${path}/confirm`, { body: { code: appCode(begun.app_url) } });
    expect(confirmed.status).toBe(200);
    return begun;
  }

  test('is set up by a scanned code, kept codes, and asked for at the next sign-in', async () => {
    const ada = await addPerson(made, { email: 'ada@example.com' });
    await using opened = await visit(made, '/console/account', { person: ada });
    const { page } = opened;
    await page.getByRole('button', { name: 'Set up two-step sign-in…' }).click();
    await page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Continue' }).click();
    const dialog = page.getByRole('dialog', { name: 'Scan this code with your app' });
    await dialog.getByRole('img', { name: 'The QR code for your app' }).waitFor();
    expect([await opened.seriousFindings(), await opened.overflows()]).toEqual([[], false]);
    await opened.photograph('two-step-scan');
    const app_url = `otpauth://totp/x?secret=${await dialog.locator('code').textContent()}`;
    await dialog.getByLabel('Code', { exact: true }).fill(wrongCode(app_url));
    await dialog.getByRole('button', { name: 'Turn on' }).click();
    await dialog.getByText('The code is wrong').waitFor();
    await dialog.getByLabel('Code', { exact: true }).fill(appCode(app_url));
    await dialog.getByRole('button', { name: 'Turn on' }).click();
    const codes = page.getByRole('dialog', { name: 'Keep these recovery codes' });
    await codes.waitFor();
    expect(await codes.getByRole('listitem').count()).toBe(10);
    expect(await opened.seriousFindings()).toEqual([]);
    await opened.photograph('two-step-codes');
    // They would be lost.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    const [first = ''] = await codes.getByRole('listitem').allTextContents();
    await codes.getByRole('button', { name: 'I have kept them' }).click();
    await page.getByText('10 recovery codes are left.').waitFor();
    // The replaced session goes on working.
    await page.getByRole('button', { name: 'Save name' }).click();
    await page.getByText('Your name is saved.').first().waitFor();

    await using second = await openPage(PHONE);
    await enterPassword(second.page, ada.email);
    expect([await second.seriousFindings(), await second.overflows()]).toEqual([[], false]);
    await second.photograph('two-step-code');
    await second.page.getByLabel('Code', { exact: true }).fill(wrongCode(app_url));
    await second.page.getByRole('button', { name: 'Sign in' }).click();
    await second.page.getByText('The code is wrong').waitFor();
    await second.page.getByLabel('Code', { exact: true }).fill(appCode(app_url));
    await second.page.getByRole('button', { name: 'Sign in' }).click();
    await second.page.getByRole('heading', { name: 'Your account' }).waitFor();

    await using third = await openPage(DESKTOP);
    await enterPassword(third.page, ada.email);
    await third.page.getByLabel('Code', { exact: true }).fill(first);
    await third.page.getByRole('button', { name: 'Sign in' }).click();
    await third.page.getByText('9 recovery codes are left.').waitFor();
    const refused = (complaint: string) => !complaint.startsWith('Failed to load resource');
    expect([opened, second, third].flatMap(({ complaints }) => complaints.filter(refused))).toEqual([]);
  });

  test('gets new recovery codes, and is turned off, by the password', async () => {
    const grace = await addPerson(made, { email: 'grace@example.com' });
    const { app_url } = await turnOn(grace);
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await enterPassword(page, grace.email);
    await page.getByLabel('Code', { exact: true }).fill(appCode(app_url));
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'New recovery codes…' }).click();
    await page.getByRole('dialog').getByLabel('Password').fill('a wrong password');
    await page.getByRole('button', { name: 'Make new codes' }).click();
    await page.getByText('The password is wrong.').waitFor();
    await page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
    await page.route('**/console/api/session', (route) => route.abort());
    await page.getByRole('button', { name: 'Make new codes' }).click();
    await page.getByRole('heading', { name: 'Keep these recovery codes' }).waitFor();
    await page.unroute('**/console/api/session');
    await page.getByRole('button', { name: 'I have kept them' }).click();
    await page.getByRole('button', { name: 'Turn off…' }).click();
    await page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
    await page.getByRole('dialog').getByRole('button', { name: 'Turn off' }).click();
    await page.getByRole('button', { name: 'Set up two-step sign-in…' }).waitFor();
    const acts = await made.service.execute(
      `SELECT action FROM trail_entries WHERE user_id = '${grace.user_id}' ORDER BY id`,
    );
    expect(acts.map(({ action }) => action)).toEqual([
      'second_factor.add',
      'second_factor.recovery_codes',
      'second_factor.remove',
    ]);
  });

  test('is seen of each member by owners and admins, and by no other member', async () => {
    const owner = await addPerson(made, { email: 'owner@example.com' });
    const member = await addMemberPerson(made, owner.organization_id, 'developer', 'Dora');
    await turnOn(member);
    const path = `/console/o/${owner.organization_id}/members`;
    await using opened = await visit(made, path, { person: owner });
    const row = opened.page.getByRole('row', { name: 'dora@example.com' });
    await row.getByText('Two-step sign-in').waitFor();
    expect(await opened.page.getByText('Two-step sign-in').count()).toBe(1);
    expect(await opened.seriousFindings()).toEqual([]);
    const admin = await addMemberPerson(made, owner.organization_id, 'admin');
    const reader = await addMemberPerson(made, owner.organization_id, 'reader');
    const members = `/console/api/organizations/${owner.organization_id}/members`;
    expect(await (await admin.ask(members)).text()).toContain('"has_second_factor":true');
    const seen = await (await reader.ask(members)).text();
    expect(seen).toContain('"has_second_factor":null');
    expect(seen).not.toMatch(/"has_second_factor":(true|false)/);
  });
});
