import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { addMember } from '../../../src/accounts/members.ts';
import type { Role } from '../../../src/contract/roles.ts';
import { confirmManualPayment, creditByHand, refundByHand } from '../../../src/payments/credit.ts';
import { paddleProvider } from '../../../src/payments/paddle.ts';
import { handleWebhook } from '../../../src/payments/webhooks.ts';
import { adjustment, SETTINGS, sign, transaction } from '../../payments/paddle-calls.ts';
import { spend } from '../../payments/support.ts';
import { windowedChromiumPath } from '../../support/chromium.ts';
import { Gate } from '../../support/faults.ts';
import { ConsoleBrowser, DESKTOP, PAGE_VIEWS, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person, startTestConsole } from '../people.ts';
import { comeBack, LATELY, visit } from './visitor.ts';

setDefaultTimeout(120_000);

const DOLLAR_MICROS = 1_000_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const billingPath = (organization_id: string) => `/console/o/${organization_id}/billing`;

describeInBrowser('the page of billing', () => {
  const made = consoleInBrowser();

  const people = new Map<string, Promise<Person>>();
  /** Somebody with an organization of their own, made when they are needed first. */
  function personOf(name: string): Promise<Person> {
    const person = people.get(name) ?? addPerson(made, { email: `${name}@example.com` });
    people.set(name, person);
    return person;
  }
  const open = (person: Person, view: View = DESKTOP, at: string = person.organization_id) =>
    visit(made, billingPath(at), { person, view });

  /** Does something at another time of the service. */
  async function shifted(difference_ms: number, work: () => Promise<unknown>): Promise<void> {
    const { clock } = made.service;
    clock.stepWallClock(difference_ms);
    try {
      await work();
    } finally {
      clock.stepWallClock(-difference_ms);
    }
  }

  function credit({ organization_id }: Person, dollars: number) {
    const amount_micros = dollars * DOLLAR_MICROS;
    return creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros });
  }

  function use({ organization_id, default_project_id }: Person, cost_micros: number) {
    const { accounts: context, db } = made.service;
    return spend({ context, db, organization_id, project_id: default_project_id }, cost_micros);
  }

  test('credit is bought by a payment that the operator confirms, and the page follows', async () => {
    const ada = await personOf('ada');
    await using opened = await open(ada);
    const { page } = opened;
    await page.getByText('Pay $5.00 more to reach Tier 1 at once.').waitFor();
    await page.getByText('Payments and charges show up here.').waitFor();

    const amount = page.getByLabel('Amount in dollars');
    const start = page.getByRole('button', { name: 'Start payment' });
    await amount.fill('a lot');
    await start.click();
    await page.getByText('Enter an amount such as 25 or 12.50.').waitFor();
    await amount.fill('25.01');
    await start.click();
    await page.getByText('can be from $5.000000 to $25.000000').waitFor();
    expect(await amount.getAttribute('aria-invalid')).toBe('true');
    expect(await amount.and(page.locator(':focus')).count()).toBe(1);

    await amount.fill('20');
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'How to pay' });
    await dialog.getByText('$20.00').waitFor();
    const payment_id = (await dialog.locator('code').first().textContent()) ?? '';
    // The customer has no shell of the operator's.
    expect(await dialog.textContent()).not.toContain('tds ');
    await page.keyboard.press('Escape');
    const pending = page.getByRole('table', { name: 'Waiting for payment' });
    await pending.getByText(payment_id).waitFor();
    expect(await pending.getByRole('row').count()).toBe(2);

    await confirmManualPayment(made.service.accounts, OPERATOR, payment_id);
    await comeBack(opened);
    await page.getByText('Your organization is now in Tier 1').waitFor();
    await pending.waitFor({ state: 'detached' });
    const history = page.getByRole('table', { name: 'Movements of credit' });
    await history.getByText('+$20.00').waitFor();
    await history.getByText(payment_id).waitFor();
    expect(await page.getByRole('term').allInnerTexts()).toEqual([
      'Available',
      'Balance',
      'Held for open requests',
    ]);
    expect(await page.getByRole('definition').allInnerTexts()).toEqual(['$20.00', '$20.00', '$0.00']);

    await page.getByRole('button', { name: 'Got it' }).click();
    await page.reload();
    await history.waitFor();
    expect(await page.getByText('Your organization is now in Tier 1').count()).toBe(0);
    const changes = page.getByRole('table', { name: 'Tier changes' });
    await changes.getByText('Tier 0 to Tier 1').waitFor();
    await changes.getByText('because of a payment').waitFor();
    // The browser says so of the amount that was refused.
    expect(opened.complaints.filter((complaint) => !complaint.includes('422'))).toEqual([]);
  });

  test('a top-up that nobody pays is canceled by keyboard', async () => {
    const bob = await personOf('bob');
    const { organization_id } = bob;
    await bob.ask(`/console/api/organizations/${organization_id}/top-ups`, {
      body: { amount_micros: 5 * DOLLAR_MICROS },
    });
    await using opened = await open(bob);
    const { page } = opened;
    await page.getByRole('button', { name: 'How to pay' }).click();
    await page.getByRole('dialog', { name: 'How to pay' }).getByText('$5.00').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Cancel…' }).press('Enter');
    await page.getByRole('dialog', { name: 'Cancel this top-up?' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('The top-up is canceled.').waitFor();
    await page.getByRole('table', { name: 'Waiting for payment' }).waitFor({ state: 'detached' });
    expect(opened.complaints).toEqual([]);
  });

  test('the next tier is told by money and days, and comes with time', async () => {
    const carol = await personOf('carol');
    await shifted(HOUR_MS - 7 * DAY_MS, () => credit(carol, 20));
    await using opened = await open(carol);
    const { page } = opened;
    await page
      .getByText(/^Tier 2 can be reached on .* at the earliest, once \$30\.00 more is paid\.$/)
      .waitFor();
    await page.getByText('$20.00 of $50.00').waitFor();
    await page.getByText('6 of 7').waitFor();
    await credit(carol, 40);
    await page.reload();
    await page.getByText(/^Tier 2 comes by itself on .*: enough is paid\.$/).waitFor();
    await shifted(HOUR_MS, async () => {
      await page.reload();
      await page.getByRole('heading', { name: 'Tier 2' }).waitFor();
    });
    const limits = page.getByRole('table', { name: 'Limits of the tier' });
    await limits.getByRole('columnheader', { name: 'Tier 3, next' }).waitFor();
    await limits.getByRole('row', { name: 'Requests a minute 700 1,500' }).waitFor();
  });

  test('credit that was spent before it was refunded is told as missing, and so is the lower tier', async () => {
    const bob = await personOf('bob');
    const { organization_id } = bob;
    await credit(bob, 10);
    await use(bob, 8 * DOLLAR_MICROS);
    await refundByHand(made.service.accounts, OPERATOR, {
      organization_id,
      amount_micros: 10 * DOLLAR_MICROS,
    });
    await using opened = await open(bob);
    const { page } = opened;
    await page.getByText('Your organization fell to Tier 0').waitFor();
    await page.getByText('Requests are refused until more than $8.00 is paid.').waitFor();
    const refunds = page.getByRole('table', { name: 'Refunds' });
    await refunds.getByRole('cell', { name: '-$10.00' }).waitFor();
    const newest = page.getByRole('table', { name: 'Movements of credit' }).getByRole('row').nth(1);
    expect(await newest.getByRole('cell').last().textContent()).toBe('-$8.00');
    expect(opened.complaints).toEqual([]);
  });

  test('a refund that is taken back is named so in the history, and is no payment', async () => {
    const { organization_id } = await personOf('frank');
    const { accounts } = made.service;
    const paddle = paddleProvider(SETTINGS);
    const custom_data = { payment_id: 'pay_of_frank', organization_id };
    for (const body of [
      transaction('transaction.completed', { id: 'txn_frank', custom_data }),
      ...['chargeback', 'chargeback_reverse'].map((action) =>
        adjustment('adjustment.created', { id: action, action, transaction_id: 'txn_frank' }),
      ),
    ]) {
      const { signature } = sign(body, { now_ms: accounts.clock.now_ms() });
      await handleWebhook(accounts, paddle, Buffer.from(body), signature);
    }
    await using opened = await open(await personOf('frank'));
    const history = opened.page.getByRole('table', { name: 'Movements of credit' });
    await history.getByText('Refund taken back').waitFor();
    expect(await history.getByRole('rowheader').or(history.getByRole('cell')).allInnerTexts()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Refund taken back pay_/),
        expect.stringMatching(/^Refund pay_/),
        'Payment pay_of_frank',
      ]),
    );
  });

  test('the history is read by day or by request, page by page, and its balances add up', async () => {
    const dave = await personOf('dave');
    for (let payments = 0; payments < 55; payments++) await credit(dave, 1);
    for (let requests = 0; requests < 3; requests++) await use(dave, 250);
    await using opened = await open(dave);
    const { page } = opened;
    const history = page.getByRole('table', { name: 'Movements of credit' });
    await history.getByRole('row', { name: '3 requests Default' }).getByText('-$0.000750').waitFor();
    const more = page.getByRole('button', { name: 'Show more' });
    await more.focus();
    await page.keyboard.press('Enter');
    await more.waitFor({ state: 'detached' });
    const rows = history.getByRole('row');
    expect(await rows.count()).toBe(1 + 56);
    // "Show more" is gone, and the keyboard goes on at what it has shown.
    expect(
      await rows
        .nth(1 + 50)
        .and(page.locator(':focus'))
        .count(),
    ).toBe(1);
    expect(await rows.last().getByRole('cell').allInnerTexts()).toEqual([
      expect.stringMatching(/^Payment pay_/),
      expect.stringMatching(LATELY),
      '+$1.00',
      '$1.00',
    ]);
    await page.getByText('By request', { exact: true }).click();
    await history.getByText(/^req_/).nth(2).waitFor();
    expect(new URL(page.url()).searchParams.get('by')).toBe('request');
    expect(await rows.nth(1).getByRole('cell').last().textContent()).toBe('$54.999250');
    expect(opened.complaints).toEqual([]);
  });

  test.each([
    ['billing', true],
    ['developer', false],
    ['reader', false],
  ] as const)('as %s, whether a top-up is offered, and taken: %p', async (role: Role, is_offered) => {
    const owner = await personOf('erin');
    const { organization_id } = owner;
    const member = await personOf(role);
    await addMember(made.service.accounts, OPERATOR, { organization_id, user_id: member.user_id, role });
    const top_ups = `/console/api/organizations/${organization_id}/top-ups`;
    const body = { amount_micros: 5 * DOLLAR_MICROS };
    const { payment_id }: { payment_id: string } = JSON.parse(
      await (await owner.ask(top_ups, { body })).text(),
    );
    await using opened = await open(member, PHONE, organization_id);
    const { page } = opened;
    await page.getByText('Waiting for payment').first().waitFor();
    const offered = ['Start payment', 'How to pay', 'Cancel…'].map((name) =>
      page.getByRole('button', { name }),
    );
    for (const button of offered) expect((await button.count()) > 0).toBe(is_offered);
    const hint = page.getByText('An owner, an admin or a billing member can add credit.');
    expect(await hint.count()).toBe(is_offered ? 0 : 1);
    const status = is_offered ? 200 : 403;
    expect((await member.ask(top_ups, { body })).status).toBe(status);
    const canceled = await member.ask(`${top_ups}/${payment_id}/cancel`, { method: 'POST' });
    expect(canceled.status).toBe(status);
  });

  test('nothing is wrong for axe, for a phone or for the browser: light and dark', async () => {
    const grace = await personOf('grace');
    const { organization_id } = grace;
    await shifted(-2 * DAY_MS, () => credit(grace, 20));
    for (const cost_micros of [1_250, 980, 43_000]) await use(grace, cost_micros);
    await refundByHand(made.service.accounts, OPERATOR, {
      organization_id,
      amount_micros: 3 * DOLLAR_MICROS,
    });
    await grace.ask(`/console/api/organizations/${organization_id}/top-ups`, {
      body: { amount_micros: 25 * DOLLAR_MICROS },
    });
    await using opened = await open(grace, PHONE);
    const { page } = opened;
    const requests = page.getByText(/requests Default/).first();
    await requests.waitFor();
    for (const view of PAGE_VIEWS) {
      await opened.show(view);
      await opened.photograph(`billing-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      expect(await opened.overflows()).toBe(false);
      await page.getByRole('button', { name: 'How to pay' }).click();
      await page.getByRole('dialog', { name: 'How to pay' }).waitFor();
      await opened.photograph(`billing-how-to-pay-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      await page.keyboard.press('Escape');
    }
    expect(opened.complaints).toEqual([]);
  });
});

