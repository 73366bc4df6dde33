import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { Page } from 'playwright-core';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { projectFile } from '../../../src/files/project-root.ts';
import { creditByHand } from '../../../src/payments/credit.ts';
import { uncommittedProbability } from '../../../src/questions/noul.ts';
import { dayOf } from '../../../src/time/days.ts';
import { readTuning } from '../../../src/tuning/tuning-file.ts';
import { initializeData, tds } from '../../cli/support.ts';
import { expectDecision, expectError } from '../../contract/expectations.ts';
import { Gate, intercepted } from '../../support/faults.ts';
import { ALL_TYPES, post } from '../../support/requests.ts';
import { EMBEDDED_MODEL, MODEL_TEST_TIMEOUT_MS } from '../../support/service.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { DESKTOP, PHONE, type View } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { keywordEngine } from '../keyword-engine.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(2 * MODEL_TEST_TIMEOUT_MS);

/** The engine says yes and billing of `money`, and no and shipping of all others. So 30 of 40 are right. */
const CSV = [
  'message,refund,team',
  ...Array.from({ length: 20 }, (_, at) => `The zebra wants its money ${at},yes,billing`),
  ...Array.from({ length: 10 }, (_, at) => `The zebra waits ${at + 20},no,shipping`),
  ...Array.from({ length: 10 }, (_, at) => `The zebra counts money ${at + 30},no,`),
].join('\n');
const ROWS = 40;
const probabilityOfYes = (answer: unknown) =>
  uncommittedProbability(Value.Parse(Type.Object({ noul: Type.Number() }), answer).noul);

