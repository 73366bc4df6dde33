import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import {
  createOrganization,
  renameOrganization,
  setTierSettings,
} from '../../../src/accounts/organizations.ts';
import { createProject } from '../../../src/accounts/projects.ts';
import { setModelPrice } from '../../../src/catalog/changes.ts';
import { creditByHand, startTopUp } from '../../../src/payments/credit.ts';
import { manualProvider } from '../../../src/payments/manual.ts';
import { paddleProvider } from '../../../src/payments/paddle.ts';
import { handleWebhook } from '../../../src/payments/webhooks.ts';
import { SETTINGS, sign, transaction } from '../../payments/paddle-calls.ts';
import { chromiumPath } from '../../support/chromium.ts';
import { MovableClock } from '../../support/clock.ts';
import { DESKTOP, PHONE, type View } from '../browser.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(120_000);

const program = chromiumPath();
const NAMES = [
  'Analytical Engines',
  'Bletchley Data',
  'Crown Street Dental',
  'Dovetail Freight',
  'Ærø Shipping',
];

let made: TestConsole;
let ada: Person;
let grace: Person;
let eve: Person;
let acme: string;

beforeAll(async () => {
  if (program === null) return;
  const clock = new MovableClock();
  clock.stepWallClock(-300_000);
  made = await startTestConsole({ clock });
  seconds(clock);
  ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace', is_operator: true });
  grace = await addPerson(made, { email: 'grace@example.com', name: 'Grace Hopper' });
  eve = await addPerson(made, { email: 'eve@example.com', name: 'Eve Reader' });
  await fill();
});
afterAll(async () => {
  if (program === null) return;
  await made.close();
});

/** Five minutes of traffic, of which nothing is asked: what is counted is told to who counts it. */
function seconds(clock: MovableClock): void {
  const { metrics } = made.service.service.services;
  const answered = {
    endpoint: '/v1/decisions',
    mode: 'fast',
    model: 'decision-1',
    status: 200,
    organization_id: null,
  } as const;
  for (let second = 0; second < 300; second += 1) {
    const requests = Math.round(40 + 25 * Math.sin(second / 25) + (second % 7));
    for (let count = 0; count < requests; count += 1) {
      metrics.requestAnswered({ ...answered, code: null });
      metrics.decisionCharged({
        model: 'decision-1',
        mode: 'fast',
        input_tokens: 410,
        questions: 3,
        cost_micros: 20,
      });
    }
    if (second % 9 === 0) metrics.requestAnswered({ ...answered, status: 429, code: 'rate_limit_exceeded' });
    if (second % 70 === 0) metrics.requestAnswered({ ...answered, status: 502, code: 'model_unavailable' });
    clock.advance(1_000);
  }
}

async function fill(): Promise<void> {
  const { accounts, service } = made.service;
  const actor = { kind: 'operator', user_id: ada.user_id } as const;
  for (const name of NAMES) {
    const { id } = await createOrganization(accounts, actor, { name });
    await creditByHand(accounts, actor, { organization_id: id, amount_micros: 25_000_000 });
    if (name === 'Dovetail Freight') {
      await setTierSettings(accounts, actor, id, { minimum_tier: 3, requests_per_minute: 9_000 });
    }
    if (name === 'Analytical Engines') acme = id;
  }
  const owner = { kind: 'user', user_id: grace.user_id } as const;
  const organization_id = acme;
  await addMember(accounts, actor, { organization_id, user_id: grace.user_id, role: 'owner' });
  await addMember(accounts, actor, { organization_id, user_id: eve.user_id, role: 'reader' });
  const { id: project_id } = await createProject(accounts, owner, { organization_id, name: 'Triage' });
  await createKey(accounts, owner, { project_id, name: 'Production' });
  await renameOrganization(accounts, owner, { organization_id, name: 'Analytical Engines Ltd' });
  await startTopUp(accounts, owner, manualProvider, { organization_id, amount_micros: 20_000_000 });
  const { body, signature } = sign(transaction('transaction.completed'), {
    now_ms: accounts.clock.now_ms(),
  });
  await handleWebhook(accounts, paddleProvider(SETTINGS), Buffer.from(body), signature);
  await setModelPrice(accounts, actor, 'decision-1', 450_000);
  const { problems, audits } = service.services;
  for (const [request_id, error] of [
    ['req_5f2c9d1e7a3b4c6d8e9f0a1b', Object.assign(new TypeError('a record'), { code: 'EIO' })],
    ['req_0a1b2c3d4e5f6a7b8c9d0e1f', new Error('a record', { cause: new RangeError('a question') })],
  ] as const) {
    problems.report({ request_id, step: 'charge', code: 'internal_error', error });
  }
  problems.report({ request_id: null, step: 'backup', code: null, error: new Error('a path') });
  await audits.auditNow(OPERATOR);
}