const windowed = windowedChromiumPath();
describe.skipIf(windowed === null)('the page of billing, with a provider', () => {
  test('the checkout is the provider’s own page, and its webhook brings the credit', async () => {
    const checkout_page = new Gate();
    const paddle = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      reusePort: false,
      fetch: async (request) => {
        const { pathname, origin } = new URL(request.url);
        if (pathname === '/pay') {
          await checkout_page.pass();
          return new Response(
            '<!doctype html><title>Pay</title><link rel="icon" href="data:,"><h1>Pay here</h1>',
            {
              headers: { 'content-type': 'text/html' },
            },
          );
        }
        const checkout = { url: `${origin}/pay?_ptxn=txn_9` };
        return Response.json({ data: { id: 'txn_9', items: [], payments: [], checkout } });
      },
    });
    const api = { address: paddle.url.origin, timeout_ms: 15_000 };
    const made = await startTestConsole({ payment_provider: paddleProvider(SETTINGS, api) });
    const browser = await ConsoleBrowser.open(windowed ?? '', { keeps_pages: true });
    try {
      const ada = await addPerson(made, { email: 'ada@example.com' });
      await using opened = await visit(made, billingPath(ada.organization_id), {
        person: ada,
        view: PHONE,
        browser,
      });
      const { page } = opened;
      const started: string[] = [];
      page.on('request', (request) => {
        if (request.method() === 'POST') started.push(new URL(request.url()).pathname);
      });
      await page.getByLabel('Amount in dollars').fill('12.50');
      await page.getByRole('button', { name: 'Go to checkout' }).click({ noWaitAfter: true });
      await checkout_page.reached;
      // The browser still shows the form, whose button has the focus.
      await page.keyboard.press('Enter');
      await page.keyboard.press('Enter');
      checkout_page.open();
      await page.waitForURL(/_ptxn=txn_9$/);
      await page.getByRole('heading', { name: 'Pay here' }).waitFor();
      await page.goBack({ waitUntil: 'commit' });
      expect(started).toEqual([`/console/api/organizations/${ada.organization_id}/top-ups`]);
      // The page is as it was left, and takes another amount.
      await page.getByText('Top-up at the checkout').waitFor();
      expect(await page.getByRole('table', { name: 'Waiting for payment' }).getByRole('row').count()).toBe(2);
      expect(await page.getByLabel('Amount in dollars').inputValue()).toBe('12.50');
      await page.locator('button[type=submit]:not([aria-busy])', { hasText: 'Go to checkout' }).waitFor();
      expect(await page.getByRole('button', { name: 'How to pay' }).count()).toBe(0);

      const { body, signature } = sign(transaction('transaction.completed', { id: 'txn_9', cents: '1250' }));
      const called = await made.service.fetch('/webhooks/paddle', {
        method: 'POST',
        body,
        headers: { 'paddle-signature': signature ?? '' },
      });
      expect(called.status).toBe(200);
      await comeBack(opened);
      await page.getByText('Your organization is now in Tier 1').waitFor();
      expect(await page.getByRole('definition').first().textContent()).toBe('$12.50');
      expect(opened.complaints).toEqual([]);
    } finally {
      await browser[Symbol.asyncDispose]();
      await made.close();
      await paddle.stop(true);
    }
  });
});
