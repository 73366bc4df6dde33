import { expect, setDefaultTimeout, test } from 'bun:test';
import type { Request } from 'playwright-core';
import { type ConsolePage, DESKTOP, openPage } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, mailedLink, PASSWORD } from '../people.ts';

setDefaultTimeout(120_000);

const NEW_PASSWORD = 'another battery staple';

describeInBrowser('the token of a mailed link is in no address and no referrer', () => {
  const made = consoleInBrowser();

  /** A page, and what its browser sends of addresses from here on. */
  async function watchedPage() {
    const opened = await openPage(DESKTOP);
    const requests: Promise<{
      readonly change: boolean;
      readonly sent: string[];
      readonly status: number;
    }>[] = [];
    const watch = (request: Request) => {
      const sent = async () => {
        // A fragment is the browser's own.
        const url = new URL(request.url());
        url.hash = '';
        const headers = await request.allHeaders();
        const status = (await request.response())?.status() ?? 0;
        return { change: request.method() !== 'GET', sent: [url.href, headers.referer ?? ''], status };
      };
      const answered = sent();
      // A test that fails before its check waits for none of them, and its page closes while some are under way.
      answered.catch(() => undefined);
      requests.push(answered);
    };
    opened.page.on('request', watch);
    return { opened, requests, stop: () => opened.page.off('request', watch) };
  }

  async function open({ page }: ConsolePage, link: string, heading: string): Promise<string> {
    await page.goto(link);
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
    // The page takes the token out of the address as soon as it has it.
    await page.waitForURL((url) => url.hash === '');
    return new URLSearchParams(new URL(link).hash.slice(1)).get('token') ?? '';
  }

  /**
   * Holds what was sent against the token, and every change against the console's own check of its origin. What begins
   * later may be cut off by the page's end, and is not watched.
   */
  async function expectNone(
    { requests, stop }: Awaited<ReturnType<typeof watchedPage>>,
    token: string,
  ): Promise<void> {
    expect(token).toMatch(/^[\w-]{43}$/);
    stop();
    const all = await Promise.all(requests);
    expect(all.flatMap(({ sent }) => sent).filter((text) => text.includes(token))).toEqual([]);
    const referrers = new Set(all.map(({ sent }) => sent[1]));
    expect([...referrers].sort()).toEqual(['', `${made.service.server.address}/`]);
    const changes = all.filter(({ change }) => change).map(({ status }) => status);
    expect(changes.length).toBeGreaterThan(0);
    expect(changes.filter((status) => status !== 200)).toEqual([]);
  }

  test('that verifies an address; a reload asks for the link again', async () => {
    const email = 'ada@example.com';
    const headers = { origin: made.service.server.address, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'Ada', email, password: PASSWORD });
    await made.service.fetch('/console/api/sign-up', { method: 'POST', headers, body });
    const link = await mailedLink(made, email, 'verify');
    const watched = await watchedPage();
    await using opened = watched.opened;
    const { page } = opened;
    const token = await open(opened, link, 'Verify your email address');
    await page.reload();
    await page.getByText('If you have one, open it again.').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    await open(opened, link, 'Verify your email address');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Verify and sign in' }).click();
    await page.getByRole('button', { name: 'Account: Ada' }).waitFor();
    await expectNone(watched, token);
  });

  test('that verifies an address leads whoever is verified already to sign-in', async () => {
    const email = 'katherine@example.com';
    const headers = { origin: made.service.server.address, 'content-type': 'application/json' };
    const change = (path: string, body: unknown) =>
      made.service.fetch(`/console/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    await change('sign-up', { name: 'Katherine', email, password: PASSWORD });
    const link = await mailedLink(made, email, 'verify');
    const token = new URLSearchParams(new URL(link).hash.slice(1)).get('token');
    expect((await change('verify', { token, password: PASSWORD })).status).toBe(200);
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    await open(opened, link, 'Verify your email address');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Verify and sign in' }).click();
    await page.getByRole('alert').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    await page.getByRole('button', { name: 'Send a new link' }).click();
    await page.getByLabel('Email address').fill(email);
    await page.getByRole('button', { name: 'Send a new link' }).click();
    await page.getByText('If it is verified, sign in.').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Account: Katherine' }).waitFor();
  });

  test('that sets a password; a reload asks for the link again, and so may the reader', async () => {
    const { email } = await addPerson(made, { email: 'grace@example.com' });
    const seen = made.mails.length;
    const watched = await watchedPage();
    await using opened = watched.opened;
    const { page } = opened;
    await page.goto(`${made.service.server.address}/console/reset`);
    await page.getByLabel('Email address').fill(email);
    await page.getByRole('button', { name: 'Send the link' }).click();
    while (made.mails.length === seen) await new Promise(setImmediate);
    const link = await mailedLink(made, email, 'reset');
    // The same page is open already: the browser loads nothing.
    const token = await open(opened, link, 'Choose a new password');
    await page.reload();
    await page.getByText('If you have one, open it again.').waitFor();
    await open(opened, link, 'Choose a new password');
    await page.getByRole('button', { name: 'Ask for a new link' }).click();
    await page.getByText('If you have one, open it again.').waitFor();
    // The button is gone: whoever uses the keyboard or a screen reader goes on from the new content.
    expect(await page.evaluate('document.activeElement.id')).toBe('content');
    await open(opened, link, 'Choose a new password');
    await page.getByLabel('New password').fill(NEW_PASSWORD);
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(NEW_PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Account: grace' }).waitFor();
    await expectNone(watched, token);
  });

  test('that invites; on the way through sign-in the invitation is kept, reloads included', async () => {
    const host = await addPerson(made, { email: 'host@example.com', name: 'Hosts' });
    const { email } = await addPerson(made, { email: 'guest@example.com' });
    const invited = { email, role: 'developer' };
    await host.ask(`/console/api/organizations/${host.organization_id}/invitations`, { body: invited });
    const link = await mailedLink(made, email, 'invitation');
    const watched = await watchedPage();
    await using opened = watched.opened;
    const { page } = opened;
    const token = await open(opened, link, 'Join Hosts');
    await page.reload();
    await page.getByRole('heading', { name: 'Join Hosts' }).waitFor();
    await page.getByRole('link', { name: 'Sign in to join' }).click();
    await page.reload();
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Join' }).click();
    await page.getByText('You are now a member of Hosts.').waitFor();
    await expectNone(watched, token);
    await page.goto(`${made.service.server.address}/console/invitation`);
    await page.getByText('No invitation is open here').waitFor();
  });
});
