import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { Gate, intercepted } from '../../support/faults.ts';
import { instantEngine } from '../../support/instant-engine.ts';
import { MODEL_TEST_TIMEOUT_MS } from '../../support/service.ts';
import { DESKTOP, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { comeBack, visit } from './visitor.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

/** Rows of a file, of which the last has no record. */
const ROWS = 40;
const CSV = [
  'number,message,amount',
  ...Array.from(
    { length: ROWS - 1 },
    (_, at) => `${at + 1},"The zebra ate my order ""${at + 1}"", twice",-5`,
  ),
  `${ROWS},,0`,
].join('\n');
const ANSWERED = ROWS - 1;

describeInBrowser('the Batch page', () => {
  /** The model waits at it while it is there. */
  let gate: Gate | null = null;
  const made = consoleInBrowser({
    cold: false,
    openEngine: (engine) =>
      intercepted(instantEngine(engine), async (run) => {
        await gate?.pass();
        return await run();
      }),
  });
  beforeAll(async () => {
    reader = await customer();
  });

  /** Somebody for the tests that keep nothing; the mails of one address are limited. */
  let reader: Person;
  let count = 0;
  /** Somebody with credit and a key. */
  async function customer(): Promise<Person> {
    const person = await addPerson(made, { email: `person${++count}@example.com` });
    const { organization_id, default_project_id: project_id } = person;
    await creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Batches' });
    return person;
  }

  const open = (person: Person, view: View = DESKTOP) =>
    visit(made, `/console/o/${person.organization_id}/batch`, { person, view });
  const give = (page: Page, name: string, content: string | Uint8Array) =>
    page.getByLabel('Choose file').setInputFiles({
      name,
      mimeType: 'text/csv',
      buffer: Buffer.from(content),
    });
  const questions = (page: Page) => page.getByRole('combobox', { name: 'Questions' });
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  async function spent_micros({ organization_id }: Person): Promise<number> {
    const found = await made.service.accounts.store.accounts.findOrganization(organization_id);
    return 25_000_000 - (found?.credit_micros ?? Number.NaN);
  }

  async function downloaded(page: Page, name: string): Promise<string> {
    const [file] = await Promise.all([page.waitForEvent('download'), button(page, name).click()]);
    return readFileSync(await file.path(), 'utf8');
  }

  const lineIn = (answer: string): number => JSON.parse(answer).line;
  const NUMBER = /([\d,]+) tokens? · \$([\d.]+)/;

  test('a CSV file is asked about row by row, at the price that was told, and downloaded with its answers', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await give(page, 'tickets.csv', CSV);
    await page.getByText(`${ROWS} rows, 3 columns`).waitFor();
    expect(await page.getByLabel('Record').inputValue()).toBe('=message');
    await questions(page).selectOption('example Support message');
    const price = page.getByText(NUMBER);
    await price.waitFor();
    const told_usd = Number(NUMBER.exec((await price.textContent()) ?? '')?.[2]);

    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await page.getByText(`${ANSWERED} rows answered · 1 with errors`).waitFor();
    const table = page.getByRole('region', { name: 'The first rows' });
    // All answers of a row are in sight, each with its probability.
    for (const width of [1440, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    }
    const cells = await table.getByRole('row').nth(1).getByRole('cell').allTextContents();
    expect(cells).toHaveLength(5);
    expect(cells[2]).toMatch(/^(Yes|No) \d+\.\d%$/);
    const [option, share] = cells[3]?.split(' ') ?? [];
    const spent = await spent_micros(person);
    expect(spent).toBeGreaterThan(0);
    // A row of each length stands for the others.
    expect(Math.abs(told_usd * 1e6 - spent) / spent).toBeLessThan(0.1);

    const [headings = [], ...rows] = parse(await downloaded(page, 'Download CSV'));
    expect(share).toBe(`${(100 * Number(rows[0]?.[headings.indexOf(`team.${option}`)])).toFixed(1)}%`);
    expect(headings.slice(0, 5)).toEqual(['number', 'message', 'amount', 'refund', 'refund.decision']);
    const at = (name: string) => headings.indexOf(name);
    expect(rows).toHaveLength(ROWS);
    for (const [index, row] of rows.slice(0, ANSWERED).entries()) {
      expect(row.slice(0, 3)).toEqual([
        String(index + 1),
        `The zebra ate my order "${index + 1}", twice`,
        '-5',
      ]);
      expect(Number(row[at('refund')])).toBeWithin(0, 1.000001);
      const team = ['billing', 'shipping', 'technical', 'sales'];
      const sum = team.reduce((all, name) => all + Number(row[at(`team.${name}`)]), 0);
      expect(sum).toBeCloseTo(1, 5);
      expect(row[at('error')]).toBe('');
    }
    expect(rows.at(-1)?.[at('error')]).toBe('The row has no record.');
    const cost = rows.reduce((sum, row) => sum + Math.round(Number(row[at('cost_usd')]) * 1e6), 0);
    expect(cost).toBe(spent);
    const lines = (await downloaded(page, 'Download JSONL')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).row)).toEqual(
      Array.from({ length: ROWS }, (_, row) => row + 1),
    );
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      data: { number: '1' },
      answer: { object: 'decision', usage: { decisions: 3 } },
    });
    expect(JSON.stringify(await made.service.everything())).not.toContain('zebra');
    expect(opened.complaints).toEqual([]);
  });

  test('a row that the service cannot read has an error of its own, and all others are answered', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    const sent: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/batch/')) sent.push(request.postData() ?? '');
    });
    const deep = (levels: number) => `{"a":${'['.repeat(levels - 1)}"x"${']'.repeat(levels - 1)}}`;
    const large = JSON.stringify({ a: 'x'.repeat(1_048_576) });
    await give(page, 'rows.jsonl', [deep(1), large, deep(65), deep(64)].join('\n'));
    await page.getByLabel('Record').selectOption('*');
    await questions(page).selectOption('example Support message');
    await button(page, 'Run').click();
    await page.getByText('2 rows answered · 2 with errors').waitFor();
    const answers = (await downloaded(page, 'Download JSONL')).trim().split('\n');
    expect(answers.map((line) => JSON.parse(line).answer.error?.message)).toEqual([
      undefined,
      'The row is larger than 1 MB.',
      'The record of the row is nested deeper than 64 levels.',
      undefined,
    ]);
    // Rows that cannot be read are not sent.
    expect(sent.map((body) => body.trim().split('\n').length)).toEqual([3]);
    expect(opened.complaints).toEqual([]);
  });

  test('an error whose id was not read is that of its row, and ends no run', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    const error = {
      type: 'invalid_request_error',
      code: 'request_too_large',
      message: 'Too large.',
      param: null,
    };
    let requests = 0;
    await page.route('**/batch/*', async (route) => {
      requests += 1;
      const response = await route.fetch();
      const [, ...others] = (await response.text())
        .trim()
        .split('\n')
        .toSorted((one, other) => lineIn(one) - lineIn(other));
      const unread = JSON.stringify({ id: null, line: 2, request_id: 'req_1', error });
      await route.fulfill({ response, body: `${[unread, ...others].join('\n')}\n` });
    });
    await give(page, 'rows.csv', 'message\nOne\nTwo\nThree\n');
    await questions(page).selectOption('example Support message');
    await page.getByText(NUMBER).waitFor();
    await button(page, 'Run').click();
    await page.getByText('2 rows answered · 1 with errors').waitFor();
    expect(requests).toBe(1);
  });

  test('a page that is left in the middle goes on with the rows that have no answer, and no row is charged twice', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await give(page, 'tickets.csv', CSV);
    await page.getByText(NUMBER).waitFor();
    gate = new Gate();
    await button(page, 'Run').click();
    await gate.reached;
    // Nobody reads the answers of the rows that are under way, whether these are charged or not.
    await page.reload();
    gate.open();
    gate = null;
    await page.getByText(`${ROWS} rows, 3 columns`).waitFor();
    await page.getByRole('button', { name: /^(Run|Go on)$/ }).click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await page.reload();
    await page.getByText(`${ANSWERED} rows answered · 1 with errors`).waitFor();
    const rows = parse(await downloaded(page, 'Download CSV')).slice(1);
    const [headings = []] = parse(await downloaded(page, 'Download CSV'));
    const at = headings.indexOf('cost_usd');
    const cost = rows.reduce((sum, row) => sum + Math.round(Number(row[at]) * 1e6), 0);
    expect(await spent_micros(person)).toBe(cost);
  });

  test('it pauses after the rows that were sent, goes on, and starts over only when that is confirmed', async () => {
    const person = await customer();
    // Its bar has one line, with Run at the end.
    await using opened = await open(person, { ...DESKTOP, name: 'wide', width: 1600 });
    const { page } = opened;
    await give(page, 'tickets.csv', CSV);
    await page.getByText(NUMBER).waitFor();
    gate = new Gate();
    await button(page, 'Run').click();
    await gate.reached;
    await button(page, 'Running').waitFor();
    // The second click of a double click.
    await page.mouse.down();
    await page.mouse.up();
    await button(page, 'Pause').click();
    gate.open();
    gate = null;
    await button(page, 'Go on').waitFor();
    // So many are in the first request.
    await page.getByText('32 rows answered').waitFor();
    expect(await page.getByLabel('Record').isDisabled()).toBe(true);
    await button(page, 'Go on').click();
    await page.getByText(`${ANSWERED} rows answered · 1 with errors`).waitFor();
    await button(page, 'Start over').click();
    await button(page, 'Delete the answers').click();
    await button(page, 'Run').waitFor();
    expect(await page.getByLabel('Record').isDisabled()).toBe(false);
    expect(await page.getByText('rows answered').count()).toBe(0);
  });

  test('the answers of a file are never those of another one that another tab has put in its place', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    const batch = page.url();
    const another = async () => {
      const tab = await page.context().newPage();
      await tab.goto(batch);
      return tab;
    };
    const replaced = page.getByText('was replaced in another tab');
    await give(page, 'alpha.csv', CSV);
    await page.getByText(NUMBER).waitFor();
    const beside = await another();
    await button(beside, 'Another file').click();
    await give(beside, 'beta.csv', 'message\nOne\nTwo\n');
    await beside.getByText(NUMBER).waitFor();
    await button(page, 'Run').click();
    await replaced.waitFor();
    // Nothing is paid for without a word.
    await button(page, 'Run').waitFor();
    expect(await spent_micros(person)).toBe(0);
    await button(page, 'Run').click();
    await page.getByText(`${ANSWERED} rows answered · 1 with errors`).waitFor();
    await replaced.waitFor();

    const other = await another();
    await other.getByText('2 rows, 1 column').waitFor();
    await other.getByText(NUMBER).waitFor();
    expect(await other.getByText('rows answered').count()).toBe(0);
    // Nor does the first tab remove what is not its own.
    await button(page, 'Another file').click();
    await button(page, 'Delete the answers').click();
    await page.getByText('Drop a CSV or JSONL file here').waitFor();
    await other.reload();
    await other.getByText('2 rows, 1 column').waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('a run at its end is told that another tab has replaced it, and its answers can be saved before they go', async () => {
    await using opened = await open(reader);
    const { page } = opened;
    const beside = await page.context().newPage();
    await beside.goto(page.url());
    await beside.getByText('Drop a CSV or JSONL file here').waitFor();
    await give(page, 'alpha.csv', CSV);
    await page.getByText(NUMBER).waitFor();
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await give(beside, 'beta.csv', 'message\nOne\nTwo\n');
    await beside.getByText(NUMBER).waitFor();
    await comeBack(opened);
    await page.getByText('was replaced in another tab').waitFor();
    await Promise.all([
      page.waitForEvent('dialog').then((question) => question.dismiss()),
      page.evaluate('location.reload()'),
    ]);
    const [, ...rows] = parse(await downloaded(page, 'Download CSV'));
    expect(rows).toHaveLength(ROWS);
    expect(opened.complaints).toEqual([]);
  });

  test('a run pauses as soon as another tab starts over with other choices', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    const many = ['message', ...Array.from({ length: 80 }, (_, at) => `Row ${at}`)].join('\n');
    await give(page, 'many.csv', many);
    await questions(page).selectOption('example Support message');
    await page.getByText(NUMBER).waitFor();
    gate = new Gate();
    await button(page, 'Run').click();
    await gate.reached;
    const beside = await page.context().newPage();
    await beside.goto(page.url());
    await questions(beside).selectOption('example Product review');
    await beside.getByText(NUMBER).waitFor();
    gate.open();
    gate = null;
    await page.getByText('was replaced in another tab').waitFor();
    await button(page, 'Go on').waitFor();
    await page.getByText('32 rows answered').waitFor();
    await beside.reload();
    await beside.getByText(NUMBER).waitFor();
    expect(await questions(beside).inputValue()).toBe('example Product review');
    expect(await beside.getByText('rows answered').count()).toBe(0);
    expect(opened.complaints).toEqual([]);
  });

  test('questions are those of saved requests, and stay chosen', async () => {
    const person = await customer();
    await using opened = await visit(made, `/console/o/${person.organization_id}/playground`, { person });
    const { page } = opened;
    await button(page, 'Product review').click();
    await page.getByRole('button', { name: 'Saved requests' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('My questions');
    await page.getByRole('dialog').getByRole('button', { name: 'Save this request' }).click();
    await page.getByRole('button', { name: 'Saved requests (1)' }).waitFor();
    await page.getByRole('link', { name: 'Batch' }).click();
    await give(page, 'lines.jsonl', '{"text":"It is great."}\n\n{"text":"It broke.","stars":1}\n');
    await page.getByText('2 rows, 2 columns').waitFor();
    expect(await page.getByLabel('Record').inputValue()).toBe('=text');
    expect(await questions(page).inputValue()).toBe('saved My questions');
    await page.getByLabel('Record').selectOption('*');
    await page.getByText('{"text":"It broke.","stars":1}').waitFor();
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    await page.getByRole('link', { name: 'Batch' }).click();
    await page.getByText('2 rows, 2 columns').waitFor();
    expect(await page.getByLabel('Record').inputValue()).toBe('*');
    expect(opened.complaints).toEqual([]);
  });

  test('a run that the credit ends says so, and goes on after a top-up', async () => {
    const person = await addPerson(made, { email: 'poor@example.com' });
    const { organization_id, default_project_id: project_id } = person;
    const { accounts } = made.service;
    await creditByHand(accounts, OPERATOR, { organization_id, amount_micros: 5_000_000 });
    await createKey(accounts, OPERATOR, { project_id, name: 'Batches' });
    await made.service.execute(
      `UPDATE organizations SET credit_micros = 200 WHERE id = '${organization_id}'`,
    );
    await using opened = await open(person);
    const { page } = opened;
    await give(page, 'tickets.csv', CSV);
    await page.getByText('The credit may not be enough for all rows.').waitFor();
    await button(page, 'Run').click();
    await page.getByText('The run has stopped.').waitFor();
    await page.getByRole('link', { name: 'Add credit' }).waitFor();
    await creditByHand(accounts, OPERATOR, { organization_id, amount_micros: 5_000_000 });
    await button(page, 'Go on').click();
    await page.getByText(`${ANSWERED} rows answered · 1 with errors`).waitFor();
  });

  test('a file that is no batch gets a sentence on what to mend', async () => {
    await using opened = await open(reader);
    const files: readonly (readonly [name: string, content: string | Uint8Array, sentence: string])[] = [
      [
        'tickets.xlsx',
        'PK',
        'tickets.xlsx is no CSV and no JSONL: its name must end in .csv,.tsv,.jsonl,.ndjson.',
      ],
      [
        'latin.csv',
        new Uint8Array([0x61, 0x0a, 0xe9]),
        'latin.csv is not a text in UTF-8: save it again as UTF-8.',
      ],
      ['empty.csv', '', 'empty.csv has no rows.'],
      ['only.csv', 'a,b\n', 'only.csv has no rows.'],
      ['short.csv', 'a,b\n1,2\n3\n', 'short.csv: line 3 has not as many cells as the first line.'],
      ['open.csv', 'a,b\n1,"2\n', 'open.csv: line 2 opens a quotation mark that is never closed.'],
      [
        'quote.csv',
        'a,b\n1,2"3"\n',
        'quote.csv: line 2 has a quotation mark within a cell. It must be doubled, and the cell in quotation marks.',
      ],
      ['twice.csv', 'a,a\n1,2\n', 'twice.csv: two columns have the name "a". Give each a name of its own.'],
      ['bad.jsonl', '{"a":1}\n\n{"a":\n', 'bad.jsonl: line 3 is not a JSON object.'],
      ['list.jsonl', '[1]\n', 'list.jsonl: line 1 is not a JSON object.'],
    ];
    for (const [name, content, sentence] of files) {
      await give(opened.page, name, content);
      await opened.page.getByRole('alert').getByText(sentence, { exact: true }).waitFor();
    }
    expect(opened.complaints).toEqual([]);
  });

  test('nothing overflows and axe finds nothing', async () => {
    await using opened = await open(reader, PHONE);
    const { page } = opened;
    await page.getByText('Drop a CSV or JSONL file here').waitFor();
    await expectReadsWell(opened, 'batch-empty');
    await opened.show(PHONE);
    const name = `${'long'.repeat(30)}.csv`;
    await give(page, name, CSV.replace('amount', 'amount'.repeat(20)));
    await page.getByText(NUMBER).waitFor();
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await expectReadsWell(opened, 'batch');
    expect(opened.complaints).toEqual([]);
  });
});
