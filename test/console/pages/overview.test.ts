import { expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { changeProject, createProject } from '../../../src/accounts/projects.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { spend } from '../../payments/support.ts';
import { ask } from '../../support/requests.ts';
import { DESKTOP, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { addUsage } from '../usage-rows.ts';
import { comeBack, visit } from './visitor.ts';

setDefaultTimeout(120_000);

const DOLLAR_MICROS = 1_000_000;

describeInBrowser('the start of the console', () => {
  const made = consoleInBrowser({ cold: false });

  const overviewPath = ({ organization_id }: Person) => `/console/o/${organization_id}/overview`;

  function credit({ organization_id }: Person, dollars: number) {
    const amount_micros = dollars * DOLLAR_MICROS;
    return creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros });
  }

  test('a new organization does its three steps, which tick themselves off and make way', async () => {
    const ada = await addPerson(made, { email: 'ada@example.com' });
    await using opened = await visit(made, '/console', { person: ada, view: DESKTOP });
    const { page } = opened;
    await page.waitForURL(`**${overviewPath(ada)}`);
    const steps = page.getByRole('list').filter({ hasText: 'Create a key' }).getByRole('listitem');
    const done = steps.filter({ hasText: /\bdone\b/ });
    await steps.first().waitFor();
    expect(await steps.count()).toBe(3);
    expect(await done.count()).toBe(0);
    await steps.nth(0).getByRole('link', { name: 'Add credit' }).click();
    await page.getByRole('heading', { name: 'Billing' }).waitFor();
    await page.goBack();

    await steps.first().waitFor();
    await credit(ada, 10);
    await comeBack(opened);
    await done.first().waitFor();
    // The content beside the steps follows them.
    await page.getByText('$10.00').waitFor();
    expect(await done.getByRole('heading').allInnerTexts()).toEqual([expect.stringMatching(/^Add credit/)]);

    const { key } = await createKey(made.service.accounts, OPERATOR, {
      project_id: ada.default_project_id,
      name: 'First',
    });
    await comeBack(opened);
    await done.nth(1).waitFor();

    const command = await steps.nth(2).locator('pre').textContent();
    expect(command).toContain(`curl -s ${made.service.server.address}/v1/decisions`);
    const asked = Bun.spawn(['sh', '-c', (command ?? '').replace('your key', key)], { stderr: 'ignore' });
    expect(await new Response(asked.stdout).json()).toMatchObject({ answers: { refund: {} } });
    await comeBack(opened);
    await page.getByText('Your first answer came').waitFor();
    expect(await steps.count()).toBe(0);
    const tile = page.locator('.tile').filter({ hasText: 'Requests today' });
    await tile.getByText('1', { exact: true }).waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('somebody of several organizations chooses one, and comes to its overview', async () => {
    const bob = await addPerson(made, { email: 'bob@example.com' });
    const carol = await addPerson(made, { email: 'carol@example.com' });
    const { organization_id } = carol;
    await addMember(made.service.accounts, OPERATOR, {
      organization_id,
      user_id: bob.user_id,
      role: 'reader',
    });
    await using opened = await visit(made, '/console', { person: bob, view: PHONE });
    const { page } = opened;
    await page.getByRole('heading', { name: 'Your organizations' }).waitFor();
    expect(await page.getByRole('main').getByRole('link').allInnerTexts()).toEqual(
      expect.arrayContaining([expect.stringContaining('bob'), expect.stringContaining('carol')]),
    );
    await page.getByRole('main').getByRole('link', { name: 'carol reader' }).click();
    await page.waitForURL(`**${overviewPath(carol)}`);
    // A reader is told who can do what they cannot.
    await page.getByText('An owner, an admin or a billing member can do it.').waitFor();
    await page.getByText('An owner, an admin or a developer can do it.').waitFor();
    for (const name of ['Add credit', 'Create a key', 'playground'])
      expect(await page.getByRole('main').getByRole('link', { name }).count()).toBe(0);
    expect(opened.complaints).toEqual([]);
  });

  test('projects near their spend limit are shown with it, and others are not', async () => {
    const { accounts: context, db } = made.service;
    const dave = await addPerson(made, { email: 'dave@example.com' });
    const { organization_id } = dave;
    await credit(dave, 10);
    const projects = [
      ['Near', 1_250, 1_000],
      ['Far', 1_300, 1_000],
      ['Full', 1_000, 1_000],
    ] as const;
    for (const [name, spend_limit_micros, cost_micros] of projects) {
      const { id: project_id } = await createProject(context, OPERATOR, { organization_id, name });
      await spend({ context, db, organization_id, project_id }, cost_micros);
      await changeProject(context, OPERATOR, { project_id, spend_limit_micros });
    }
    await using opened = await visit(made, overviewPath(dave), { person: dave, view: DESKTOP });
    const { page } = opened;
    await page.getByText('<$0.01 of $0.001250').waitFor();
    await page.getByText('<$0.01 of $0.001000', { exact: true }).waitFor();
    const limits = page
      .locator('section')
      .filter({ has: page.getByRole('heading', { name: 'Spend limits' }) });
    expect(await limits.locator('.meter').count()).toBe(2);
    expect(await limits.getByText('Far').count()).toBe(0);
    expect(await page.locator('.tile').filter({ hasText: 'Cost today' }).textContent()).toBe(
      'Cost today<$0.01',
    );
  });

  test('the overview tells what a team comes for: requests by what they choose, limits, refusals, changes, days', async () => {
    const { accounts: context, db } = made.service;
    const fay = await addPerson(made, { email: 'fay@example.com', name: 'مؤسسة' });
    const { organization_id, default_project_id: project_id } = fay;
    const by_fay = { kind: 'user', user_id: fay.user_id } as const;
    await credit(fay, 10);
    const { id: api_key_id, key } = await createKey(context, by_fay, {
      project_id,
      name: 'Support inbox classifier EU',
    });
    const now_ms = Date.now();
    // 8 of 248 were not answered, and the others cost 250 micro-dollars each.
    addUsage(db, {
      organization_id,
      project_id,
      api_key_id,
      requests: 248,
      from_ms: now_ms - 40 * 60_000,
      to_ms: now_ms - 60_000,
    });
    expect((await ask(made.service, key)).status).toBe(200);
    for (let count = 0; count < 3; count += 1)
      expect((await ask(made.service, key, { model: 'none' })).status).toBe(404);
    await using opened = await visit(made, overviewPath(fay), { person: fay, view: DESKTOP });
    const { page } = opened;
    const chart = page.getByRole('figure', { name: /^Requests by/ });
    await chart.getByText('Answered (200)', { exact: true }).waitFor();
    await chart.getByText('Not ready (503)', { exact: true }).waitFor();
    await chart.getByRole('button', { name: 'Show Requests by status as a table' }).click();
    // The hour with requests is many bars, not one.
    expect(await chart.getByRole('row').count()).toBeGreaterThan(30);
    await chart.getByLabel('Group by').selectOption('By key');
    await chart.getByRole('columnheader', { name: 'Support inbox classifier EU' }).waitFor();
    await page.getByText('1 of 300', { exact: true }).waitFor();
    const refused = page.getByRole('listitem').filter({ hasText: 'model_not_found' });
    await refused.getByText('3 requests').waitFor();
    await refused.getByText('This model does not exist or is not open yet.').waitFor();
    await page.getByText('Support inbox classifier EU').nth(1).waitFor();
    await page.getByText(/^\d+ days left at this rate$/).waitFor();
    // A name that is written from right to left leaves the number after it in its place.
    await page.clock.setFixedTime(Date.now() + 7 * 60_000);
    await page.reload();
    const change = page.getByRole('listitem').filter({ hasText: 'مؤسسة' });
    await change.getByText(/^\d+ minutes ago$/).waitFor();
    const [name, time] = await Promise.all(
      [change.locator('bdi').last(), change.locator('time')].map((part) => part.boundingBox()),
    );
    expect(time?.x).toBeGreaterThan((name?.x ?? 0) + (name?.width ?? 0));
    expect(opened.complaints).toEqual([]);
  });

  test('what cannot be asked says so once, and keeps the focus while it is asked again', async () => {
    const hal = await addPerson(made, { email: 'hal@example.com' });
    const asked_again = Promise.withResolvers<() => void>();
    let asked = 0;
    let is_back = false;
    await using opened = await visit(made, '/console/account', { person: hal });
    const { page } = opened;
    await page.route('**/usage/limits', async (route) => {
      asked += 1;
      if (is_back) return await route.continue();
      if (asked > 1) await new Promise<void>((answer) => asked_again.resolve(answer));
      await route.abort();
    });
    await page.goto(made.service.server.address + overviewPath(hal));
    const told = page.getByRole('alert').filter({ hasText: 'Is this device online' });
    await told.getByRole('button', { name: 'Try again' }).focus();
    await page.evaluate(`globalThis.told = document.activeElement.closest('[role=alert]')`);
    const answer = await asked_again.promise;
    const is_same = `globalThis.told.isConnected && globalThis.told.contains(document.activeElement)`;
    expect(await page.evaluate(is_same)).toBe(true);
    is_back = true;
    answer();
    await told.waitFor({ state: 'detached' });
  });

  test('nothing is wrong for axe, for a phone or for the browser: light and dark', async () => {
    const { accounts: context, db } = made.service;
    const erin = await addPerson(made, { email: 'erin@example.com' });
    const { organization_id, default_project_id: project_id } = erin;
    for (const state of ['new', 'used']) {
      if (state === 'used') {
        for (const cost_micros of [1_250, 98_000, 430_000])
          await spend({ context, db, organization_id, project_id }, cost_micros);
        await changeProject(context, OPERATOR, { project_id, spend_limit_micros: 600_000 });
      }
      await using opened = await visit(made, overviewPath(erin), { person: erin, view: PHONE });
      await opened.page.getByText(state === 'new' ? 'Three steps' : 'Your first answer came').waitFor();
      if (state === 'used') await opened.page.getByText('$0.53 of $0.60').waitFor();
      await opened.page.getByText('Requests today').waitFor();
      await expectReadsWell(opened, `overview-${state}`);
      expect(opened.complaints).toEqual([]);
      if (state === 'new') await credit(erin, 20);
    }
  });
});
