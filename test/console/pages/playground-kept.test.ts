import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { eventually } from '../../support/eventually.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../../support/service.ts';
import { openPage, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, PASSWORD, type Person } from '../people.ts';
import { carrySession, visit } from './visitor.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

const RECORD = 'The zebra in the garden ate my order 4711.';

describeInBrowser('what the playground keeps in the browser', () => {
  const made = consoleInBrowser({ cold: false });
  let owner: Person;

  beforeAll(async () => {
    owner = await addPerson(made, { email: 'owner@example.com', name: 'Ada Lovelace' });
    const { organization_id, default_project_id: project_id } = owner;
    await creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Playground' });
  });

  const playground = () => `/console/o/${owner.organization_id}/playground`;
  const open = () => visit(made, playground(), { person: owner });
  const record = (page: Page) => page.getByRole('textbox', { name: 'Record' });
  const answered = (page: Page) => page.getByText('The answers are there').waitFor();
  const tab = (page: Page, name: string) => page.getByRole('tab', { name });

  /** The draft is written beside the typing: waits until the browser has it. */
  const untilKept = (page: Page, text: string) =>
    eventually(() =>
      page.evaluate<boolean>(`new Promise((resolve) => {
        const opening = indexedDB.open('tds-playground');
        opening.onsuccess = () => {
          const all = opening.result.transaction('drafts').objectStore('drafts').getAll();
          all.onsuccess = () => {
            opening.result.close();
            resolve(all.result.some(({ draft }) => draft.record.text === ${JSON.stringify(text)}));
          };
        };
      })`),
    );

  /** Runs and requests are written beside what the page shows: waits until the browser has that many. */
  const untilStored = (page: Page, store: 'runs' | 'requests', count: number) =>
    eventually(() =>
      page.evaluate<boolean>(`new Promise((resolve) => {
        const opening = indexedDB.open('tds-playground');
        opening.onsuccess = () => {
          const counting = opening.result.transaction('${store}').objectStore('${store}').count();
          counting.onsuccess = () => {
            opening.result.close();
            resolve(counting.result === ${count});
          };
        };
      })`),
    );

  /** Sets the time at which a tab seems to be opened, from its next document on. */
  const openedAt = (page: Page, time_ms: number) =>
    page.addInitScript(`Object.defineProperty(performance, 'timeOrigin', { value: ${time_ms} })`);

  test('the draft outlives navigation, a reload, and a session that ended', async () => {
    const guest = await addPerson(made, { email: 'guest@example.com' });
    const path = `/console/o/${guest.organization_id}/playground`;
    await using opened = await visit(made, path, { person: guest });
    const { page } = opened;
    await record(page).fill(RECORD);
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    await page.getByRole('link', { name: 'Playground' }).click();
    await record(page).waitFor();
    expect(await record(page).inputValue()).toBe(RECORD);

    await record(page).fill(`${RECORD}!`);
    await untilKept(page, `${RECORD}!`);
    await page.context().clearCookies();
    await page.reload();
    await page.getByLabel('Email address').fill(guest.email);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await record(page).waitFor();
    expect(await record(page).inputValue()).toBe(`${RECORD}!`);
  });

  test('another person in the same browser sees nothing of it', async () => {
    await using opened = await open();
    const { page } = opened;
    await record(page).fill(RECORD);
    await untilKept(page, RECORD);
    const other = await addPerson(made, { email: 'other@example.com' });
    await page.context().clearCookies();
    await carrySession(opened, made, other);
    await page.goto(`${made.service.server.address}/console/o/${other.organization_id}/playground`);
    await record(page).waitFor();
    expect(await page.content()).not.toContain('zebra');
    expect(await record(page).inputValue()).not.toContain('zebra');
  });

  test('a run is kept with its answers, and its response is shown as it came', async () => {
    await using opened = await open();
    const { page } = opened;
    await record(page).fill(RECORD);
    await page.keyboard.press('Control+Enter');
    await answered(page);
    await tab(page, 'Raw response').click();
    const raw =
      (await page.getByRole('region', { name: 'Response: Fast' }).locator('pre').textContent()) ?? '';
    expect(JSON.parse(raw)).toMatchObject({ object: 'decision', usage: { decisions: 3 } });
    await untilStored(page, 'runs', 1);
    await page.reload();
    await tab(page, 'Recent runs').click();
    await page.getByRole('button', { name: RECORD }).click();
    // The draft is that of the run, and was written by somebody.
    await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click();
    await page.getByRole('region', { name: 'Answers to team' }).waitFor();
    expect(await record(page).inputValue()).toBe(RECORD);
    expect(opened.complaints).toEqual([]);
  });

  test('a request is saved under a name, opened again, and removed', async () => {
    await using opened = await open();
    const { page } = opened;
    await record(page).fill(RECORD);
    await page.getByRole('button', { name: 'Saved requests' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('The zebra');
    await dialog.getByRole('button', { name: 'Save this request' }).click();
    await page.getByRole('button', { name: 'Saved requests (1)' }).waitFor();
    await record(page).fill('Something else.');
    await untilKept(page, 'Something else.');
    await page.reload();
    await page.getByRole('button', { name: 'Saved requests (1)' }).click();
    expect(await opened.seriousFindings()).toEqual([]);
    await dialog.getByRole('button', { name: /^The zebra/ }).click();
    await dialog.getByRole('button', { name: 'Replace' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(await record(page).inputValue()).toBe(RECORD);
    await page.getByRole('button', { name: 'Saved requests (1)' }).click();
    await dialog.getByRole('button', { name: 'Remove The zebra' }).click();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await untilStored(page, 'requests', 0);
    await page.reload();
    await page.getByRole('button', { name: 'Saved requests', exact: true }).waitFor();
  });

  test('a link opens its request after sign-in, and what it replaces is saved; no server sees it', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await record(page).fill(RECORD);
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('Copied to the clipboard').waitFor();
    const link = String(await page.evaluate('navigator.clipboard.readText()'));
    const [address = '', fragment = ''] = link.split('#');
    expect(address).toBe(made.service.server.address + playground());

    await record(page).fill('A draft of today.');
    await untilKept(page, 'A draft of today.');
    await page.context().clearCookies();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    // A page of the same document would not be loaded anew.
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByLabel('Email address').fill(owner.email);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Saved requests (1)' }).waitFor();
    expect(await record(page).inputValue()).toBe(RECORD);
    expect(page.url()).not.toContain('#request');
    expect(asked.filter((url) => new URL(url).search.includes(fragment.slice(0, 40)))).toEqual([]);
    await page.getByRole('button', { name: 'Saved requests (1)' }).click();
    await page.getByRole('button', { name: /^Draft of / }).click();
    await page.getByRole('button', { name: 'Saved requests (1)' }).waitFor();
    expect(await record(page).inputValue()).toBe('A draft of today.');
    await page.evaluate(`location.hash = 'request=AAAA'`);
    await page.getByText('This link has no request that can be read.').waitFor();
  });

  test('what another tab replaces is saved, once for each tab', async () => {
    await using opened = await open();
    const { page } = opened;
    // A browser that is started opens its tabs in one second.
    await openedAt(page, 1_700_000_000_000);
    await page.reload();
    await record(page).fill('Of the first tab.');
    await untilKept(page, 'Of the first tab.');
    const other = await page.context().newPage();
    await openedAt(other, 1_700_000_000_001);
    await other.goto(page.url());
    await record(other).fill('Of the second tab.');
    await untilKept(other, 'Of the second tab.');
    // It began with the first tab's text, and took nothing from it.
    expect(await other.getByRole('button', { name: 'Saved requests', exact: true }).count()).toBe(1);
    for (const text of ['Of the first tab, more.', 'Of the first tab, most.']) {
      await record(page).fill(text);
      await untilKept(page, text);
      await page.getByRole('button', { name: 'Saved requests (1)' }).waitFor();
      await record(other).fill('Of the second tab again.');
      await untilKept(other, 'Of the second tab again.');
      await other.getByRole('button', { name: /^Saved requests \(\d\)$/ }).waitFor();
    }
    await untilStored(page, 'requests', 2);
    await page.getByRole('button', { name: 'Saved requests (1)' }).click();
    await page.getByRole('button', { name: /^Draft of / }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await record(page).inputValue()).toBe('Of the second tab again.');
  });

  test('what another tab wrote stays where it cannot be saved', async () => {
    await using opened = await open();
    const { page } = opened;
    await record(page).fill('Of the first tab.');
    await untilKept(page, 'Of the first tab.');
    const other = await page.context().newPage();
    await other.goto(page.url());
    await record(other).fill('Of the second tab.');
    await untilKept(other, 'Of the second tab.');
    await page.evaluate(`(({ prototype: stores, prototype: { put } }) => {
      stores.put = function (...given) {
        if (this.name !== 'requests') return put.apply(this, given);
        globalThis.is_refused = true;
        throw new DOMException('There is no room.', 'QuotaExceededError');
      };
    })(IDBObjectStore)`);
    await record(page).fill('Of the first tab again.');
    await eventually(() => page.evaluate<boolean>('globalThis.is_refused === true'));
    await untilKept(page, 'Of the second tab.');
  });

  test('a link asks before it replaces what cannot be saved: unfinished JSON, or a browser that keeps nothing', async () => {
    await using opened = await open();
    const { page } = opened;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await record(page).fill(RECORD);
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('Copied to the clipboard').waitFor();
    const link = new URL(String(await page.evaluate('navigator.clipboard.readText()')));
    const follow = () => page.evaluate(`location.hash = ${JSON.stringify(link.hash)}`);
    const asked = page.getByRole('dialog', { name: 'Open the linked request?' });

    await page.getByRole('group', { name: 'Edit as' }).getByText('JSON').click();
    const json = page.getByLabel('Request in JSON');
    await json.fill('{ "unfinished": ');
    await follow();
    await asked.getByRole('button', { name: 'Cancel' }).click();
    expect(await json.inputValue()).toBe('{ "unfinished": ');
    await follow();
    await asked.getByRole('button', { name: 'Replace' }).click();
    await asked.waitFor({ state: 'hidden' });
    expect(await record(page).inputValue()).toBe(RECORD);

    await page.getByRole('checkbox', { name: 'Keep my work in this browser' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete and stop' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await record(page).fill('A draft of today.');
    await follow();
    await asked.getByRole('button', { name: 'Cancel' }).click();
    expect(await record(page).inputValue()).toBe('A draft of today.');
  });

  test('one switch deletes all of it, and keeps nothing from then on', async () => {
    await using opened = await open();
    const { page } = opened;
    await record(page).fill(RECORD);
    await page.keyboard.press('Control+Enter');
    await answered(page);
    const keeps = page.getByRole('checkbox', { name: 'Keep my work in this browser' });
    await keeps.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete and stop' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await record(page).fill(`${RECORD} Again.`);
    await page.keyboard.press('Control+Enter');
    await answered(page);
    const kept = await page.evaluate(`new Promise((resolve) => {
      const opening = indexedDB.open('tds-playground');
      opening.onsuccess = () => {
        const stores = [...opening.result.objectStoreNames];
        const transaction = opening.result.transaction(stores);
        const counts = stores.map((store) => transaction.objectStore(store).count());
        transaction.oncomplete = () => resolve(counts.map(({ result }) => result));
      };
    })`);
    expect(kept).toEqual([0, 0, 0, 0, 0, 0, 0]);
    await page.reload();
    await keeps.waitFor();
    expect(await keeps.isChecked()).toBe(false);
    await record(page).waitFor();
    expect(await record(page).inputValue()).not.toContain('zebra');
  });

  test('two models are asked the same, beside each other, also on a phone', async () => {
    await using opened = await openPage(PHONE);
    const { page } = opened;
    await carrySession(opened, made, owner);
    await page.route('**/console/api/organizations/*/models*', async (route) => {
      const answer = await route.fetch();
      const { items } = JSON.parse(await answer.text());
      await route.fulfill({
        response: answer,
        json: { items: [...items, { ...items[0], id: 'jev-latest' }] },
      });
    });
    await page.goto(made.service.server.address + playground());
    await page.getByLabel('Compare with').selectOption('jev-latest');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await answered(page);
    const runs = page.getByRole('region', { name: 'What each run took' }).getByRole('rowheader');
    expect(await runs.allInnerTexts()).toEqual(['decision-1, fast', 'jev-latest, fast']);
    expect(
      await page.evaluate(`(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(
        document.querySelector('.run-table'),
      )`),
    ).toBe(0);
    await page.reload();
    await page.getByLabel('Compare with').waitFor();
    expect(await page.getByLabel('Compare with').inputValue()).toBe('jev-latest');
    expect(opened.complaints).toEqual([]);
  });
});