const open = (person: Person, path: string, view: View = DESKTOP) => visit(made, path, { person, view });

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1 }).waitFor();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const dialog = (page: Page) => page.getByRole('dialog');

/** The value of a tile. */
const tile = (page: Page, title: string) =>
  page
    .locator('.tile', { has: page.getByText(title, { exact: true }) })
    .locator('dd')
    .first();

const PAGES = [
  ['inbox', 'Inbox', 'Payments to confirm'],
  ['organizations', 'Organizations', 'Bletchley Data'],
  ['organization', 'Analytical Engines Ltd', 'Grace Hopper'],
  ['models', 'Models', 'decision-1'],
  ['live', 'Live', 'Requests per second'],
  ['audit', 'Ledger audit', 'Balance equals ledger'],
  ['problems', 'Problems', 'req_5f2c9d1e7a3b4c6d8e9f0a1b'],
  ['trail', 'Service audit log', 'Set the price of a model.'],
] as const;

function pathOf(page: (typeof PAGES)[number][0]): string {
  return page === 'organization' ? `/console/operator/organizations/${acme}` : `/console/operator/${page}`;
}

describe.skipIf(program === null)('the pages of the operator', () => {
  test.each(PAGES)('%s: reads well, and axe finds nothing serious', async (path, title, text) => {
    await using opened = await open(ada, pathOf(path), PHONE);
    await heading(opened.page, title);
    await opened.page.getByText(text, { exact: false }).first().waitFor();
    if (path === 'organization') await opened.page.getByText('Created an API key.').waitFor();
    await expectReadsWell(opened, `operator-${path}`);
    expect(opened.complaints).toEqual([]);
  });

  test('a page is nothing to others who open its address', async () => {
    await using opened = await open(grace, pathOf('organization'));
    await opened.page.getByText('There is nothing here').waitFor();
    expect(await opened.page.getByRole('link', { name: 'Operator pages' }).count()).toBe(0);
  });

  test('the inbox counts in the navigation what waits, and leads to where it is done', async () => {
    const other = await createOrganization(made.service.accounts, OPERATOR, { name: 'Inbox Payers' });
    const given = { organization_id: other.id, amount_micros: 12_500_000 };
    await startTopUp(made.service.accounts, OPERATOR, manualProvider, given);
    await using opened = await open(ada, '/console/operator/inbox');
    const { page } = opened;
    const row = page.getByRole('row', { name: 'Inbox Payers' });
    await row.getByText('$12.50').waitFor();
    await page.getByText('1 payment event fits no payment here').waitFor();
    await page.getByText('tds credit events', { exact: true }).waitFor();
    const link = page.getByRole('navigation').getByRole('link', { name: /^Inbox \d+ waiting$/ });
    await link.waitFor();
    const counted = Number((await link.textContent())?.match(/\d+/)?.[0]);
    await row.getByRole('link', { name: 'Inbox Payers' }).click();
    await page.getByRole('button', { name: 'Confirm the payment of $12.50' }).click();
    await page.getByRole('button', { name: 'Confirm $12.50' }).click();
    await page.getByText('Inbox Payers has $12.50').first().waitFor();
    await page.reload();
    const fewer = counted === 1 ? 'Inbox' : `Inbox ${counted - 1} waiting`;
    await page.getByRole('navigation').getByRole('link', { name: fewer, exact: true }).waitFor();
    await page.goto(`${made.service.server.address}/console/operator/inbox`);
    await heading(page, 'Inbox');
    expect(await page.getByText('Inbox Payers').count()).toBe(0);
  });

  test('an organization is searched, gets credit, a confirmation and limits, is suspended and resumed', async () => {
    await using opened = await open(ada, '/console/operator/organizations');
    const { page } = opened;
    await page.getByRole('searchbox', { name: 'Search' }).fill('grace@example');
    await page.keyboard.press('Enter');
    await page.getByText('Bletchley Data').waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('text')).toBe('grace@example');
    await page.getByRole('link', { name: 'Analytical Engines Ltd' }).click();
    await heading(page, 'Analytical Engines Ltd');
    await tile(page, 'Credit').getByText('$25.00').waitFor();

    await press(page, 'Give credit…');
    await dialog(page).getByLabel('Amount').fill('lots');
    await press(page, 'Continue…');
    await dialog(page).getByText('Write dollars above zero').waitFor();
    await dialog(page).getByLabel('Amount').fill('12.5');
    await press(page, 'Continue…');
    await dialog(page).getByText('from $25.00 to $37.50').waitFor();
    await opened.photograph('operator-credit-desktop-light');
    expect(await opened.seriousFindings()).toEqual([]);
    await press(page, 'Give $12.50');
    await tile(page, 'Credit').getByText('$37.50').waitFor();
    await page.getByText('Entered a payment that was received by hand.').first().waitFor();

    await press(page, 'Take back…');
    await dialog(page).getByLabel('Amount').fill('40');
    await press(page, 'Continue…');
    await press(page, 'Take back $40.00');
    await dialog(page).getByText('Only $37.500000').waitFor();
    await press(page, 'Cancel');
    await dialog(page).getByLabel('Amount').fill('7.5');
    await press(page, 'Continue…');
    await press(page, 'Take back $7.50');
    await tile(page, 'Credit').getByText('$30.00').waitFor();

    await press(page, 'Cancel the top-up of $20.00');
    await dialog(page).getByText('If another amount has arrived').waitFor();
    await press(page, 'Cancel');
    await press(page, 'Confirm the payment of $20.00');
    await press(page, 'Confirm $20.00');
    await tile(page, 'Credit').getByText('$50.00').waitFor();
    await page.getByText('No open payments').waitFor();

    await press(page, 'Change limits…');
    await dialog(page).getByLabel('Minimum tier').fill('2');
    await dialog(page).getByLabel('Largest top-up').fill('x');
    await press(page, 'Change limits');
    await dialog(page).getByText('Write dollars').waitFor();
    expect(await dialog(page).getByLabel('Minimum tier').inputValue()).toBe('2');
    await dialog(page).getByLabel('Largest top-up').fill('400');
    await press(page, 'Change limits');
    await tile(page, 'Tier').getByText('2').waitFor();
    await page.getByRole('row', { name: /Largest top-up \$400\.00 \$400\.00/ }).waitFor();

    await press(page, 'Suspend…');
    await press(page, 'Suspend');
    await page.getByText('Its keys have been refused since').waitFor();
    await press(page, 'Resume…');
    await press(page, 'Resume');
    await page.getByText('Its keys have been refused since').waitFor({ state: 'detached' });
    await page.getByText('Lifted the suspension of the organization.').waitFor();
    expect(opened.complaints.filter((text) => !text.includes('409'))).toEqual([]);
  });

  test('organizations that nobody owns are listed, and one gets an owner', async () => {
    const { id } = await createOrganization(made.service.accounts, OPERATOR, { name: 'Nobody’s' });
    await using opened = await open(ada, '/console/operator/organizations');
    const { page } = opened;
    await page.getByRole('link', { name: 'Analytical Engines Ltd' }).waitFor();
    await page.getByRole('tab', { name: 'Without an owner' }).click();
    await page.getByRole('link', { name: 'Analytical Engines Ltd' }).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('list')).toBe('unowned');
    expect(await opened.seriousFindings()).toEqual([]);
    await page.getByRole('link', { name: 'Nobody’s' }).click();
    await press(page, 'Invite an owner…');
    await dialog(page).getByLabel('Email address').fill('grace@example.com');
    await press(page, 'Send invitation');
    await dialog(page).waitFor({ state: 'detached' });
    await addMember(made.service.accounts, OPERATOR, {
      organization_id: id,
      user_id: grace.user_id,
      role: 'owner',
    });
    await page.goto(`${new URL(page.url()).origin}/console/operator/organizations?list=unowned&text=Nobody`);
    await page.getByText('Nothing found').waitFor();
  });

  test.each([
    ['Give credit…', 'Give $5.00', 'Give $6.00', 'credit', 30],
    ['Take back…', 'Take back $5.00', 'Take back $6.00', 'refund', 20],
  ] as const)(
    'an entry whose answer was lost is made once when it is sent again: %s',
    async (button, confirm, other, route, dollars) => {
      const { accounts } = made.service;
      const { id } = await createOrganization(accounts, OPERATOR, { name: 'Lost Answers' });
      await creditByHand(accounts, OPERATOR, { organization_id: id, amount_micros: 25_000_000 });
      await using opened = await open(ada, `/console/operator/organizations/${id}`);
      const { page } = opened;
      const bodies: string[] = [];
      let lost = 2;
      await page.route(`**/${route}`, async (sent) => {
        bodies.push(sent.request().postData() ?? '');
        const answer = await sent.fetch();
        lost -= 1;
        await (lost < 0 ? sent.fulfill({ response: answer }) : sent.abort());
      });
      const enter = async (amount: string, name: string) => {
        await dialog(page).getByLabel('Amount').fill(amount);
        await press(page, 'Continue…');
        await press(page, name);
      };
      await press(page, button);
      await enter('5', confirm);
      await dialog(page).getByText('The service cannot be reached').waitFor();
      await press(page, confirm);
      await dialog(page).getByText('The service cannot be reached').waitFor();
      await press(page, 'Cancel');
      await enter('6', other);
      await dialog(page).getByText('An entry with this id is in the books already').waitFor();
      await press(page, 'Cancel');
      await enter('5', confirm);
      await dialog(page).waitFor({ state: 'detached' });
      await tile(page, 'Credit').getByText(`$${dollars}.00`).waitFor();

      await press(page, button);
      await enter('5', confirm);
      await tile(page, 'Credit')
        .getByText(`$${2 * dollars - 25}.00`)
        .waitFor();
      const ids = bodies.map((body) => /"entry_id":"([\w-]+)"/.exec(body)?.[1]);
      expect(ids).toHaveLength(5);
      expect(new Set(ids.slice(0, 4)).size).toBe(1);
      expect(new Set(ids)).not.toContain(undefined);
      expect(new Set(ids).size).toBe(2);
    },
  );

  test('an entry whose answer was lost, and that is given up, shows in the credit', async () => {
    const { accounts } = made.service;
    const { id } = await createOrganization(accounts, OPERATOR, { name: 'Given Up' });
    await creditByHand(accounts, OPERATOR, { organization_id: id, amount_micros: 25_000_000 });
    await using opened = await open(ada, `/console/operator/organizations/${id}`);
    const { page } = opened;
    let cut_off = false;
    await page.route(`**/organizations/${id}**`, async (sent) => {
      const is_entry = sent.request().method() === 'POST';
      if (is_entry) await sent.fetch();
      await (is_entry || cut_off ? sent.abort() : sent.continue());
    });
    const enter = async () => {
      await press(page, 'Give credit…');
      await dialog(page).getByLabel('Amount').fill('5');
      await press(page, 'Continue…');
      await press(page, 'Give $5.00');
      await dialog(page).getByText('The service cannot be reached').waitFor();
    };
    await enter();
    // The figures behind the dialog are those of the books while it is still open.
    await tile(page, 'Credit').getByText('$30.00').waitFor();
    await dialog(page).getByText('Its credit is $30.00 now.').waitFor();
    await press(page, 'Close');
    await page.getByText('Entered a payment that was received by hand.').nth(1).waitFor();

    // The service can be reached again only after the dialog is closed.
    cut_off = true;
    await enter();
    await tile(page, 'Credit').getByText('$30.00').waitFor();
    cut_off = false;
    await press(page, 'Cancel');
    await press(page, 'Cancel');
    await tile(page, 'Credit').getByText('$35.00').waitFor();
    await press(page, 'Give credit…');
    await dialog(page).getByLabel('Amount').fill('5');
    await press(page, 'Continue…');
    await dialog(page).getByText('from $35.00 to $40.00').waitFor();
  });

  test('a model gets another price, is closed and opened; what cannot be is said', async () => {
    await using opened = await open(ada, '/console/operator/models');
    const { page } = opened;
    await press(page, 'Change the price of decision-1');
    await dialog(page).getByLabel('Dollars for 1M input tokens').fill('5000');
    await press(page, 'Change price');
    await dialog(page).getByText('A price must be at most $1000').waitFor();
    await dialog(page).getByLabel('Dollars for 1M input tokens').fill('0.6');
    await press(page, 'Change price');
    await page.getByRole('cell', { name: '$0.60' }).waitFor();
    await press(page, 'Close decision-1');
    await press(page, 'Close model');
    await page.getByText('Closed', { exact: true }).waitFor();
    await press(page, 'Open decision-1');
    await press(page, 'Open model');
    await page.getByText('Open', { exact: true }).waitFor();
    await page.goto(`${made.service.server.address}/console/operator/trail`);
    await page.getByText('Closed a model.').first().waitFor();
    await page.getByLabel('Action').selectOption('Set the price of a model');
    await page.getByText('Closed a model.').waitFor({ state: 'detached' });
    await page.getByText('$0.60').waitFor();
  });

  test('many models, as organizations add of their own, are searched and shown in pages of 50', async () => {
    const ids = Array.from({ length: 60 }, (_, number) => `many-${number}`);
    await using added = new AsyncDisposableStack();
    added.defer(async () => {
      await made.service.execute(`DELETE FROM models WHERE id IN ('${ids.join("', '")}')`);
    });
    for (const id of ids) {
      await made.service.execute(
        `INSERT INTO models (id, kind, status, description) VALUES ('${id}', 'decision', 'coming_soon', '')`,
      );
    }
    await using opened = await open(ada, '/console/operator/models');
    const { page } = opened;
    await page.getByText(/^1–50 of 6\d$/).waitFor();
    await page.getByRole('searchbox', { name: 'Search models' }).fill('many-59');
    await page.getByRole('button', { name: 'Change the price of many-59' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
    await added.disposeAsync();
    await page.getByText('No matching models').waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('the live page goes on by itself, and stops where it is paused', async () => {
    await using opened = await open(ada, '/console/operator/live');
    const { page } = opened;
    await heading(page, 'Live');
    const asked = () => page.waitForResponse((response) => response.url().endsWith('/operator/live'));
    await asked();
    made.service.service.services.problems.report({
      request_id: null,
      step: 'mail',
      code: null,
      error: new Error('gone'),
    });
    await tile(page, 'Problems').getByText('4').waitFor();
    await press(page, 'Pause');
    await page.getByText('Paused.').waitFor();
    await press(page, 'Go on');
    await asked();
    expect(opened.complaints).toEqual([]);
  });

  test('an audit is begun, and its end is shown', async () => {
    await using opened = await open(ada, '/console/operator/audit');
    const { page } = opened;
    await heading(page, 'Ledger audit');
    const before = await page.locator('.tile time').getAttribute('datetime');
    await press(page, 'Audit now');
    await page.locator(`.tile time:not([datetime="${before}"])`).waitFor();
    await page.getByText('The whole history').waitFor();
  });

  test.each([
    ['audit', 'You see the last one of the node that answers this page.'],
    ['problems', "The last failures that were the service's own fault, on this node, since its start."],
    ['live', 'The last five minutes of this node by the second'],
    ['models', 'State, load and reloads are those of this node.'],
  ])('%s says that it tells of one node only', async (name, sentence) => {
    await using opened = await open(ada, `/console/operator/${name}`);
    await opened.page.getByText(sentence).waitFor();
  });

  test('problems are found by the id of the request', async () => {
    await using opened = await open(ada, '/console/operator/problems');
    const { page } = opened;
    await page.getByText('Background').first().waitFor();
    await page.getByRole('searchbox', { name: 'Request id' }).fill('req_0a1b2c3d4e5f6a7b8c9d0e1f');
    await press(page, 'Search');
    await page.getByText('Background').first().waitFor({ state: 'detached' });
    await page.getByText('Error < RangeError').waitFor();
    expect(await page.content()).not.toContain('a record');
    await press(page, 'Show all');
    await page.getByText('Background').first().waitFor();
  });
});

describe.skipIf(program === null)('the audit log of an organization', () => {
  const path = () => `/console/o/${acme}/trail`;

  test('reads well', async () => {
    await using opened = await open(grace, path(), PHONE);
    await heading(opened.page, 'Audit log');
    await opened.page.getByText('Created an API key.').waitFor();
    await expectReadsWell(opened, 'audit-log');
    expect(opened.complaints).toEqual([]);
  });

  test('is filtered by what was done, in an address that can be shared', async () => {
    await using opened = await open(grace, path());
    const { page } = opened;
    await page.getByText('Created an API key.').waitFor();
    expect(await page.getByText('Ada Lovelace').count()).toBe(0);
    await page.getByLabel('Action').selectOption('Created a project');
    await page.getByText('Created an API key.').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByText('Created a project.').waitFor();
    expect(await page.getByText('Created an API key.').count()).toBe(0);
    await page.getByLabel('Action').selectOption('Revoked an API key');
    await page.getByText('No changes of this kind').waitFor();
  });

  test('is not offered to a reader', async () => {
    await using opened = await open(eve, path());
    const { page } = opened;
    await page.getByText('Your role does not allow this').waitFor();
    expect(await page.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
  });
});
