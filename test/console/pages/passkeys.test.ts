import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { type ConsolePage, DESKTOP, openPage, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, PASSWORD, type Person } from '../people.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(120_000);

/** Gives a page an authenticator of its own, whose user always proves who they are. */
async function addAuthenticator({ page }: ConsolePage): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
}

describeInBrowser('passkeys in a real browser', () => {
  const made = consoleInBrowser();
  /** The service by the only name without https that browsers give passkeys to. */
  let local: string;
  beforeAll(() => {
    local = `http://localhost:${new URL(made.service.server.address).port}`;
  });

  /** A page with an authenticator, where that person has signed in with the password. */
  async function signedInPage({ email }: Pick<Person, 'email'>, view: View = DESKTOP): Promise<ConsolePage> {
    const opened = await openPage(view);
    await addAuthenticator(opened);
    const { page } = opened;
    await page.goto(`${local}/console/account`);
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    return opened;
  }

  async function addPasskey(page: Page, name: string): Promise<void> {
    await page.getByRole('button', { name: 'Add a passkey…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a passkey' });
    await dialog.getByLabel('Password').fill(PASSWORD);
    await dialog.getByLabel('Name').fill(name);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('The passkey is added.').waitFor();
  }

  async function signOut(page: Page): Promise<void> {
    await page.context().clearCookies();
    await page.goto(`${local}/console/sign-in?return=/console/account`);
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();
  }

  /** Signs in with the passkey of the page's authenticator; returns the request that did it. */
  async function enter(page: Page): Promise<{ readonly body: string }> {
    const sent = page.waitForRequest((request) => request.url().endsWith('/console/api/passkey'));
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    return { body: (await sent).postData() ?? '' };
  }

  /** Asks the API as the page does; resolves with the status and the text. */
  async function askFromPage(page: Page, path: string, body: string): Promise<readonly [number, string]> {
    const response = await page.evaluate(
      async ([url, sent]) => {
        const headers = { 'content-type': 'application/json' };
        const answered = await fetch(url, { method: 'POST', headers, body: sent });
        return [answered.status, await answered.text()] as const;
      },
      [path, body] as const,
    );
    return response;
  }

  test('are added on the account page, sign in as both steps, and the answer works once', async () => {
    const ada = await addPerson(made, { email: 'ada@example.com' });
    await using opened = await signedInPage(ada);
    const { page } = opened;
    await page.getByText('No passkeys').waitFor();
    await page.getByText('kept by your device or your password manager').waitFor();
    await page.getByRole('button', { name: 'Add a passkey…' }).click();
    await page.getByRole('dialog').getByLabel('Password').fill('a wrong password');
    // Said before the browser makes one.
    await page.getByRole('dialog').getByLabel('Name').fill('😀'.repeat(101));
    await page.getByRole('dialog').getByRole('button', { name: 'Continue' }).click();
    await page.getByText('A name must have 1 to 100 characters').waitFor();
    await page.getByRole('dialog').getByLabel('Name').fill('😀'.repeat(100));
    await page.getByRole('dialog').getByRole('button', { name: 'Continue' }).click();
    await page.getByText('The password is wrong.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await addPasskey(page, 'Work laptop');
    const row = page.getByRole('row', { name: 'Work laptop' });
    await row.getByText('Never').waitFor();
    // The same device makes no second one.
    await page.getByRole('button', { name: 'Add a passkey…' }).click();
    await page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
    await page.getByRole('dialog').getByRole('button', { name: 'Continue' }).click();
    await page.getByText('This device has a passkey of your account already.').waitFor();

    await signOut(page);
    const { body } = await enter(page);
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    await page.locator('main').getByText('ada@example.com').waitFor();
    await row.getByText('Work laptop').waitFor();
    expect(await row.getByText('Never').count()).toBe(0);
    await signOut(page);
    const [status, text] = await askFromPage(page, '/console/api/passkey', body);
    expect([status, text]).toEqual([409, expect.stringContaining('"passkey_ended"')]);
  });

  // A session of the developer tools for axe ends the virtual authenticators, so that nothing is signed here.
  test('are shown in ways that axe and a phone take', async () => {
    const person = await addPerson(made, { email: 'person@example.com' });
    await using opened = await signedInPage(person, PHONE);
    const { page } = opened;
    await addPasskey(page, 'A name of a passkey that is as long as a phone is wide, and then some');
    expect([await opened.seriousFindings(), await opened.overflows()]).toEqual([[], false]);
    await opened.photograph('passkeys');
    await page.getByRole('button', { name: 'Add a passkey…' }).click();
    await page.getByRole('dialog').getByLabel('Name').waitFor();
    expect([await opened.seriousFindings(), await opened.overflows()]).toEqual([[], false]);
    await opened.photograph('passkey-add');
    await signOut(page);
    expect([await opened.seriousFindings(), await opened.overflows()]).toEqual([[], false]);
    await opened.photograph('passkey-sign-in');
  });

  test('sign in each person with their own, and a removed one signs nobody in', async () => {
    const grace = await addPerson(made, { email: 'grace@example.com' });
    const eve = await addPerson(made, { email: 'eve@example.com' });
    await using graces = await signedInPage(grace, PHONE);
    await using eves = await signedInPage(eve);
    await addPasskey(graces.page, 'Phone');
    await addPasskey(eves.page, 'Tablet');
    for (const [opened, email] of [
      [graces, 'grace@example.com'],
      [eves, 'eve@example.com'],
    ] as const) {
      await signOut(opened.page);
      await enter(opened.page);
      await opened.page.getByRole('heading', { name: 'Your account' }).waitFor();
      await opened.page.locator('main').getByText(email).waitFor();
    }

    await graces.page.getByRole('button', { name: 'Remove the passkey Phone' }).click();
    await graces.page.getByRole('dialog').getByLabel('Password').fill(PASSWORD);
    await graces.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await graces.page.getByText('No passkeys').waitFor();
    await signOut(graces.page);
    await enter(graces.page);
    await graces.page.getByText('This passkey does not sign anybody in here').waitFor();
    // The password still does.
    await graces.page.getByLabel('Email address').fill(grace.email);
    await graces.page.getByLabel('Password').fill(PASSWORD);
    await graces.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await graces.page.getByRole('heading', { name: 'Your account' }).waitFor();
    const acts = await made.service.execute(
      `SELECT action FROM trail_entries WHERE user_id = '${grace.user_id}' ORDER BY id`,
    );
    expect(acts.map(({ action }) => action)).toEqual(['passkey.add', 'passkey.remove']);
  });

  test('are not offered at an address where browsers have none, and operators read why', async () => {
    const operator = await addPerson(made, { email: 'operator@example.com', is_operator: true });
    const customer = await addPerson(made, { email: 'customer@example.com' });
    await using signed_out = await visit(made, '/console/sign-in');
    await signed_out.page.getByRole('button', { name: 'Sign in', exact: true }).waitFor();
    expect(await signed_out.page.getByRole('button', { name: /passkey/ }).count()).toBe(0);
    const [status, text] = await askFromPage(signed_out.page, '/console/api/passkey/question', '{}');
    expect([status, text]).toEqual([409, expect.stringContaining('"no_passkeys_here"')]);
    await using operators = await visit(made, '/console/account', { person: operator });
    await operators.page.getByText('No passkeys at this address').waitFor();
    expect(await operators.seriousFindings()).toEqual([]);
    await using customers = await visit(made, '/console/account', { person: customer });
    await customers.page.getByRole('button', { name: 'Set up two-step sign-in…' }).waitFor();
    await customers.page.waitForLoadState('networkidle');
    expect(await customers.page.getByRole('heading', { name: 'Passkeys' }).count()).toBe(0);
  });
});
