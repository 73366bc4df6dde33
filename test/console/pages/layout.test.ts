import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { invite } from '../../../src/accounts/invitations.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { createOrganization } from '../../../src/accounts/organizations.ts';
import { createProject } from '../../../src/accounts/projects.ts';
import { projectFile } from '../../../src/files/project-root.ts';
import { startTopUp } from '../../../src/payments/credit.ts';
import { manualProvider } from '../../../src/payments/manual.ts';
import { DAY_MS } from '../../../src/time/clock.ts';
import { type ConsolePage, DESKTOP, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { addUsage } from '../usage-rows.ts';
import { addMemberPerson, visit } from './visitor.ts';

setDefaultTimeout(120_000);

/** The path of a `PageEntry`. Its file would import the browser's types. */
const { PAGES }: { readonly PAGES: readonly { readonly path: string }[] } = await import(
  projectFile('src/console/pages/pages.ts')
);

/** As long as a name may be, with no place for a new line. */
const LONG_NAME = 'Donaudampfschifffahrtsgesellschaft'.repeat(3).slice(0, 100);
const SMALL_PHONE = { ...PHONE, width: 320 };

describeInBrowser('the layout of every page', () => {
  const made = consoleInBrowser();
  let ada: Person;
  let invitation_token: string;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: LONG_NAME, is_operator: true });
    const { organization_id } = ada;
    const { accounts, db } = made.service;
    const project = await createProject(accounts, OPERATOR, { organization_id, name: LONG_NAME });
    const key = await createKey(accounts, OPERATOR, { project_id: project.id, name: LONG_NAME });
    const now_ms = Date.now();
    addUsage(db, {
      organization_id,
      project_id: project.id,
      api_key_id: key.id,
      requests: 62,
      from_ms: now_ms - DAY_MS,
      to_ms: now_ms,
    });
    await createOrganization(accounts, OPERATOR, { name: LONG_NAME, owner_user_id: ada.user_id });
    await startTopUp(accounts, OPERATOR, manualProvider, { organization_id, amount_micros: 5_000_000 });
    await addMemberPerson(made, organization_id, 'reader', `${LONG_NAME.slice(0, 60)}B`);
    const asked = { organization_id, email: `${LONG_NAME}@example.com`, role: 'reader' } as const;
    invitation_token = (await invite(accounts, OPERATOR, asked)).token;
  });

  /** The widths of these at which the open page is wider than the screen, each with the page's path. */
  async function tooWide(opened: ConsolePage, path: string): Promise<readonly string[]> {
    const found: string[] = [];
    for (const view of [SMALL_PHONE, DESKTOP]) {
      await opened.show(view);
      if (await opened.overflows()) found.push(`${path} at ${view.width}`);
    }
    return found;
  }

  test('no page of the console is wider than the screen, however long its names are', async () => {
    await using opened = await visit(made, '/console/account', { person: ada });
    const { page } = opened;
    const found: string[] = [];
    for (const { path } of PAGES) {
      const address = path.replace(':organization_id', ada.organization_id);
      const more = path.endsWith('/usage')
        ? '?group=project'
        : path.endsWith('/invitation')
          ? `#token=${invitation_token}`
          : '';
      await page.evaluate(`new Promise((drawn) => {
        history.pushState(null, '', ${JSON.stringify(address + more)});
        dispatchEvent(new PopStateEvent('popstate'));
        requestAnimationFrame(() => requestAnimationFrame(drawn));
      })`);
      await page.locator('main:not(:has(.skeleton)) h1').waitFor();
      found.push(...(await tooWide(opened, path)));
    }
    expect(found).toEqual([]);
    expect(opened.complaints).toEqual([]);
  });

  test('no document is wider than the screen', async () => {
    await using opened = await visit(made, '/docs');
    const found: string[] = [];
    for (const path of ['/docs', '/docs/errors', '/swagger']) {
      await opened.page.goto(`${made.origin}${path}`);
      found.push(...(await tooWide(opened, path)));
    }
    expect(found).toEqual([]);
    expect(opened.complaints).toEqual([]);
  });

  test('forced colours leave to see which document is open', async () => {
    await using opened = await visit(made, '/docs');
    const { page } = opened;
    await page.emulateMedia({ forcedColors: 'active' });
    const colour = (selector: string) =>
      page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).color`);
    expect(await colour('nav a[aria-current]')).not.toBe(await colour('nav a:not([aria-current])'));
  });
});