describeInBrowser('the Evaluate page', () => {
  /** The model waits at it while it is there. */
  let gate: Gate | null = null;
  const made = consoleInBrowser({
    embedded: true,
    cold: false,
    openEngine: (engine) =>
      intercepted(keywordEngine(engine), async (run) => {
        await gate?.pass();
        return await run();
      }),
  });

  let count = 0;
  /** Somebody with credit and a key. */
  async function customer(): Promise<Person & { readonly key: string }> {
    const person = await addPerson(made, { email: `person${++count}@example.com` });
    const { organization_id, default_project_id: project_id } = person;
    await creditByHand(made.service.accounts, OPERATOR, { organization_id, amount_micros: 25_000_000 });
    const { key } = await createKey(made.service.accounts, OPERATOR, { project_id, name: 'Evaluations' });
    return { ...person, key };
  }

  const open = (person: Person, view: View = DESKTOP) =>
    visit(made, `/console/o/${person.organization_id}/evaluate`, { person, view });
  const give = (page: Page, name: string, content: string) =>
    page.getByLabel('Choose file').setInputFiles({
      name,
      mimeType: 'text/csv',
      buffer: Buffer.from(content),
    });
  const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const part = (page: Page, name: string) => page.getByRole('region', { name, exact: true });

  async function spent_micros({ organization_id }: Person): Promise<number> {
    const found = await made.service.accounts.store.accounts.findOrganization(organization_id);
    return 25_000_000 - (found?.credit_micros ?? Number.NaN);
  }

  const NUMBER = /([\d,]+) tokens? · \$([\d.]+)/;

  /** Gives the file with the example's questions, whose ids are its columns. */
  async function prepare(page: Page, csv = CSV): Promise<void> {
    await give(page, 'tickets.csv', csv);
    await page.getByRole('combobox', { name: 'Questions' }).selectOption('example Support message');
    await page.getByText(NUMBER).waitFor();
  }

  test('a table of records with right answers is asked at the told price, measured, and read cell by cell', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await prepare(page);
    expect(await page.getByLabel('Record').inputValue()).toBe('=message');
    expect(await page.getByLabel('Right answer: team').inputValue()).toBe('=team');
    expect(await page.getByLabel('Right answer: urgency').inputValue()).toBe('*');
    const told_usd = Number(NUMBER.exec((await page.getByText(NUMBER).textContent()) ?? '')?.[2]);
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    const spent = await spent_micros(person);
    expect(spent).toBeGreaterThan(0);
    // A row of each length stands for the others.
    expect(Math.abs(told_usd * 1e6 - spent) / spent).toBeLessThan(0.15);

    // 30 of 40 by Wilson, and 30 of 30.
    await page.getByText('59.8% to 85.8%').first().waitFor();
    await page.getByText('88.6% to 100.0%').waitFor();
    await part(page, 'Confusion matrix').getByRole('button', { name: 'No answered as Yes: 10' }).click();
    await page.getByRole('heading', { name: 'No answered as Yes (10)' }).waitFor();
    await part(page, 'No answered as Yes').getByText('The zebra counts money 30').waitFor();
    await button(page, 'All wrong answers').click();
    await page.getByRole('heading', { name: 'Wrong answers (10)' }).waitFor();
    await part(page, 'Confusion matrix').getByRole('button', { name: 'Yes answered as Yes: 20' }).click();
    await page.getByRole('heading', { name: 'Yes answered as Yes (20)' }).waitFor();

    // The ten wrong ones are the least sure of those with yes: a number takes sureness away.
    const automatic = part(page, 'Automatic answers');
    await automatic.getByText(/77.5% of the answers, .* Wrong among them: 1\./).waitFor();
    await automatic.getByRole('slider').fill('0');
    await automatic.getByText(/75.0% of the answers, .* Wrong among them: 0\./).waitFor();
    await automatic.getByRole('slider').press('End');
    await automatic.getByText(/100.0% of the answers, .* Wrong among them: 10\./).waitFor();

    await button(page, 'team').click();
    await page.getByText('Every answer is right').waitFor();
    expect(JSON.stringify(await made.service.everything())).not.toContain('zebra');
    expect(opened.complaints).toEqual([]);
  });

  test('a page that is left in the middle goes on, pauses, and keeps its results', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await prepare(page);
    gate = new Gate();
    await button(page, 'Run').click();
    await gate.reached;
    await page.reload();
    gate.open();
    gate = null;
    await page.getByRole('button', { name: /^(Run|Go on)$/ }).click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await page.reload();
    await page.getByText(`${ROWS} rows answered`).waitFor();
    await page.getByText('59.8% to 85.8%').first().waitFor();
    expect(await page.getByLabel('Right answer: team').isDisabled()).toBe(true);
    await button(page, 'Start over').click();
    await button(page, 'Delete the answers').click();
    await button(page, 'Run').waitFor();
    expect(await page.getByText('59.8% to 85.8%').count()).toBe(0);
  });

  test('no tuning is fitted on answers that another tab got for other rows', async () => {
    await using opened = await open(await customer());
    const { page } = opened;
    await prepare(page);
    const beside = await page.context().newPage();
    await beside.goto(page.url());
    await button(beside, 'Another file').click();
    await prepare(beside, CSV.replaceAll('yes,billing', 'no,shipping'));
    await button(page, 'Run').click();
    await page.getByText('was replaced in another tab').waitFor();
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await beside.reload();
    await beside.getByText(NUMBER).waitFor();
    expect(await button(beside, 'Tune on these answers').count()).toBe(0);
    expect(opened.complaints).toEqual([]);
  });

  test('a cases file of tds eval has its own questions, each row its own', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await give(page, 'cases.jsonl', await Bun.file(projectFile('src/eval/example-cases.jsonl')).text());
    await page.getByText('The file has its questions').waitFor();
    expect(await page.getByRole('combobox', { name: 'Questions' }).count()).toBe(0);
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await page.getByText('12 rows answered').waitFor();
    await page.getByRole('cell', { name: 'Does the customer ask for money back?' }).waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('hundreds of questions of a file are shown in pages, and each can be chosen', async () => {
    await using opened = await open(await customer());
    const { page } = opened;
    const cases = Array.from({ length: 120 }, (_, at) => {
      const question = { type: 'noul', instructions: `Is it number ${at}?`, answer: at % 2 === 0 };
      return JSON.stringify({ src: 'made', state: `The zebra counts money ${at}`, questions: [question] });
    });
    await give(page, 'cases.jsonl', cases.join('\n'));
    await page.getByText('The file has its questions').waitFor();
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    const questions = page.getByRole('table', { name: 'Questions' });
    await questions.waitFor();
    expect(await questions.getByRole('row').count()).toBe(51);
    const pages = page.getByRole('navigation', { name: 'Pages of Questions' });
    await pages.getByRole('button', { name: 'Next' }).click();
    await pages.getByRole('button', { name: 'Next' }).click();
    await pages.getByText('101–120 of 120').waitFor();
    await button(page, 'Is it number 119?').click();
    await page.getByRole('heading', { name: 'Is it number 119?' }).waitFor();
    await questions.getByRole('button', { name: 'Accuracy' }).click();
    await pages.getByText('1–50 of 120').waitFor();
    expect(await questions.getByRole('row').nth(1).textContent()).toContain('0.0%');
    expect(opened.complaints).toEqual([]);
  });

  test('corrections are fitted in the browser, and tds model add takes their file', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await prepare(page);
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    const spent = await spent_micros(person);
    await button(page, 'Tune on these answers').click();
    const tune = part(page, 'Tune');
    // The words "wants" and "counts" tell the answer, which the engine does not see.
    await tune.getByRole('row', { name: /^refund 40 75\.0% → 100\.0% .* shift, words/ }).waitFor();
    await tune.getByRole('row', { name: /^team 30 100\.0% → 100\.0%/ }).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      button(page, 'Download the tuning').click(),
    ]);
    expect(file.suggestedFilename()).toBe('tickets.tuning');
    expect(await spent_micros(person)).toBe(spent);
    const path = await file.path();
    const text = await Bun.file(path).text();
    const { facts } = await EMBEDDED_MODEL.engine();
    expect(readTuning(text).header).toMatchObject({
      weights_sha256: facts.weights_sha256,
      profile: facts.profile,
      model: 'decision-1',
      fitted_on: { records: ROWS },
    });
    expect(text).not.toContain('zebra');
    await using directory = await temporaryDirectory();
    const data = join(directory.path, 'data');
    await initializeData(data);
    expect(await tds(['model', 'add', 'support-1', '--tuning', path, '--data', data])).toMatchObject({
      code: 0,
      stdout: 'Added support-1, which is open.\n',
    });
    expect(await opened.seriousFindings()).toEqual([]);
    expect(opened.complaints).toEqual([]);
  });

  test('no correction is fitted for other weights than those that answered', async () => {
    await using opened = await open(await customer());
    const { page } = opened;
    await prepare(page);
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await page.route('**/models/tuning-base?*', async (route) => {
      const response = await route.fetch();
      const { base } = await response.json();
      await route.fulfill({ response, json: { base: { ...base, weights_sha256: '0'.repeat(64) } } });
    });
    await button(page, 'Tune on these answers').click();
    await page.getByText('decision-1 has other weights').waitFor();
    await page.unroute('**/models/tuning-base?*');
    // It may be unloaded meanwhile.
    await page.route('**/models/tuning-base?*', (route) => route.fulfill({ json: { base: null } }));
    await button(page, 'Tune on these answers').click();
    await button(page, 'Download the tuning').waitFor();
  });

  test('corrections become a model of the organization, which the playground and the API ask, and which is removed', async () => {
    const person = await customer();
    await using opened = await open(person);
    const { page } = opened;
    await prepare(page);
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await button(page, 'Tune on these answers').click();
    const name = page.getByLabel('Name of the model');
    await name.waitFor();
    expect(await name.inputValue()).toBe('tickets-1');
    await name.fill('two words');
    await button(page, 'Add to models').click();
    await page.getByRole('alert').getByText('A name has 1 to 60 letters').waitFor();
    await name.fill('tickets-1');
    await button(page, 'Add to models').click();
    const id = `${person.organization_id}:tickets-1`;
    await page.getByText(`${id} is added.`).waitFor();
    expect([await opened.overflows(), await opened.seriousFindings()]).toEqual([false, []]);

    await page.getByRole('link', { name: 'Ask it in the playground' }).click();
    const sent = page.waitForRequest(
      (request) => request.method() === 'POST' && /\/playground\/key_\w+$/.test(request.url()),
    );
    await button(page, 'Run').click();
    const body: { questions: object } = JSON.parse((await sent).postData() ?? '');
    expect(body).toMatchObject({ model: id, state: 'The zebra wants its money 0' });
    await page.getByText('The answers are there').waitFor();

    const answers = async (model: string) => {
      const questions = { ...body.questions, urgency: ALL_TYPES.urgency };
      const request = { ...body, model, state: 'The zebra counts money 30', questions };
      return (await expectDecision(await post(made.service, person.key, request))).answers;
    };
    const [base, tuned] = [await answers('decision-1'), await answers(id)];
    expect(probabilityOfYes(base.refund)).toBeGreaterThan(0.5);
    expect(probabilityOfYes(tuned.refund)).toBeLessThan(0.5);
    expect(tuned.urgency).toEqual(base.urgency);

    await page.getByRole('link', { name: 'Models', exact: true }).first().click();
    await button(page, `Remove ${id}`).waitFor();
    expect(await button(page, `Compare the answers of ${id}`).count()).toBe(0);
    const counts = [{ question: 0, class: 1, answers: 500 }];
    const { store, clock } = made.service.accounts;
    await store.catalog.addAnswerCounts(id, dayOf(clock.now_ms()), counts);
    await page.reload();
    await page.setViewportSize(PHONE);
    await page.getByText(/Moved index \d\.\d+ on 1 of 1 question/).waitFor();
    await button(page, `Compare the answers of ${id}`).click();
    await page.getByRole('dialog').getByRole('row', { name: /^yes/ }).getByText('100.0%').waitFor();
    expect([await opened.overflows(), await opened.seriousFindings()]).toEqual([false, []]);
    await opened.photograph('drift-phone');
    await page.keyboard.press('Escape');
    expect([await opened.overflows(), await opened.seriousFindings()]).toEqual([false, []]);
    await opened.photograph('models-phone');
    await button(page, `Remove ${id}`).click();
    await button(page, 'Remove model').click();
    await page.getByText(`${id} is removed.`).waitFor();
    expect(await button(page, `Remove ${id}`).count()).toBe(0);
    await expectError(
      await post(made.service, person.key, { ...body, model: id }),
      'model_not_found',
      'model',
    );
    // The name that is none.
    expect(opened.complaints).toEqual([expect.stringContaining('name=two%20words')]);
  });

  test('labels that cannot be used are told before anything is paid', async () => {
    await using opened = await open(await customer());
    const { page } = opened;
    await give(page, 'cut.jsonl', '{"text":"a","team":"billing"}\n{"text":"b","te');
    await page
      .getByRole('alert')
      .getByText('cut.jsonl: line 2 is not a JSON object: the file ends in the middle of it.')
      .waitFor();
    await prepare(page, `${CSV}\nThe zebra eats,perhaps,zoo\n,yes,billing`);
    await page.getByText(`${ROWS} rows are asked.`).waitFor();
    await page.getByText('none of its options: 1, the first is "zoo" in row 41').waitFor();
    await page.getByText('Rows without a record: 1, the first is row 42.').waitFor();
    await page.getByLabel('Right answer: team').selectOption('*');
    await page.getByLabel('Right answer: refund').selectOption('=message');
    await page.getByText('No row has a right answer: choose its column.').waitFor();
    expect(await button(page, 'Run').isDisabled()).toBe(true);
    expect(opened.complaints).toEqual([]);
  });

  test('nothing overflows and axe finds nothing', async () => {
    await using opened = await open(await customer(), PHONE);
    const { page } = opened;
    await page.getByText('Drop a CSV or JSONL file here').waitFor();
    await expectReadsWell(opened, 'evaluate-empty');
    await opened.show(PHONE);
    await prepare(page, CSV.replace('zebra wants', `zebra ${'wants'.repeat(60)}`));
    await button(page, 'Run').click();
    await page.getByText('All rows are done').waitFor({ state: 'attached' });
    await part(page, 'Reliability').getByText('As a table').click();
    await part(page, 'Confusion matrix').getByRole('button', { name: 'No answered as Yes: 10' }).click();
    await button(page, 'Tune on these answers').click();
    await button(page, 'Download the tuning').waitFor();
    await expectReadsWell(opened, 'evaluate');
    expect(opened.complaints).toEqual([]);
  });
});
