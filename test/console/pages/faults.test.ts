import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { createOrganization, setSuspended } from '../../../src/accounts/organizations.ts';
import { createProject } from '../../../src/accounts/projects.ts';
import { DESKTOP, openPage, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { addUsage } from '../usage-rows.ts';
import { carrySession, LATELY, visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser('the frame around the pages', () => {
  const made = consoleInBrowser();
  let ada: Person;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
  });

  const at = (page: string, { organization_id }: Pick<Person, 'organization_id'> = ada) =>
    `/console/o/${organization_id}/${page}`;

  test('a page that was not loaded while the service is away says so, and opens when it is back', async () => {
    await using opened = await visit(made, at('overview'), { person: ada });
    const { page } = opened;
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Members' }).click();
    await page.getByRole('alert').getByText('The service cannot be reached.').waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
    await page.context().setOffline(false);
    await page.getByRole('heading', { name: 'Members' }).waitFor();
  });

  test('the frame of a loading page is shown before any code has come, and once only', async () => {
    await using opened = await openPage(DESKTOP);
    const { page } = opened;
    const { promise: come, resolve: letCome } = Promise.withResolvers<void>();
    await page.route('**/console/assets/*.js', async (route) => {
      await come;
      await route.continue();
    });
    await page.goto(`${made.service.server.address}/console/sign-in`, { waitUntil: 'commit' });
    await page.getByText('Decisions', { exact: true }).waitFor();
    await page.locator('.skeleton-line').first().waitFor();
    letCome();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.locator('#page > *').count()).toBe(1);
    expect(await page.locator('.skeleton-line').count()).toBe(0);
    expect(opened.complaints).toEqual([]);
  });

  test('a page that is gone says that it cannot be loaded, and does not load itself again and again', async () => {
    await using opened = await visit(made, at('overview'), { person: ada });
    const { page } = opened;
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.route('**/console/assets/members-*', (route) => route.fulfill({ status: 404 }));
    await page.getByRole('link', { name: 'Members' }).click();
    await page.getByText('This page could not be loaded.').waitFor();
    await page.unroute('**/console/assets/members-*');
    await page.getByRole('button', { name: 'Load it again' }).click();
    await page.getByRole('heading', { name: 'Members' }).waitFor();
  });

  test.each([PHONE, DESKTOP])('no bar hides what has the focus: $name', async (view) => {
    await using opened = await visit(made, at('playground'), { person: ada, view });
    const { page } = opened;
    await page.getByRole('button', { name: /^team/ }).click();
    await page.getByRole('textbox', { name: 'Record' }).focus();
    const hidden = `(() => {
      const focused = document.activeElement;
      const { top, bottom } = focused.getBoundingClientRect();
      const bar = document.querySelector('.run-bar');
      if (bar.contains(focused)) return 'the bar';
      return bottom > bar.getBoundingClientRect().top + 1 || top < document.querySelector('.top-bar').offsetHeight - 1;
    })()`;
    let fields = 0;
    for (; (await page.evaluate(hidden)) !== 'the bar'; fields++) {
      const name = await page.evaluate('document.activeElement.name || document.activeElement.textContent');
      expect([name, await page.evaluate(hidden)]).toEqual([name, false]);
      await page.keyboard.press('Tab');
    }
    expect(fields).toBeGreaterThan(20);
  });

  test.each([PHONE, DESKTOP])(
    'a project name of 100 characters without a space widens no page: $name',
    async (view) => {
      const { accounts, db } = made.service;
      const person = await addPerson(made, { email: `wide-${view.name}@example.com`, name: 'W'.repeat(60) });
      const { organization_id } = person;
      const { id: project_id } = await createProject(accounts, OPERATOR, {
        organization_id,
        name: 'x'.repeat(100),
      });
      const { id: api_key_id } = await createKey(accounts, OPERATOR, { project_id, name: 'k'.repeat(100) });
      const to_ms = made.service.clock.now_ms();
      addUsage(db, {
        organization_id,
        project_id,
        api_key_id,
        requests: 20,
        from_ms: to_ms - 3_600_000,
        to_ms,
      });
      const pages = ['overview', 'playground', 'keys', 'usage', 'billing', 'projects', 'members', 'trail'];
      await using opened = await visit(made, at('settings', person), { person, view });
      const { page } = opened;
      await page.getByRole('heading', { name: 'Settings' }).waitFor();
      for (const name of pages) {
        await page.goto(made.service.server.address + at(name, person));
        await page.locator('main h1').waitFor();
        await page.locator('main .skeleton').first().waitFor({ state: 'detached' });
        expect([name, await opened.overflows()]).toEqual([name, false]);
      }
    },
  );

  test("the avatar is round on a phone, with a whole character, and the account's page keeps the navigation", async () => {
    const long = await addPerson(made, {
      email: 'long@example.com',
      name: '👩‍🔬 A name that is rather long',
    });
    await made.service.execute(
      `UPDATE organizations SET name = 'An organization with quite a long name' WHERE id = '${long.organization_id}'`,
    );
    await using opened = await visit(made, at('usage', long), { person: long, view: PHONE });
    const { page } = opened;
    const avatar = await page.locator('.avatar').boundingBox();
    expect(avatar?.width).toBe(avatar?.height ?? 0);
    expect(await page.locator('.avatar').textContent()).toBe('👩‍🔬');
    await page.getByRole('button', { name: /^Account/ }).click();
    await page.getByRole('link', { name: 'Your account' }).click();
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    await page.getByRole('button', { name: 'Navigation' }).click();
    const usage = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Usage' });
    expect(await usage.getAttribute('href')).toBe(at('usage', long));
  });

  test('whoever goes from a page to another organization is offered what their role there allows', async () => {
    const other = await addPerson(made, { email: 'other@example.com', name: 'Grace Hopper' });
    const { organization_id } = other;
    await addMember(made.service.accounts, OPERATOR, {
      organization_id,
      user_id: ada.user_id,
      role: 'admin',
    });
    await using opened = await visit(made, at('trail'), { person: ada });
    const { page } = opened;
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    await page.getByRole('button', { name: /^Organization/ }).click();
    await page.getByRole('link', { name: /admin$/ }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(await page.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
  });

  test('a suspended organization is told so on each of its pages, and on none of another', async () => {
    const { accounts } = made.service;
    const person = await addPerson(made, { email: 'suspended@example.com' });
    const { organization_id, user_id } = person;
    const { id } = await createOrganization(accounts, OPERATOR, { name: 'Working Works' });
    await addMember(accounts, OPERATOR, { organization_id: id, user_id, role: 'owner' });
    await setSuspended(accounts, OPERATOR, { organization_id, is_suspended: true });
    await using opened = await visit(made, at('overview', person), { person });
    const { page } = opened;
    const told = page.getByRole('alert').getByText('The operator has suspended this organization.');
    for (const name of ['Overview', 'Members']) {
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
      await page.getByRole('heading', { name, level: 1 }).waitFor();
      await told.waitFor();
    }
    expect(await opened.seriousFindings()).toEqual([]);
    await page.goto(made.service.server.address + at('overview', { organization_id: id }));
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    expect(await told.count()).toBe(0);
  });

  test('a page that is not there, or not for the reader, has its heading and its title', async () => {
    const { organization_id } = await addPerson(made, { email: 'host@example.com' });
    await addMember(made.service.accounts, OPERATOR, {
      organization_id,
      user_id: ada.user_id,
      role: 'reader',
    });
    await using opened = await visit(made, at('none'), { person: ada });
    const { page } = opened;
    for (const [path, title] of [
      [at('none'), 'There is nothing here'],
      [at('trail', { organization_id }), 'Your role does not allow this'],
      ['/console/invitation', 'No invitation is open here'],
    ] as const) {
      await page.goto(made.service.server.address + path);
      await page.getByRole('heading', { name: title, level: 1 }).waitFor();
      // The title follows the heading.
      await page.waitForFunction(`document.title === '${title} · Typed Decision Service'`);
    }
  });

  test('menus stay within a phone, whatever the name of an organization', async () => {
    const { accounts } = made.service;
    const person = await addPerson(made, { email: 'menus@example.com', name: 'M'.repeat(60) });
    const { id } = await createOrganization(accounts, OPERATOR, { name: 'o'.repeat(100) });
    await addMember(accounts, OPERATOR, { organization_id: id, user_id: person.user_id, role: 'owner' });
    const view = { ...PHONE, width: 360 };
    await using opened = await visit(made, at('overview', person), { person, view });
    const { page } = opened;
    for (const name of [/^Organization/, /^Account/, /[Aa]lerts/]) {
      await page.getByRole('button', { name }).click();
      const list = page.locator('.menu-list:visible');
      // Its entries come after it.
      await list.locator('> *').first().waitFor();
      const sides = await list.evaluate(({ children }) =>
        [...children].map((child) => child.getBoundingClientRect()),
      );
      for (const { left, right } of sides) expect([left >= 0, right <= 360]).toEqual([true, true]);
      expect(sides.length).toBeGreaterThan(0);
    }
  });

  test('a relative time moves on while the page is open', async () => {
    const { default_project_id: project_id } = ada;
    await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Watched' });
    await using opened = await openPage(DESKTOP);
    await carrySession(opened, made, ada);
    const { page } = opened;
    await page.clock.install();
    await page.goto(made.service.server.address + at('keys'));
    const created = page.getByRole('row', { name: 'Watched' }).locator('time').first();
    await created.getByText(LATELY).waitFor();
    await page.clock.fastForward('03:05:00');
    await created.getByText('3 hours ago').waitFor();
  });

  test('the navigation has its pages in groups, and every link has an icon', async () => {
    await using opened = await visit(made, at('overview'), { person: ada });
    const { page } = opened;
    const navigation = page.getByRole('navigation', { name: 'Pages' });
    await navigation.getByRole('list', { name: 'Build' }).getByRole('link', { name: 'Playground' }).waitFor();
    expect(await navigation.getByRole('list').count()).toBe(3);
    const links = await navigation.getByRole('link').count();
    expect(await navigation.locator('a > svg.icon').count()).toBe(links);
    const last = navigation.getByRole('list', { name: 'Account' }).getByRole('link');
    expect(await last.allInnerTexts()).toEqual(['Billing', 'Settings']);
  });

  test('times are told in the time of the reader, or in UTC by a switch that the browser keeps', async () => {
    const time_ms = Date.UTC(2026, 2, 5, 20, 30);
    const { organization_id, default_project_id: project_id } = ada;
    await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Clock' });
    await made.service.execute(`UPDATE api_keys SET last_used_at_ms = ${time_ms} WHERE name = 'Clock'`);
    await using opened = await openPage(DESKTOP, 'Asia/Tokyo');
    await carrySession(opened, made, ada);
    const { page } = opened;
    await page.goto(`${made.service.server.address}/console/o/${organization_id}/keys`);
    const used = page.getByRole('row', { name: 'Clock' }).locator('time').last();
    expect(await used.getAttribute('title')).toContain('Mar 6, 2026, 05:30:00');
    await page.getByRole('button', { name: /^Account/ }).click();
    await page.getByText('UTC', { exact: true }).click();
    await page.locator('time[title*="Mar 5, 2026, 20:30:00 UTC"]').waitFor();
    await page.reload();
    await page.locator('time[title*="Mar 5, 2026, 20:30:00 UTC"]').waitFor();
  });
});
