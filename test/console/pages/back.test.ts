import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { windowedChromiumPath } from '../../support/chromium.ts';
import { eventually } from '../../support/eventually.ts';
import { ConsoleBrowser, type ConsolePage, DESKTOP } from '../browser.ts';
import { consoleInBrowser } from '../in-browser.ts';
import { addPerson, mailedLink, PASSWORD, type Person, signIn } from '../people.ts';
import { carrySession, visit } from './visitor.ts';

setDefaultTimeout(120_000);

const program = windowedChromiumPath();
if (program === null)
  console.log('The browser tests are skipped: there is no chromium (apt-get install chromium).');

const RECORD = 'A record that nobody else may read';

describe.skipIf(program === null)('going back to a page that the browser kept', () => {
  const made = consoleInBrowser();
  let browser: ConsoleBrowser;
  let ada: Person;
  beforeAll(async () => {
    browser = await ConsoleBrowser.open(program ?? '', { keeps_pages: true });
    ada = await addPerson(made, { email: 'ada@example.com' });
  });
  afterAll(() => browser[Symbol.asyncDispose]());

  /** The playground with a record in it. */
  async function openPlayground(): Promise<ConsolePage> {
    const opened = await visit(made, `/console/o/${ada.organization_id}/playground`, {
      person: ada,
      browser,
    });
    await opened.page.getByRole('textbox', { name: 'Record' }).fill(RECORD);
    await opened.page.evaluate('globalThis.is_as_left = true');
    return opened;
  }

  /** Resolves with the page's elements and typed values. */
  async function everythingOn({ page }: ConsolePage): Promise<string> {
    return String(
      await page.evaluate(
        "document.documentElement.outerHTML + [...document.querySelectorAll('textarea')].map(({ value }) => value)",
      ),
    );
  }

  const isAsLeft = ({ page }: ConsolePage) => page.evaluate('globalThis.is_as_left === true');
  const signInShown = ({ page }: ConsolePage) =>
    page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
  /** The browser tells the page that it is shown again as it was left. */
  const showAgain = ({ page }: ConsolePage) =>
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");

  test('from another page shows everything as it was left, to whoever is still signed in', async () => {
    await using opened = await openPlayground();
    const { page } = opened;
    await page.setViewportSize({ ...DESKTOP, height: 400 });
    await page.getByRole('textbox', { name: 'Record' }).focus();
    await page.evaluate('scrollTo(0, 150)');
    await page.goto(`${made.service.server.address}/healthz`);
    await page.goBack({ waitUntil: 'commit' });
    await page.locator('html:not([style*=visibility])').waitFor();
    await page.getByRole('textbox', { name: 'Record' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Record' }).inputValue()).toBe(RECORD);
    expect(await page.evaluate('[scrollY, document.activeElement.value]')).toEqual([150, RECORD]);
    expect(await isAsLeft(opened)).toBe(true);
  });

  /** The page of the link that verifies the address of whoever signed up just now. */
  async function openVerification(email: string, reader?: Person): Promise<ConsolePage> {
    const headers = { origin: made.service.server.address, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'New', email, password: PASSWORD });
    await made.service.fetch('/console/api/sign-up', { method: 'POST', headers, body });
    const opened = await browser.page(DESKTOP);
    if (reader !== undefined) await carrySession(opened, made, reader);
    await opened.page.goto(await mailedLink(made, email, 'verify'));
    await opened.page.getByLabel('Password').fill(PASSWORD);
    await opened.page.waitForURL((url) => url.hash === '');
    return opened;
  }

  /** Verifies by what the page has; the password is typed anew. */
  async function verify({ page }: ConsolePage): Promise<void> {
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Verify and sign in' }).click();
    await page.getByRole('button', { name: 'Account: New' }).waitFor();
  }

  test('of a mailed link has its token still, and what was typed', async () => {
    await using opened = await openVerification('new@example.com');
    const { page } = opened;
    await page.evaluate('globalThis.is_as_left = true');
    await page.goto(`${made.service.server.address}/healthz`);
    await page.goBack({ waitUntil: 'commit' });
    await page.getByRole('button', { name: 'Verify and sign in' }).click();
    await page.getByRole('button', { name: 'Account: New' }).waitFor();
    expect(await isAsLeft(opened)).toBe(true);
  });

  test('of a mailed link has its token still after it could not be asked who is signed in', async () => {
    await using opened = await openVerification('away@example.com');
    const { page } = opened;
    await page.route('**/console/api/session', (route) => route.abort());
    await showAgain(opened);
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    await page.unroute('**/console/api/session');
    await page.getByRole('button', { name: 'Try again' }).click();
    await verify(opened);
  });

  test('of a mailed link that is loaded anew, because it could not be asked whether its reader is signed in still, has its token', async () => {
    await using opened = await openVerification('beside@example.com', ada);
    const { page } = opened;
    await page.evaluate('globalThis.is_as_left = true');
    await page.route('**/console/api/session', (route) => route.abort());
    await showAgain(opened);
    await untilLoadedAnew(page);
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    await page.unroute('**/console/api/session');
    await page.getByRole('button', { name: 'Try again' }).click();
    await verify(opened);
    expect(new URL(page.url()).hash).toBe('');
  });

  test('of a mailed link has its token no more for somebody else who signed in meanwhile', async () => {
    await using opened = await openVerification('other@example.com');
    const { page } = opened;
    await page.evaluate('globalThis.is_as_left = true');
    await carrySession(opened, made, ada);
    await showAgain(opened);
    await untilLoadedAnew(page);
    await page.getByRole('button', { name: 'Send a new link' }).waitFor();
    expect(await page.getByLabel('Password').count()).toBe(0);
  });

  test('of a mailed link that was left has its token no more', async () => {
    await using opened = await openVerification('left@example.com');
    const { page } = opened;
    await page.getByRole('link', { name: 'Set a new password' }).click();
    await page.getByRole('heading', { name: 'Reset your password' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Send a new link' }).waitFor();
    expect(await page.getByLabel('Password').count()).toBe(0);
  });

  test('after a sign-out shows nothing of it', async () => {
    await using opened = await openPlayground();
    const { page } = opened;
    // A session of its own, because the others go on with theirs.
    await carrySession(opened, made, await signIn(made, ada));
    await page.reload();
    await page.getByRole('textbox', { name: 'Record' }).fill(RECORD);
    await page.getByRole('button', { name: /^Account: / }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signInShown(opened);
    await page.goBack({ waitUntil: 'commit' });
    await signInShown(opened);
    expect(await everythingOn(opened)).not.toContain(RECORD);
  });

  test('hides the page until it is known who is signed in', async () => {
    await using opened = await openPlayground();
    const { page } = opened;
    const asked = Promise.withResolvers<() => void>();
    await page.route('**/console/api/session', async (route) => {
      await new Promise<void>((resolve) => asked.resolve(resolve));
      await route.continue();
    });
    await showAgain(opened);
    const answer = await asked.promise;
    const record = page.locator('textarea').first();
    expect(await record.isVisible()).toBe(false);
    answer();
    await record.waitFor();
    expect(await everythingOn(opened)).toContain(RECORD);
  });

  test('as somebody else, or as nobody, loads the page anew', async () => {
    const bob = await addPerson(made, { email: 'bob@example.com' });
    await using opened = await openPlayground();
    const { page } = opened;
    await carrySession(opened, made, bob);
    await showAgain(opened);
    await page.getByRole('button', { name: 'Account: bob' }).waitFor();
    expect(await isAsLeft(opened)).toBe(false);
    expect(await everythingOn(opened)).not.toContain(RECORD);

    await using left = await openPlayground();
    await left.page.context().clearCookies();
    await showAgain(left);
    await signInShown(left);
    await untilLoadedAnew(left.page);
    expect(await everythingOn(left)).not.toContain(RECORD);
  });
});

/** Waits until the page is another one; the test looks, because the page's policy forbids evaluation in it. */
async function untilLoadedAnew(page: ConsolePage['page']): Promise<void> {
  await eventually(() => page.evaluate<boolean>('globalThis.is_as_left !== true').catch(() => false));
}
