import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { projectFile } from '../../../src/files/project-root.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../../support/service.ts';
import { type ConsolePage, DESKTOP, PAGE_VIEWS, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { pressOn } from './keyboard.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

describeInBrowser('the playground in a real browser', () => {
  let owner: Person;
  let api_key: string;
  /** While it is there, the model answers nothing. */
  let held: { readonly reached: () => void } | undefined;
  const made = consoleInBrowser({
    embedded: true,
    cold: false,
    openEngine: (engine) => {
      return {
        ...engine,
        evaluate: async (plan, options) => {
          if (held !== undefined) {
            held.reached();
            await new Promise((_, reject) => {
              options.signal?.addEventListener('abort', () => reject(options.signal?.reason));
            });
          }
          return await engine.evaluate(plan, options);
        },
      };
    },
  });
  beforeAll(async () => {
    owner = await addPerson(made, { email: 'owner@example.com', name: 'Ada Lovelace' });
    const { organization_id, default_project_id: project_id } = owner;
    await creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    ({ key: api_key } = await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Playground' }));
  });

  /** The page of an organization, as somebody who is signed in sees it. */
  const openPlayground = (
    person: Person,
    view: View = DESKTOP,
    organization_id = person.organization_id,
  ): Promise<ConsolePage> => visit(made, `/console/o/${organization_id}/playground`, { person, view });

  const run = (page: Page) => page.getByRole('button', { name: 'Run', exact: true });
  const answered = (page: Page) => page.getByText('The answers are there').waitFor();
  const cells = (page: Page) => page.getByRole('region', { name: 'What each run took' }).locator('tbody tr');
  const answersTo = (page: Page, id: string) => page.getByRole('region', { name: `Answers to ${id}` });

  async function textOf(locator: Locator): Promise<string> {
    return (await locator.textContent()) ?? '';
  }

  async function credit_micros(): Promise<number> {
    const organization = await made.service.accounts.store.accounts.findOrganization(owner.organization_id);
    return organization?.credit_micros ?? Number.NaN;
  }

  test('a first visit is answered by one click, billed as the table says, in both modes and with options reversed', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const before = await credit_micros();
    await run(page).click();
    await answered(page);
    expect(await textOf(answersTo(page, 'refund'))).toContain('Yes');
    expect(await textOf(answersTo(page, 'team'))).toContain('billing');
    expect(await cells(page).count()).toBe(1);

    await page.getByText('Both', { exact: true }).click();
    await run(page).click();
    await cells(page).nth(1).waitFor();
    await answered(page);
    await page.getByRole('button', { name: 'Rerun with options reversed' }).click();
    await cells(page).nth(3).waitFor();
    await answered(page);
    expect(await cells(page).getByRole('rowheader').allInnerTexts()).toEqual([
      'Fast',
      'Consistent',
      'Fast, reversed',
      'Consistent, reversed',
    ]);
    // Consistent mode sorts the options of a choice by itself.
    const changes = await answersTo(page, 'team').getByText('The order moves it by up to').allInnerTexts();
    expect(changes.at(-1)).toBe('The order moves it by up to 0 points.');
    expect(changes.length).toBe(2);

    const costs = (await cells(page).locator('td:nth-child(3)').allInnerTexts()).map((text) =>
      Math.round(Number(text.replace('$', '')) * 1e6),
    );
    const [fast = 0] = costs;
    expect(costs.length).toBe(4);
    expect(before - (await credit_micros())).toBe(fast + costs.reduce((sum, cost) => sum + cost, 0));
    expect(opened.complaints).toEqual([]);
  });

  test('the threshold turns the answer on the page, and is asked with the next time', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    await run(page).click();
    await answered(page);
    const refund = answersTo(page, 'refund');
    expect(await textOf(refund)).toContain('at or above 90%');
    await refund.getByRole('slider').fill('0.99');
    await refund.getByText('below 99%').waitFor();
    expect(await textOf(page.locator('pre'))).toContain('"threshold": 0.99');
  });

  test('tokens and price are told before a run, free of charge, and the run costs that', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const before = await credit_micros();
    const price = page.locator('.run-price .number');
    await price.getByText(/^\d+ tokens · \$0\.\d+$/).waitFor();
    await page.getByText('Both', { exact: true }).click();
    await price.getByText(/^\d+ tokens/).waitFor();
    const [, tokens, cost = ''] = /^([\d,]+) tokens · \$([\d.]+)$/.exec(await textOf(price)) ?? [];
    expect(await credit_micros()).toBe(before);
    await run(page).click();
    await cells(page).nth(1).waitFor();
    await answered(page);
    expect(before - (await credit_micros())).toBe(Math.round(Number(cost) * 1e6));
    const read = (await cells(page).locator('td:nth-child(2)').allInnerTexts()).map(Number);
    expect(read.reduce((sum, count) => sum + count, 0)).toBe(Number(tokens));
  });

  test('a record that is too long is said to lose its middle before the run, with the place of the gap', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const words = Array.from({ length: 16_000 }, (_, at) => `w${at}`).join(' ');
    await page.getByRole('textbox', { name: 'Record' }).fill(words);
    await page.getByText(/The record is too long: [\d,]+ tokens of its middle will not be read/).waitFor();
    const gap = await textOf(page.locator('.left-out'));
    expect(gap).toContain('[left out]');
    expect(await opened.seriousFindings()).toEqual([]);
    await opened.photograph('playground-left-out');
  });

  test('an empty record or question is not asked', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const before = await credit_micros();
    const record = page.getByRole('textbox', { name: 'Record' });
    await record.fill(' ');
    await run(page).click();
    await page.getByText('Write a record, or load one from a file.').waitFor();
    await record.fill('Where is my parcel?');
    await page.getByRole('button', { name: 'Add a question: yes or no' }).click();
    await run(page).click();
    await page.getByText('Write the question.').waitFor();
    await page.getByRole('group', { name: 'Edit as' }).getByText('JSON').click();
    await run(page).click();
    await page.locator('.field-error').getByText('Write the question.').waitFor();
    expect(await credit_micros()).toBe(before);
  });

  test('questions of every type are built, moved, duplicated and removed, and every example is answered', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    await page.getByRole('button', { name: 'Suspicious text' }).click();
    await run(page).click();
    await answered(page);
    for (const name of ['Support message', 'Assistant request', 'Product review', 'News in JSON']) {
      await page.getByRole('button', { name }).click();
      await page.getByText('No answers yet').waitFor();
      await run(page).click();
      await answered(page);
    }
    expect(await textOf(answersTo(page, 'topic'))).toContain('sport');

    await page.getByRole('button', { name: 'Add a question: choice' }).click();
    await page.getByLabel('Name', { exact: true }).fill('where');
    await page.getByLabel('Question', { exact: true }).fill('Where was the match?');
    await page.getByLabel('Name of option 1').fill('10');
    await page.getByLabel('Name of option 2').fill('2');
    await page.getByRole('button', { name: 'Add option' }).click();
    await page.getByLabel('Name of option 3').fill('stadium');
    await page.getByRole('button', { name: 'Move stadium up' }).click();
    await page.getByRole('button', { name: 'Move where up' }).click();
    await page.getByRole('button', { name: 'Duplicate where' }).click();
    await page.getByRole('button', { name: 'Remove where', exact: true }).click();
    await page.getByRole('button', { name: 'Add a question: score' }).click();
    await page.getByLabel('Level 0', { exact: true }).fill('bad');
    await page.getByLabel('Level 1', { exact: true }).fill('good');
    expect(await page.locator('.question-title code').allInnerTexts()).toEqual([
      'topic',
      'sport',
      'where_copy',
      'politics',
      'question_5',
    ]);
    await page.getByText('Fast', { exact: true }).first().click();
    await run(page).click();
    await answersTo(page, 'question_5').waitFor();
    await answered(page);
    expect(await answersTo(page, 'where_copy').locator('.probability-label').allInnerTexts()).toEqual(
      expect.arrayContaining([expect.stringContaining('10')]),
    );
    // A changed record is not discarded without a question.
    await page.getByRole('button', { name: 'Support message' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    expect(await page.locator('.question-title code').count()).toBe(5);
    expect(opened.complaints).toEqual([]);
  });

  test('what the service or the page refuses is said at its field, which has the focus', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const before = await credit_micros();
    await page.getByRole('button', { name: /^team/ }).click();
    for (const name of ['sales', 'technical', 'shipping']) {
      await page.getByRole('button', { name: `Remove ${name}`, exact: true }).click();
    }
    await run(page).click();
    await page.locator('.question .field-error').getByText('A choice needs an object').waitFor();
    const notice = page.getByRole('alert').filter({ hasText: 'invalid_criteria' });
    expect(await textOf(notice)).toContain('questions.team.criteria');
    expect(await textOf(notice)).toMatch(/req_\w+/);
    await page.getByRole('button', { name: 'Add option' }).click();
    await page.getByLabel('Name of option 2').fill('billing');
    await run(page).click();
    await page.getByText('Another option has this name.').waitFor();
    // The focus follows the sentence.
    await page.getByLabel('Name of option 2').and(page.locator(':focus')).waitFor();

    const record = page.getByRole('region', { name: 'Record' });
    await record.getByText('JSON', { exact: true }).click();
    await record.getByRole('textbox').fill('{"a": ');
    await run(page).click();
    await page.getByText('This is not a JSON object or array.').waitFor();
    expect(await credit_micros()).toBe(before);
  });

  test('the whole request is edited as JSON, with the errors of the service, and comes back as a form', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const view = page.getByRole('group', { name: 'Edit as' });
    await view.getByText('JSON').click();
    const text = page.getByLabel('Request in JSON');
    const request = await text.inputValue();
    await text.fill(request.replace('"fast"', '"slow"'));
    await run(page).click();
    await page.getByText('mode: The mode must be').waitFor();
    await text.fill(request.replace('"Does the customer ask for money back?"', '{"a": 1}'));
    await view.getByText('Form').click();
    await page.getByText('The instructions of "refund" are not a text.').waitFor();
    await text.fill(request.replace('"fast"', '"consistent"').replace('"urgency"', '"haste"'));
    await run(page).click();
    await answersTo(page, 'haste').waitFor();
    await answered(page);
    expect(await cells(page).getByRole('rowheader').allInnerTexts()).toEqual(['Consistent']);
    const read = await text.inputValue();
    await text.fill(read.replace('{', '{"temperature": 0,'));
    await run(page).click();
    await page.getByText('Some fields of the request were not read.').waitFor();
    await page.getByText('temperature', { exact: true }).waitFor();
    await text.fill(read);
    await view.getByText('Form').click();
    await page.getByRole('button', { name: /^haste/ }).waitFor();
  });

  test('what was left out of the record is told with the answers', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    await run(page).click();
    await answered(page);
    expect(await page.getByText('of its middle').count()).toBe(0);
    // A record that is too long takes a minute to be answered: here the header is put on the answer to a short one.
    await page.route('**/playground/*', async (sent) => {
      const response = await sent.fetch();
      const headers = { ...response.headers(), 'tds-record-tokens-left-out': '12345' };
      await sent.fulfill({ response, headers });
    });
    await run(page).click();
    await page.getByText('12,345 tokens of its middle were left out.').waitFor();
    expect(await opened.seriousFindings()).toEqual([]);
  });

  test('a record of a browser that keeps nothing is in the page only: not in its storage, its address or the database', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const secret = 'zebra-4711-marzipan';
    await page.getByRole('checkbox', { name: 'Keep my work in this browser' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete and stop' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.locator('input[type=file]').setInputFiles({
      name: 'record.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify({ message: `Please refund ${secret}` })),
    });
    const record = page.getByRole('region', { name: 'Record' });
    await record.getByRole('radio', { name: 'JSON', checked: true }).waitFor({ state: 'attached' });
    await run(page).click();
    await answered(page);
    expect(page.url()).not.toContain(secret);
    const stored = await page.evaluate(`(async () => JSON.stringify([
      { ...localStorage }, { ...sessionStorage }, history.state, document.cookie,
      await caches.keys(),
    ]))()`);
    const { organization_id } = owner;
    expect(JSON.parse(String(stored))).toEqual([
      {
        'tds-theme': 'system',
        'tds-keeps-work': 'off',
        'tds-organization': organization_id,
        'tds-signed-in': expect.stringMatching(/^\d{13}$/),
      },
      { 'tds-organization': organization_id },
      null,
      '',
      [],
    ]);
    const { directory } = made.service;
    for (const file of readdirSync(directory)) {
      expect([file, readFileSync(join(directory, file)).includes(secret)]).toEqual([file, false]);
    }
    await page.reload();
    await run(page).waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  test('a file that is too large or no text is refused with a reason', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const load = (name: string, buffer: Buffer) =>
      page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/plain', buffer });
    await load('large.txt', Buffer.alloc(1_048_577, 'a'));
    await page.getByText('large.txt has 1 MB: a request may have 1 MB.').waitFor();
    await load('picture.txt', Buffer.from([0xff, 0xd8, 0xff]));
    await page.getByText('picture.txt is not a text in UTF-8.').waitFor();
    await load('note.txt', Buffer.from('Where is my parcel?'));
    await page.getByText('19 B. It stays in this browser').waitFor();
    const record = page.getByRole('region', { name: 'Record' });
    expect(await record.getByRole('textbox').inputValue()).toBe('Where is my parcel?');
  });

  test('a run is aborted by its own button alone: it is taken off the model and costs nothing', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const before = await credit_micros();
    const reached = new Promise<void>((resolve) => {
      held = { reached: resolve };
    });
    try {
      await run(page).dblclick();
      await page.keyboard.press('Enter');
      await reached;
      await page.getByText('Asking for').waitFor();
      await page.getByText('This takes longer than usual.').waitFor();
      await page.getByRole('button', { name: 'Abort' }).click();
      await page.getByText('Aborted', { exact: true }).waitFor();
      await page.getByText('An aborted run may still be charged.').waitFor();
    } finally {
      held = undefined;
    }
    await run(page).click();
    await answered(page);
    // The second click of a double click whose first one was answered at once.
    await page.mouse.down({ clickCount: 2 });
    await page.mouse.up({ clickCount: 2 });
    expect(await run(page).getAttribute('aria-busy')).toBeNull();
    const cost = (await textOf(cells(page).locator('td:nth-child(3)'))).replace('$', '');
    expect(before - (await credit_micros())).toBe(Math.round(Number(cost) * 1e6));
  });

  test('a model that warms up is asked once more when it said so, with a notice', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    let refusals = 0;
    const warmUp = async (times: number, retry_after_s: number) => {
      refusals = 0;
      await page.route('**/playground/*', async (route) => {
        if (route.request().method() !== 'POST' || refusals >= times) return await route.fallback();
        refusals += 1;
        const error = {
          type: 'overloaded_error',
          code: 'model_warming_up',
          message: 'Still starting.',
          param: null,
        };
        await route.fulfill({
          status: 503,
          headers: { 'retry-after': String(retry_after_s) },
          json: { error, request_id: 'req_test' },
        });
      });
    };
    // The notice is there for no longer than that.
    await warmUp(1, 5);
    await run(page).click();
    await page.getByText('The model is warming up.').waitFor();
    await answered(page);
    expect(refusals).toBe(1);
    await page.unroute('**/playground/*');
    await warmUp(3, 1);
    await run(page).click();
    await page.getByRole('alert').getByText('Still starting.').waitFor();
    expect(refusals).toBe(2);
  });

  test('the curl line and the TypeScript program run as they stand', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    const record = page.getByRole('region', { name: 'Record' }).getByRole('textbox');
    await record.fill(`It's "urgent": $HOME \\ \`refund\` me\nnow 😀`);
    const answerOf = async (command: readonly string[], input: string) => {
      const child = Bun.spawn([...command], {
        cwd: projectFile('.'),
        env: { ...process.env, TDS_API_KEY: api_key },
        stdin: new Blob([input]),
        stderr: 'inherit',
      });
      return await new Response(child.stdout).text();
    };
    const shown = () => textOf(page.locator('pre'));
    const curl = await shown();
    expect(curl).not.toContain(api_key.slice(0, 12));
    expect(await answerOf(['bash'], curl)).toContain('"object":"decision"');
    await page.getByRole('tab', { name: 'TypeScript' }).click();
    expect(await answerOf([process.execPath, 'run', '-'], await shown())).toContain('"refund"');
    await page.getByRole('tab', { name: 'Python' }).click();
    expect(await shown()).toContain('from typesafe_sdk import TypeSafeClient');
  });

  test('without a key or credit the page says what to do', async () => {
    const poor = await addPerson(made, { email: 'poor@example.com' });
    await using opened = await openPlayground(poor);
    const { page } = opened;
    const keys = page.getByRole('link', { name: 'Create a key' });
    const billing = page.getByRole('link', { name: 'Add credit' });
    expect(await keys.getAttribute('href')).toBe(`/console/o/${poor.organization_id}/keys`);
    expect(await billing.getAttribute('href')).toBe(`/console/o/${poor.organization_id}/billing`);
    expect(await run(page).isDisabled()).toBe(true);
    expect(await opened.seriousFindings()).toEqual([]);
  });

  test('without a key or credit one click shows what the model answered to an example', async () => {
    const curious = await addPerson(made, { email: 'curious@example.com' });
    await using opened = await openPlayground(curious);
    const { page } = opened;
    const recorded = page.getByRole('button', { name: 'Show recorded answers' });
    await recorded.click();
    await page.getByText('These answers were recorded.').waitFor();
    expect(await textOf(answersTo(page, 'team'))).toContain('billing');
    expect(await opened.seriousFindings()).toEqual([]);
    await opened.photograph('playground-recorded');

    await page.getByRole('button', { name: 'Product review' }).click();
    await recorded.click();
    expect(await textOf(answersTo(page, 'about'))).toContain('battery');
    expect(await page.getByRole('button', { name: 'Rerun with options reversed' }).count()).toBe(0);
    // A changed request has no stored answer.
    await page.getByRole('button', { name: 'Assistant request' }).click();
    await page.getByRole('textbox', { name: 'Record' }).fill('Play some jazz.');
    await page.getByText('No answers yet').waitFor();
    expect(await recorded.count()).toBe(0);
    expect(opened.complaints).toEqual([]);
  });

  test.each(['billing', 'reader'] as const)('%s is not offered it', async (role) => {
    const person = await addPerson(made, { email: `${role}@example.com` });
    const { organization_id } = owner;
    await addMember(made.service.accounts, OPERATOR, { organization_id, user_id: person.user_id, role });
    await using opened = await openPlayground(person, DESKTOP, organization_id);
    const { page } = opened;
    await page.getByText('Your role does not allow this').waitFor();
    expect(await page.getByRole('link', { name: 'Playground' }).count()).toBe(0);
  });

  test('it reads well with the answers of both modes', async () => {
    await using opened = await openPlayground(owner, PHONE);
    const { page } = opened;
    await page.getByText('Both', { exact: true }).click();
    await page.getByRole('button', { name: /^team/ }).click();
    await run(page).click();
    await cells(page).nth(1).waitFor();
    await answered(page);
    for (const view of PAGE_VIEWS) {
      await opened.show(view);
      expect(
        await page.evaluate(
          `[...document.querySelectorAll('.run-table')].map((table) => table.scrollWidth - table.clientWidth)`,
        ),
      ).toEqual([0]);
    }
    await expectReadsWell(opened, 'playground');
    expect(opened.complaints).toEqual([]);
  });

  test('a request is written and run by keyboard alone', async () => {
    await using opened = await openPlayground(owner);
    const { page } = opened;
    await run(page).waitFor();
    await pressOn(page, page.getByRole('button', { name: 'Product review', exact: true }));
    await pressOn(page, run(page));
    await answered(page);
    expect(await textOf(answersTo(page, 'about'))).toContain('battery');
  });
});
