import { expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createOrganization } from '../../../src/accounts/organizations.ts';
import { eventually } from '../../support/eventually.ts';
import { type ConsolePage, DESKTOP, openPage, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, mailedToken, PASSWORD } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { pressOn, typeForm } from './keyboard.ts';
import { carrySession, visit } from './visitor.ts';

setDefaultTimeout(120_000);

const NEW_PASSWORD = 'another battery staple';
/** A page that took a name for markup would load an image or run a script. */
const NAME = 'Ada <img src=x onerror=alert(1)>';

describeInBrowser('people in a real browser', () => {
  const made = consoleInBrowser();

  const open = (page: Page, path: string) => page.goto(`${made.service.server.address}${path}`);
  const shown = (page: Page, heading: string) =>
    page.getByRole('heading', { name: heading, level: 1 }).waitFor();

  /** Returns the browser's complaints, without refusals that a step expects. */
  const complaints = (opened: ConsolePage) =>
    opened.complaints.filter((complaint) => !complaint.startsWith('Failed to load resource'));

  async function isVerified(email: string): Promise<boolean> {
    const { accounts } = made.service.accounts.store;
    const user = await accounts.findUserByEmail(email);
    return (await accounts.standingOf(user?.id ?? ''))?.email_verified === true;
  }

  /** Chooses a line of the account's menu. */
  async function chooseOfAccount(page: Page, line: string): Promise<void> {
    await pressOn(page, page.getByRole('button', { name: /^Account: / }));
    const chosen = page.getByRole('link', { name: line }).or(page.getByRole('button', { name: line }));
    await pressOn(page, chosen);
  }

  async function signInAs(page: Page, email: string, password: string): Promise<void> {
    await shown(page, 'Sign in');
    await typeForm(page, { 'Email address': email, Password: password });
  }

  test('the whole life of an account, by keyboard alone', async () => {
    const email = 'ada@example.com';
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    page.on('dialog', (dialog) => opened.complaints.push(`a script ran: ${dialog.message()}`));

    await open(page, '/console');
    await shown(page, 'Sign in');
    await pressOn(page, page.getByRole('link', { name: 'Create an account' }));
    await shown(page, 'Create an account');
    await typeForm(page, { Name: NAME, 'Email address': email, Password: PASSWORD });
    await shown(page, 'Check your mailbox');

    await open(page, `/console/verify#token=${await mailedToken(made, email)}`);
    await shown(page, 'Verify your email address');
    await page.waitForLoadState('networkidle');
    // Mail programs open links: that alone verifies nothing.
    expect(await isVerified(email)).toBe(false);
    await typeForm(page, { Password: 'a wrong password' });
    await page.getByText('The password is wrong.').waitFor();
    expect(await isVerified(email)).toBe(false);
    await typeForm(page, { Password: PASSWORD });
    await page.getByRole('button', { name: `Account: ${NAME}` }).waitFor();
    expect(await isVerified(email)).toBe(true);
    await chooseOfAccount(page, 'Sign out');
    await signInAs(page, email, 'a wrong password');
    await page.getByText('The email address or the password is wrong.').waitFor();
    await typeForm(page, { 'Email address': email, Password: PASSWORD });
    await page.getByRole('button', { name: `Account: ${NAME}` }).waitFor();
    expect(await page.locator('img').count()).toBe(0);

    // A second browser, signed in as the same person.
    await using second = await openPage(DESKTOP);
    await open(second.page, '/console/account');
    await signInAs(second.page, email, PASSWORD);
    await shown(second.page, 'Your account');
    // Otherwise a later load of the page would find the session ended before the button is pressed.
    await second.page.waitForLoadState('networkidle');

    await chooseOfAccount(page, 'Your account');
    await shown(page, 'Your account');
    await page.getByRole('table', { name: 'Sessions' }).getByRole('row').nth(2).waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await typeForm(page, { 'Current password': 'a wrong password', 'New password': NEW_PASSWORD });
    await page.getByText('The password is wrong.').waitFor();
    await typeForm(page, { 'Current password': PASSWORD, 'New password': NEW_PASSWORD });
    await page.getByText('Your password is changed.').first().waitFor();

    // The other session has ended: its next request leads to the sign-in page, and back.
    await second.page.getByRole('button', { name: 'Save name' }).click();
    await signInAs(second.page, email, NEW_PASSWORD);
    await shown(second.page, 'Your account');

    await chooseOfAccount(page, 'Sign out');
    await shown(page, 'Sign in');
    await page.goBack();
    await shown(page, 'Sign in');

    await pressOn(page, page.getByRole('link', { name: 'Forgot your password?' }));
    await shown(page, 'Reset your password');
    const mails = made.mails.length;
    await typeForm(page, { 'Email address': email });
    await page.getByText('Check your mailbox').waitFor();
    while (made.mails.length === mails) await new Promise(setImmediate);
    await open(page, `/console/reset#token=${await mailedToken(made, email)}`);
    await shown(page, 'Choose a new password');
    await typeForm(page, { 'New password': PASSWORD });
    await signInAs(page, email, PASSWORD);
    await page.getByRole('button', { name: `Account: ${NAME}` }).waitFor();

    await chooseOfAccount(page, 'Your account');
    await shown(page, 'Your account');
    await pressOn(page, page.getByRole('button', { name: 'Delete account…' }));
    const dialog = page.getByRole('dialog', { name: 'Delete your account?' });
    await dialog
      .getByText(`This also closes ${NAME}, where you are the only member, and revokes its keys.`)
      .waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await signInAs(page, email, PASSWORD);
    await page.getByText('The email address or the password is wrong.').waitFor();
    expect([complaints(opened), complaints(second)]).toEqual([[], []]);
  });

  test('a session that ends in the middle of a page leads back to the page after sign-in', async () => {
    const grace = await addPerson(made, { email: 'grace@example.com' });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    const wanted = '/console/account?from=here';
    await open(page, wanted);
    await signInAs(page, grace.email, PASSWORD);
    await shown(page, 'Your account');
    await page.getByRole('button', { name: 'Save name' }).waitFor();
    made.service.db.$client.run('UPDATE sessions SET expires_at_ms = ?', [Date.now() - 1]);
    // A load in the background may find the ended session first, and take the page away.
    const pressed = page.evaluate("document.querySelector('form button[type=submit]')?.click()");
    await Promise.all([page.waitForURL(/\/console\/sign-in/), pressed.catch(() => {})]);
    await page.getByText('Your session has ended').waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await signInAs(page, grace.email, PASSWORD);
    await shown(page, 'Your account');
    expect(page.url()).toBe(`${made.service.server.address}${wanted}`);
    expect(complaints(opened)).toEqual([]);
  });

  test('sign-in says that the session has ended where the browser has deleted its cookies', async () => {
    const cora = await addPerson(made, { email: 'cora@example.com' });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/account');
    await signInAs(page, cora.email, PASSWORD);
    await shown(page, 'Your account');
    await page.context().clearCookies();
    await page.reload();
    await shown(page, 'Sign in');
    await page.getByText('this browser deleted its cookies').waitFor();
    await signInAs(page, cora.email, PASSWORD);
    await shown(page, 'Your account');
  });

  test('sign-in says nothing of a session that its owner ended, and nothing at a first visit', async () => {
    const vera = await addPerson(made, { email: 'vera@example.com' });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/account');
    await shown(page, 'Sign in');
    expect(await page.getByText('Your session has ended').count()).toBe(0);
    await signInAs(page, vera.email, PASSWORD);
    await shown(page, 'Your account');
    await chooseOfAccount(page, 'Sign out');
    await shown(page, 'Sign in');
    expect(await page.getByText('Your session has ended').count()).toBe(0);
  });

  test('a password can be shown, and hidden again, by keyboard', async () => {
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/sign-in');
    await shown(page, 'Sign in');
    const field = page.getByLabel('Password', { exact: true });
    const show = page.getByRole('button', { name: 'Show' });
    await field.fill('what I type');
    expect(await field.getAttribute('type')).toBe('password');
    await pressOn(page, show);
    expect([await field.getAttribute('type'), await show.getAttribute('aria-pressed')]).toEqual([
      'text',
      'true',
    ]);
    expect([await field.inputValue(), await opened.seriousFindings()]).toEqual(['what I type', []]);
    await opened.photograph('password-shown');
    await pressOn(page, show);
    expect(await field.getAttribute('type')).toBe('password');
  });

  test('somebody whose address is not verified gets the link again from the sign-in page', async () => {
    const email = 'unverified@example.com';
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/sign-up');
    await shown(page, 'Create an account');
    await typeForm(page, { Name: 'Una', 'Email address': email, Password: PASSWORD });
    await shown(page, 'Check your mailbox');
    const first = await mailedToken(made, email);
    await open(page, '/console/sign-in');
    await signInAs(page, email, PASSWORD);
    await page.getByRole('button', { name: 'Send the link again' }).click();
    await page.getByText(`A new link is on its way to ${email}.`).first().waitFor();
    await eventually(() => made.mails.filter(({ to }) => to === email).length === 2);
    const second = await mailedToken(made, email);
    expect(second).not.toBe(first);
    await open(page, `/console/verify#token=${second}`);
    await shown(page, 'Verify your email address');
    await typeForm(page, { Password: PASSWORD });
    await page.getByRole('button', { name: 'Account: Una' }).waitFor();
  });

  test('a password that everybody tries first is refused beside its field', async () => {
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/sign-up');
    await shown(page, 'Create an account');
    await typeForm(page, { Name: 'Una', 'Email address': 'common@example.com', Password: 'qwerty123456' });
    await page.getByRole('alert').getByText('This password is one of the most common').waitFor();
    expect(await page.getByLabel('Password', { exact: true }).getAttribute('aria-invalid')).toBe('true');
  });

  test('so is one as a new password', async () => {
    const zoe = await addPerson(made, { email: 'zoe@example.com' });
    await using opened = await visit(made, '/console/account', { person: zoe });
    const { page } = opened;
    await page.getByLabel('Current password').fill(PASSWORD);
    await page.getByLabel('New password').fill('qwerty123456');
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByRole('alert').getByText('This password is one of the most common').waitFor();
    expect(await page.getByLabel('New password').getAttribute('aria-invalid')).toBe('true');
  });

  test('a new tab and the next sign-in open the last organization again', async () => {
    const nina = await addPerson(made, { email: 'nina@example.com' });
    const organization = await createOrganization(made.service.accounts, OPERATOR, {
      name: 'Second Organization',
      owner_user_id: nina.user_id,
    });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console');
    await signInAs(page, nina.email, PASSWORD);
    await shown(page, 'Your organizations');
    await page.getByRole('link', { name: 'Second Organization' }).click();
    const overview = `${made.service.server.address}/console/o/${organization.id}/overview`;
    await page.waitForURL(overview);
    await page.getByRole('button', { name: 'Organization: Second Organization' }).waitFor();
    const tab = await page.context().newPage();
    await open(tab, '/console');
    await tab.waitForURL(overview);
    await tab.close();
    await chooseOfAccount(page, 'Sign out');
    await signInAs(page, nina.email, PASSWORD);
    await page.waitForURL(overview);
  });

  test('sign-in leads to no other place than a page of the console', async () => {
    const { email, organization_id } = await addPerson(made, { email: 'linus@example.com' });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    for (const place of [
      'https://evil.example/x',
      '//evil.example/x',
      '/console/..//evil.example',
      'javascript:alert(1)',
    ]) {
      // A page that is still open would notice the lost session, and lead to its own sign-in.
      await page.goto('about:blank');
      await page.context().clearCookies();
      await open(page, `/console/sign-in?return=${encodeURIComponent(place)}`);
      await signInAs(page, email, PASSWORD);
      const home = `${made.service.server.address}/console/o/${organization_id}/overview`;
      await page.waitForURL(home);
      expect([place, page.url()]).toEqual([place, home]);
    }
  });

  test('whoever another tab has signed in is led on to the wanted page, and asked for nothing', async () => {
    const ruth = await addPerson(made, { email: 'ruth@example.com' });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/account?from=here');
    await shown(page, 'Sign in');
    await carrySession(opened, made, ruth);
    await page.reload();
    await shown(page, 'Your account');
    expect(page.url()).toBe(`${made.service.server.address}/console/account?from=here`);
    for (const path of ['/console/sign-up', '/console/sign-in?return=/console/sign-in']) {
      await open(page, path);
      await page.waitForURL(`${made.service.server.address}/console/o/${ruth.organization_id}/overview`);
    }
    // A page that is still open would notice the lost session, and lead to its own sign-in.
    await page.goto('about:blank');
    // A tab that is open is led on without a load, also where the browser has noted an earlier sign-in.
    await page.context().clearCookies();
    await open(page, '/console/account?from=here');
    await shown(page, 'Sign in');
    const other = await page.context().newPage();
    await open(other, '/console/sign-in');
    await signInAs(other, ruth.email, PASSWORD);
    await shown(page, 'Your account');
    expect(page.url()).toBe(`${made.service.server.address}/console/account?from=here`);
  });

  test('each page of sign-in reads well, and breaks no rule of its policy', async () => {
    await using opened = await openPage(PHONE);
    const { page } = opened;
    for (const [path, heading] of [
      ['/console/sign-in', 'Sign in'],
      ['/console/sign-up', 'Create an account'],
      ['/console/reset', 'Reset your password'],
      ['/console/reset#token=none', 'Choose a new password'],
      ['/console/verify', 'Verify your email address'],
      ['/console/verify#token=none', 'Verify your email address'],
    ] as const) {
      await open(page, path);
      await shown(page, heading);
      await expectReadsWell(opened, `people${path.replaceAll(/\W+/g, '-')}`);
    }
    await open(page, '/console/invitation#token=none');
    await page.getByText('This invitation link is not valid').waitFor();
    await expectReadsWell(opened, 'people-invitation-not-valid');
    await page.reload();
    await page.getByText('No invitation is open here').waitFor();
    await expectReadsWell(opened, 'people-invitation-none');
    expect(complaints(opened)).toEqual([]);
  });

  test('a script within the page does not run, and the browser says so', async () => {
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console/sign-in');
    await shown(page, 'Sign in');
    const refused = page.waitForEvent('console', (message) => /Content Security Policy/.test(message.text()));
    await page.evaluate(
      `document.body.insertAdjacentHTML('beforeend', '<button onclick="document.title = 1">Run</button>')`,
    );
    await page.getByRole('button', { name: 'Run' }).click();
    await refused;
    expect(await page.title()).not.toBe('1');
    expect(complaints(opened).join()).toContain('Content Security Policy');
  });

  test('a page of another organization is as one that does not exist', async () => {
    const joan = await addPerson(made, { email: 'joan@example.com' });
    const other = await createOrganization(made.service.accounts, OPERATOR, { name: 'Of others' });
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(page, '/console');
    await signInAs(page, joan.email, PASSWORD);
    await page.getByRole('button', { name: 'Account: joan' }).waitFor();
    for (const id of ['org_000000000000000000000000', other.id]) {
      await open(page, `/console/o/${id}/usage`);
      await page.getByText('There is nothing here').waitFor();
    }
  });
});
