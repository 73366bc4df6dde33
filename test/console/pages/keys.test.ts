import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey, listKeys } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { createOrganization } from '../../../src/accounts/organizations.ts';
import { createProject } from '../../../src/accounts/projects.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { DAY_MS } from '../../../src/time/clock.ts';
import { startOfMonth_ms } from '../../../src/time/month.ts';
import { post, SMALL_REQUEST } from '../../support/requests.ts';
import { type ConsolePage, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person, startTestConsole } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { addUsage } from '../usage-rows.ts';
import { pressOn } from './keyboard.ts';
import { addMemberPerson, LATELY, visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser('the page of keys', () => {
  const made = consoleInBrowser();
  let ada: Person;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
  });

  const pathOf = (organization_id: string) => `/console/o/${organization_id}/keys`;

  test('an owner creates a key of a chosen project, sees it once, uses it, and revokes it', async () => {
    const { accounts } = made.service;
    const { organization_id } = ada;
    await createProject(accounts, OPERATOR, { organization_id, name: 'Checkout' });
    await using opened = await visit(made, pathOf(organization_id), { person: ada });
    const { page } = opened;
    await page.getByText('No active keys').waitFor();
    await page.getByRole('button', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Shop server');
    await dialog.getByLabel('Project').selectOption('Checkout');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    const key = (await dialog.locator('.copy-text code').textContent()) ?? '';
    expect(key).toStartWith('sk_svc_');
    // A click beside the dialog would lose the key.
    await page.mouse.click(2, 2);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await dialog.getByRole('button', { name: 'Copy' }).click();
    await dialog.getByText('Copied to the clipboard').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key);
    // Tier 0: the key is known, and the organization has not paid.
    expect((await post(made.service, key, '{}')).status).toBe(402);

    await dialog.getByRole('button', { name: 'Done' }).waitFor();
    await page.keyboard.press('Escape');
    const row = page.getByRole('row', { name: 'Shop server' });
    await row.getByText(`${key.slice(0, 12)}…`).waitFor();
    expect(await row.getByRole('cell').allTextContents()).toEqual([
      'Shop server',
      `${key.slice(0, 12)}…`,
      'Checkout',
      'Ada Lovelace',
      expect.stringMatching(LATELY),
      'Never',
      '$0.00: change the monthly limit of Shop server',
      'Never: change when Shop server expires',
      'Rotate…Revoke…',
    ]);
    await page.getByText('1 of 100 active keys').waitFor();
    expect(await page.content()).not.toContain(key);
    await page.reload();
    await row.waitFor();
    expect(await page.content()).not.toContain(key);

    await page.getByRole('button', { name: 'Revoke Shop server' }).click();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Revoke Shop server' }).click();
    await dialog.getByRole('button', { name: 'Revoke key' }).click();
    await page.getByText('Shop server is revoked.').waitFor();
    await page.getByText('No active keys').waitFor();
    expect((await post(made.service, key, '{}')).status).toBe(401);
    await page.getByRole('tab', { name: 'Revoked' }).click();
    await row.waitFor();
    expect(await row.getByRole('cell').allTextContents()).toEqual([
      'Shop server',
      `${key.slice(0, 12)}…`,
      'Checkout',
      'Ada Lovelace',
      expect.stringMatching(LATELY),
      // A refused request is no use.
      'Never',
      expect.stringMatching(LATELY),
    ]);
    await page.reload();
    await row.waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('a dialog stays while its key is made, so that no other dialog shows the key', async () => {
    await using opened = await visit(made, pathOf(ada.organization_id), { person: ada });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Create key', disabled: false }).click();
    // Characters are counted as the service does: an emoji is two UTF-16 code units.
    const name = dialog.getByLabel('Name');
    await name.fill('😀'.repeat(101));
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByText('A name must have 1 to 100 characters').waitFor();
    expect(await name.inputValue()).toBe('😀'.repeat(101));
    const answer = Promise.withResolvers<void>();
    await page.route('**/console/api/organizations/*/keys', async (route) => {
      if (route.request().method() === 'POST') await answer.promise;
      await route.continue();
    });
    await name.fill('Slowly made');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.locator('form[data-kept=true]').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    expect(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
    await stayAtReload(opened);
    answer.resolve();
    await dialog.getByRole('heading', { name: 'Copy the key now' }).waitFor();
  });

  test('a session that ended while a key is made leads to the sign-in form without a question', async () => {
    await using opened = await visit(made, pathOf(ada.organization_id), { person: ada });
    const { page } = opened;
    const questions: string[] = [];
    page.on('dialog', async (question) => {
      questions.push(question.type());
      await question.accept();
    });
    await page.getByRole('button', { name: 'Create key', disabled: false }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Never made');
    await page.context().clearCookies();
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor();
    expect(questions).toEqual([]);
  });

  test('neither the way back nor a reload loses a key that is shown once', async () => {
    const overview = `/console/o/${ada.organization_id}/overview`;
    await using opened = await visit(made, overview, { person: ada });
    const { page } = opened;
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'Create key', disabled: false }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Shown once');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    const key = dialog.locator('.copy-text code');
    await key.waitFor();
    const shown = await key.textContent();
    // Beside the dialog's elements, the second Escape closes it without an event that could be refused.
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    // The browser closes the dialog for a moment, which opens itself again.
    await key.waitFor();
    for (const _ of ['once', 'twice']) {
      await page.goBack();
      await page.waitForURL('**/keys');
    }
    await stayAtReload(opened);
    expect(await key.textContent()).toBe(shown);
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    await page.reload();
    await page.getByRole('row', { name: 'Shown once' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  test('everything about keys is done by the keyboard alone', async () => {
    const grace = await addPerson(made, { email: 'grace@example.com', name: 'Grace Hopper' });
    await using opened = await visit(made, pathOf(grace.organization_id), { person: grace });
    const { page } = opened;
    await page.getByText('No active keys').waitFor();
    const button = (name: string) => page.getByRole('button', { name, exact: true });
    await page.getByRole('button', { name: 'Create key', disabled: false }).waitFor();
    await pressOn(page, button('Create key'));
    await page.keyboard.type('By keyboard');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    // A second Enter copies; it does not close the only view of the key.
    expect(await page.getByRole('button', { name: 'Copy' }).and(page.locator(':focus')).count()).toBe(1);
    // Neither does Escape, however often.
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('heading', { name: 'Copy the key now' }).isVisible()).toBe(true);
    await pressOn(page, button('I have stored it'));
    await page.getByRole('row', { name: 'By keyboard' }).waitFor();
    await pressOn(page, button('Revoke By keyboard'));
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('By keyboard is revoked.').waitFor();
    await page.getByText('No active keys').waitFor();
    // The button of the row is gone: the focus goes on in the page.
    await page.locator('#content:focus').waitFor();
  });

  test('a reader sees every key, and is offered none of what they may not do', async () => {
    const { organization_id, default_project_id } = ada;
    const reader = await addMemberPerson(made, organization_id, 'reader', 'Rita Reader');
    await createKey(made.service.accounts, OPERATOR, { project_id: default_project_id, name: 'Nightly' });
    await using opened = await visit(made, pathOf(organization_id), { person: reader });
    const { page } = opened;
    await page.getByRole('row', { name: 'Nightly' }).getByText('Operator').waitFor();
    expect(await page.getByRole('button', { name: /create\b/i }).count()).toBe(0);
    expect(await page.getByRole('button', { name: /revoke/i }).count()).toBe(0);
  });

  test('a developer is offered to revoke own keys only', async () => {
    const { organization_id, default_project_id: project_id } = ada;
    const developer = await addMemberPerson(made, organization_id, 'developer', 'Dan Developer');
    const actor = { kind: 'user', user_id: developer.user_id } as const;
    await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Of another' });
    await createKey(made.service.accounts, actor, { project_id, name: 'Own key' });
    await using opened = await visit(made, pathOf(organization_id), { person: developer });
    const { page } = opened;
    await page.getByRole('button', { name: 'Revoke Own key' }).waitFor();
    expect(await page.getByRole('row', { name: 'Of another' }).count()).toBe(1);
    expect(await page.getByRole('button', { name: /^Revoke / }).count()).toBe(1);
    expect(await page.getByRole('button', { name: 'Create key' }).count()).toBe(1);
  });

  test('the limit of 100 active keys is said before it is reached, and stops the page when it is', async () => {
    const mary = await addPerson(made, { email: 'mary@example.com' });
    const { organization_id, default_project_id: project_id } = mary;
    const { accounts } = made.service;
    for (let made_keys = 0; made_keys < 99; made_keys++) {
      await createKey(accounts, OPERATOR, { project_id, name: `Key ${made_keys}` });
    }
    await using opened = await visit(made, pathOf(organization_id), { person: mary, view: PHONE });
    const { page } = opened;
    await page.getByText('You can create 1 more key.').waitFor();
    await page.getByRole('button', { name: 'Create key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This is the last key that you can create.').waitFor();
    await dialog.getByLabel('Name').fill('The hundredth');
    // Somebody else is faster.
    await createKey(accounts, OPERATOR, { project_id, name: 'Faster' });
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByText('The organization has 100 active API keys: revoke one first.').waitFor();
    await page.reload();
    await page.getByText('You have 100 active keys, which is the limit.').waitFor();
    await page.getByText('To replace one, rotate it and let the old key end at once.').waitFor();
    const reader = await addMemberPerson(made, organization_id, 'reader');
    await using other = await visit(made, pathOf(organization_id), { person: reader });
    await other.page.getByRole('row').nth(1).waitFor();
    expect(await other.page.getByText('which is the limit').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Create key' }).isDisabled()).toBe(true);
    // Both keys of a rotation cannot be active: the old one ends at once.
    await page.getByRole('button', { name: 'Rotate Key 7', exact: true }).click();
    await dialog.getByText('the limit of active keys is reached').waitFor();
    const overlap = dialog.getByLabel('The old key works for another').getByRole('option');
    expect(await overlap.allTextContents()).toEqual(['Not at all: revoke it now']);
    await dialog.getByRole('button', { name: 'Create the new key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the new key now' }).waitFor();
    const keys = await listKeys(accounts, OPERATOR, { organization_id });
    expect(keys).toHaveLength(100);
    expect(keys.filter(({ name }) => name === 'Key 7')).toHaveLength(1);
  });

  test('many keys are searched, sorted by their titles, and shown in pages of 50, with the name in sight', async () => {
    const { accounts } = made.service;
    const many = await addPerson(made, { email: 'many@example.com' });
    const { organization_id } = many;
    const { id: project_id } = await createProject(accounts, OPERATOR, {
      organization_id,
      name: 'p'.repeat(100),
    });
    for (let number = 1; number <= 60; number++) {
      const project = number === 60 ? many.default_project_id : project_id;
      await createKey(accounts, OPERATOR, { project_id: project, name: `Key ${number}` });
    }
    const narrow = { name: 'narrow', width: 740, height: 800, theme: 'light' } as const;
    await using opened = await visit(made, pathOf(organization_id), { person: many, view: narrow });
    const { page } = opened;
    const names = () => page.locator('td.name').allInnerTexts();
    await page.getByText('1–50 of 60').waitFor();
    await page.getByRole('button', { name: 'Name' }).click();
    expect((await names()).slice(0, 3)).toEqual(['Key 1', 'Key 2', 'Key 3']);
    await page
      .getByRole('columnheader', { name: 'Name', exact: false })
      .and(page.locator('[aria-sort=ascending]'))
      .waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('51–60 of 60').waitFor();
    expect((await names()).at(-1)).toBe('Key 60');
    const focused = page.locator(':focus');
    expect(await focused.textContent()).toStartWith('Key 51');
    await page.getByRole('button', { name: 'Name' }).click();
    expect((await names())[0]).toBe('Key 60');
    expect(await opened.overflows()).toBe(false);
    expect(await opened.seriousFindings()).toEqual([]);

    const frame = page.locator('.table-frame');
    await page.evaluate("document.querySelector('.table-frame').scrollTo(10_000, 0)");
    const [cell, around] = [await page.locator('td.name').first().boundingBox(), await frame.boundingBox()];
    expect(Math.abs((cell?.x ?? 0) - (around?.x ?? 0))).toBeLessThanOrEqual(1);

    const search = page.getByRole('searchbox', { name: 'Search keys' });
    await search.fill('ppp key 12');
    // A random prefix can have the number too.
    const keys = await listKeys(accounts, OPERATOR, { organization_id });
    const numbered = keys.filter(
      (key) => key.project_id === project_id && `${key.name} ${key.display_prefix}`.includes('12'),
    );
    expect((await names()).toSorted()).toEqual(numbered.map(({ name }) => name).toSorted());
    expect(await names()).toContain('Key 12');
    await search.fill('nothing like it');
    await page.getByRole('button', { name: 'Show all keys' }).click();
    await page.getByText('1–50 of 60').waitFor();
    expect(await focused.getAttribute('role')).toBe('tabpanel');

    await opened.show(PHONE);
    const focusable = await page.evaluate(`[...document.querySelectorAll('.sort-button')].filter((button) => {
      button.focus();
      return document.activeElement === button;
    }).length`);
    expect(focusable).toBe(0);
    await page.getByRole('columnheader', { name: 'Project' }).waitFor({ state: 'attached' });
    await page.getByLabel('Sort by').selectOption('Name, reversed');
    expect((await names())[0]).toBe('Key 60');
  });

  test('each key has its spend of this UTC month, and is sorted by it', async () => {
    const { accounts, clock, db } = made.service;
    const { id: organization_id, default_project_id: project_id } = await createOrganization(
      accounts,
      OPERATOR,
      { name: 'Spenders' },
    );
    await addMember(accounts, OPERATOR, { organization_id, user_id: ada.user_id, role: 'owner' });
    const start_ms = startOfMonth_ms(clock.now_ms());
    const keys = ['Idle', 'Small', 'Large'].map((name) =>
      createKey(accounts, OPERATOR, { project_id, name }),
    );
    const [, small, large] = (await Promise.all(keys)).map(({ id }) => id);
    const add = (api_key_id: string | undefined, requests: number, from_ms: number) =>
      addUsage(db, {
        ...{ organization_id, project_id, api_key_id: api_key_id ?? '', requests },
        ...{ from_ms, to_ms: from_ms + 1_000 },
      });
    // Of 32 requests two are refused; the others cost 250 micro-dollars each.
    add(small, 32, start_ms);
    add(large, 32, start_ms);
    add(large, 32, start_ms);
    add(small, 320, start_ms - 2_000);
    await using opened = await visit(made, pathOf(organization_id), { person: ada });
    const { page } = opened;
    await page.getByRole('cell', { name: '$0.02' }).waitFor();
    const spendOf = (name: string) =>
      page.getByRole('row', { name }).getByRole('cell').nth(6).locator('.number').textContent();
    expect([await spendOf('Idle'), await spendOf('Small'), await spendOf('Large')]).toEqual([
      '$0.00',
      '<$0.01',
      '$0.02',
    ]);
    await page.getByRole('button', { name: 'This month' }).click();
    expect(await page.locator('tbody td.name').allTextContents()).toEqual(['Idle', 'Small', 'Large']);
    await page.getByRole('button', { name: 'This month' }).click();
    expect(await page.locator('tbody td.name').allTextContents()).toEqual(['Large', 'Small', 'Idle']);
  });

  test('a key is created with a monthly limit, is refused at it, and gets another, none, and one that is no amount', async () => {
    const { accounts } = made.service;
    const lim = await addPerson(made, { email: 'lim@example.com', name: 'Lim Its' });
    const { organization_id } = lim;
    await creditByHand(accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    await using opened = await visit(made, pathOf(organization_id), { person: lim });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Create key', disabled: false }).click();
    await dialog.getByLabel('Name').fill('Careful job');
    await dialog.getByLabel('Monthly spend limit').fill('0.000001');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    const key = (await dialog.locator('.copy-text code').textContent()) ?? '';
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    const spend = page.getByRole('row', { name: 'Careful job' }).locator('.number');
    await spend.getByText('$0.00 of $0.000001').waitFor();
    expect(await (await post(made.service, key, SMALL_REQUEST)).json()).toMatchObject({
      error: { code: 'api_key_spend_limit' },
    });

    const change = page.getByRole('button', { name: 'change the monthly limit of Careful job' });
    await change.click();
    const field = dialog.getByLabel('Monthly spend limit');
    expect(await field.inputValue()).toBe('0.000001');
    await field.fill('plenty');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('Enter an amount such as 25 or 12.50.').waitFor();
    await field.fill('12.50');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Careful job has another limit.').waitFor();
    await spend.getByText('$0.00 of $12.50').waitFor();
    expect((await post(made.service, key, SMALL_REQUEST)).status).toBe(200);
    await page.reload();
    await spend.getByText('<$0.01 of $12.50').waitFor();

    await change.click();
    await field.fill('');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Careful job has no limit.').waitFor();
    await spend.getByText('of').waitFor({ state: 'detached' });
    const [listed] = await listKeys(accounts, OPERATOR, { organization_id });
    expect(listed?.monthly_limit_micros).toBe(null);
    expect(listed?.spent_this_month_micros).toBeGreaterThan(0);

    // A dialog names its key, and a late answer closes no other one than its own.
    const project_id = lim.default_project_id;
    const { id } = await createKey(accounts, OPERATOR, { project_id, name: 'Old job' });
    await page.clock.install();
    await page.reload();
    const answer = Promise.withResolvers<void>();
    await page.route(`**/keys/${id}`, async (route) => {
      await answer.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Revoke Old job' }).click();
    await dialog.getByRole('button', { name: 'Revoke key' }).click();
    await dialog.locator('form[data-kept=true]').waitFor();
    await page.clock.fastForward(15_000);
    await dialog.getByRole('button', { name: 'Cancel', disabled: false }).click();
    await change.click();
    await dialog.getByText('Careful job').waitFor();
    await field.fill('7');
    answer.resolve();
    await page.getByText('Old job is revoked.').waitFor();
    expect(await field.inputValue()).toBe('7');
    expect(opened.complaints).toEqual([]);
  });

  test('axe finds nothing serious, and nothing is wider than the screen', async () => {
    const { accounts } = made.service;
    const { id: organization_id, default_project_id: project_id } = await createOrganization(
      accounts,
      OPERATOR,
      { name: 'Ada Lovelace' },
    );
    await addMember(accounts, OPERATOR, { organization_id, user_id: ada.user_id, role: 'owner' });
    for (const name of ['Shop server', 'Nightly import', 'n'.repeat(100)]) {
      await createKey(accounts, OPERATOR, { project_id, name });
    }
    await using opened = await visit(made, pathOf(organization_id), { person: ada, view: PHONE });
    const { page } = opened;
    await page.getByRole('row', { name: 'Nightly import' }).waitFor();
    const topOf = async (title: string) =>
      (await page.locator(`tr:has-text("Nightly import") td[data-title="${title}"]`).boundingBox())?.y;
    // Short texts share a line of the card, so that many keys fit a phone.
    expect(await topOf('Creator')).toBe(await topOf('Created'));
    await expectReadsWell(opened, 'keys');
    await opened.show(PHONE);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Support inbox');
    await expectReadsWell(opened, 'keys-create');
    await opened.show(PHONE);
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    await expectReadsWell(opened, 'keys-created');
    expect(opened.complaints).toEqual([]);
  });

  test('the expiry of a key stays as it is, and goes over to the key that replaces it, unless another is chosen', async () => {
    const { accounts, clock } = made.service;
    const joan = await addPerson(made, { email: 'joan@example.com' });
    const { organization_id, default_project_id: project_id } = joan;
    const expires_at_ms = clock.now_ms() + 2 * DAY_MS;
    await createKey(accounts, OPERATOR, { project_id, name: 'Short job', expires_at_ms });
    await using opened = await visit(made, pathOf(organization_id), { person: joan });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    const chosen = (label: string) => dialog.getByLabel(label).locator('option:checked').textContent();
    await page.getByRole('button', { name: 'change when Short job expires' }).click();
    expect(await chosen('Expires')).toBe('As it is: in 2 d');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const [kept] = await listKeys(accounts, OPERATOR, { organization_id });
    expect(kept?.expires_at_ms).toBe(expires_at_ms);

    await page.getByRole('button', { name: 'Rotate Short job' }).click();
    expect(await chosen('The new key expires')).toBe('In 2 d, as long as the old key had');
    await dialog.getByRole('button', { name: 'Create the new key' }).click();
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByText('2 of 100 active keys').waitFor();
    const ends_ms = (await listKeys(accounts, OPERATOR, { organization_id })).map(
      (key) => key.expires_at_ms ?? 0,
    );
    expect(Math.max(...ends_ms)).toBeWithin(expires_at_ms, clock.now_ms() + 2 * DAY_MS + 1);
    expect(opened.complaints).toEqual([]);
  });

  test('a key is created with an expiry, gets another, and is rotated with an overlap in which both work', async () => {
    // Its clock is moved.
    await using own = { ...(await startTestConsole()), [Symbol.asyncDispose]: () => own.close() };
    const eve = await addPerson(own, { email: 'eve@example.com', name: 'Eve Rotates' });
    await using opened = await visit(own, pathOf(eve.organization_id), { person: eve });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    const shownKey = async () => (await dialog.locator('.copy-text code').textContent()) ?? '';
    await page.getByRole('button', { name: 'Create key', disabled: false }).click();
    await dialog.getByLabel('Name').fill('Nightly job');
    await dialog.getByLabel('Expires').selectOption('In 30 days');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the key now' }).waitFor();
    const old = await shownKey();
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    const rows = page.getByRole('row', { name: 'Nightly job' });
    await rows.getByText('In 30 d').waitFor();
    await page.getByRole('button', { name: 'change when Nightly job expires' }).click();
    await dialog.getByLabel('Expires').selectOption('Never');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await rows.getByRole('button', { name: /^Never.*change when/ }).waitFor();

    await page.getByRole('button', { name: 'Rotate Nightly job' }).click();
    await dialog.getByLabel('The old key works for another').selectOption('1 hour');
    await dialog.getByLabel('The new key expires').selectOption('In 90 days');
    await dialog.getByRole('button', { name: 'Create the new key' }).click();
    await dialog.getByRole('heading', { name: 'Copy the new key now' }).waitFor();
    const next = await shownKey();
    expect(next).not.toBe(old);
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByText('2 of 100 active keys').waitFor();
    await rows.getByText('In 1 h').waitFor();
    await rows.getByText('In 90 d').waitFor();
    const statuses = async () => [
      (await post(own.service, old, '{}')).status,
      (await post(own.service, next, '{}')).status,
    ];
    // Tier 0: both are known, and the organization has not paid.
    expect(await statuses()).toEqual([402, 402]);
    own.service.clock.advance(3_600_000);
    expect(await statuses()).toEqual([401, 402]);
    expect(opened.complaints).toEqual([]);
  });
});

/** Reloads the page, is asked, and stays. */
async function stayAtReload({ page }: ConsolePage): Promise<void> {
  const asked = page.waitForEvent('dialog');
  // The page stands still until the question is answered.
  const reloaded = page.evaluate('location.reload()');
  const question = await asked;
  expect(question.type()).toBe('beforeunload');
  await question.dismiss();
  await reloaded;
}
