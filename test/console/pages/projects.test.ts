import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { archiveProject, changeProject, createProject } from '../../../src/accounts/projects.ts';
import { monthOf } from '../../../src/time/month.ts';
import { post } from '../../support/requests.ts';
import { PAGE_VIEWS, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser('the page of projects', () => {
  const made = consoleInBrowser();
  let ada: Person;
  let path: string;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
    path = `/console/o/${ada.organization_id}/projects`;
  });

  /** Writes what a project has spent in this month, as charges do. */
  const spend = (project_id: string, spent_micros: number) => {
    const { db, clock } = made.service;
    db.$client
      .query('INSERT INTO project_months (project_id, month, spent_micros) VALUES (?, ?, ?)')
      .run(project_id, monthOf(clock.now_ms()), spent_micros);
  };

  test('an owner creates, renames, limits and archives a project, and reads how many keys end', async () => {
    const { accounts } = made.service;
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    await page.getByRole('row', { name: 'Default' }).getByText('$0.00, no limit').waitFor();

    await page.getByRole('button', { name: 'Create project' }).click();
    await dialog.getByLabel('Name').fill('Default');
    await dialog.getByRole('button', { name: 'Create project' }).click();
    await dialog.getByText('Another active project of the organization has this name.').waitFor();
    expect(await dialog.getByLabel('Name').getAttribute('aria-invalid')).toBe('true');
    await dialog.getByLabel('Name').fill('Chekout');
    await dialog.getByRole('button', { name: 'Create project' }).click();
    await page.getByText('Chekout is created.').waitFor();

    const project = (await accounts.store.accounts.findActiveProject(ada.organization_id, 'Chekout')) ?? {
      id: '',
    };
    spend(project.id, 8_500_000);
    await page.getByRole('button', { name: 'Edit Chekout' }).click();
    await dialog.getByLabel('Name').fill('Checkout');
    await dialog.getByLabel('Monthly spend limit').fill('ten dollars');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('Enter an amount such as 25 or 12.50.').waitFor();
    expect(await dialog.getByLabel('Name').inputValue()).toBe('Checkout');
    await dialog.getByLabel('Monthly spend limit').fill('10.5');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const row = page.getByRole('row', { name: 'Checkout' });
    await row.getByText('$8.50 of $10.50').waitFor();
    expect(await accounts.store.accounts.findProject(project.id)).toMatchObject({
      name: 'Checkout',
      spend_limit_micros: 10_500_000,
    });

    await page.getByRole('button', { name: 'Edit Checkout' }).click();
    expect(await dialog.getByLabel('Monthly spend limit').inputValue()).toBe('10.50');
    await dialog.getByLabel('Monthly spend limit').fill('');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('$8.50, no limit').waitFor();

    const { key } = await createKey(accounts, OPERATOR, { project_id: project.id, name: 'One' });
    await createKey(accounts, OPERATOR, { project_id: project.id, name: 'Two' });
    await page.reload();
    await page.getByRole('button', { name: 'Archive Checkout' }).click();
    await dialog.getByText('2 active keys end with it').waitFor();
    await dialog.getByRole('button', { name: 'Archive project' }).click();
    await page.getByText('Checkout is archived.').waitFor();
    expect(await page.getByRole('row').count()).toBe(2);
    expect((await post(made.service, key, '{}')).status).toBe(401);
    await page.getByRole('tab', { name: 'Archived' }).click();
    await row.getByText('$8.50').waitFor();
    await page.reload();
    await row.waitFor();
    expect(opened.complaints.filter((complaint) => !complaint.includes('409'))).toEqual([]);
  });

  test('a dialog stays until its form is answered, and tells why it was refused', async () => {
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    const answer = Promise.withResolvers<void>();
    await page.route('**/archive', async (route) => {
      await answer.promise;
      const error = { code: 'overloaded', message: 'Too much at once.', param: null };
      await route.fulfill({ status: 503, json: { error } });
    });
    await page.getByRole('button', { name: 'Create project' }).waitFor();
    await page.getByRole('link', { name: 'Members' }).click();
    await page.getByRole('heading', { name: 'Members' }).waitFor();
    await page.getByRole('link', { name: 'Projects' }).click();
    await page.getByRole('button', { name: 'Archive Default' }).click();
    await dialog.getByRole('button', { name: 'Archive project' }).click();
    await dialog.locator('form[data-kept=true]').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.goBack();
    expect(await dialog.getByRole('button', { name: 'Cancel' }).isDisabled()).toBe(true);
    answer.resolve();
    await dialog.getByText('Too much at once.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.goBack();
    await page.getByRole('heading', { name: 'Members' }).waitFor();
  });

  test('a dialog whose form gets no answer can be left after a while', async () => {
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    await page.clock.install();
    const dialog = page.getByRole('dialog');
    await page.route('**/archive', () => new Promise(() => {}));
    await page.getByRole('button', { name: 'Archive Default' }).click();
    await dialog.getByRole('button', { name: 'Archive project' }).click();
    await dialog.locator('form[data-kept=true]').waitFor();
    await page.clock.fastForward(15_000);
    await dialog.getByRole('button', { name: 'Cancel', disabled: false }).click();
    await dialog.waitFor({ state: 'hidden' });
  });

  test('a drag that begins in a field of a dialog loses nothing, and a click beside it closes it', async () => {
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    await page.getByRole('button', { name: 'Create project' }).click();
    const name = page.getByRole('dialog').getByLabel('Name');
    await name.fill('Typed already');
    const { x = 0, y = 0 } = (await name.boundingBox()) ?? {};
    await page.mouse.move(x + 40, y + 10);
    await page.mouse.down();
    await page.mouse.move(2, y + 10);
    await page.mouse.up();
    expect(await name.inputValue()).toBe('Typed already');
    await page.mouse.click(2, 2);
    await name.waitFor({ state: 'detached' });
  });

  test('many projects are searched by name, and sorted by their titles', async () => {
    const { accounts } = made.service;
    const { organization_id } = await addPerson(made, { email: 'many@example.com' });
    await addMember(accounts, OPERATOR, { organization_id, user_id: ada.user_id, role: 'owner' });
    for (const name of ['Project 10', 'Project 2', 'Project 33', 'Project 1']) {
      const { id: project_id } = await createProject(accounts, OPERATOR, { organization_id, name });
      if (name === 'Project 2') spend(project_id, 8_500_000);
    }
    await using opened = await visit(made, `/console/o/${organization_id}/projects`, { person: ada });
    const { page } = opened;
    const names = () => page.locator('td.name').allInnerTexts();
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    expect(await names()).toEqual(['Default', 'Project 1', 'Project 2', 'Project 10', 'Project 33']);
    const by_spend = page.getByRole('button', { name: 'Spent this month' });
    await by_spend.click();
    await by_spend.click();
    expect((await names())[0]).toBe('Project 2');
    const search = page.getByRole('searchbox', { name: 'Search projects' });
    await search.fill('33 PROJ');
    expect(await names()).toEqual(['Project 33']);
    await search.fill('nothing like it');
    await page.getByRole('button', { name: 'Show all projects' }).click();
    await page.getByRole('row', { name: 'Project 33' }).waitFor();
    // Now there are too few to search, but the rest is out of sight while the field has a text.
    await search.fill('project 1');
    await page.getByRole('button', { name: 'Archive Project 10' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Archive project' }).click();
    await page.getByRole('row', { name: 'Project 10' }).waitFor({ state: 'detached' });
    await search.fill('');
    await page.getByRole('row', { name: 'Project 33' }).waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('axe finds nothing serious, and nothing is wider than the screen', async () => {
    const { accounts } = made.service;
    const { organization_id } = ada;
    const amounts = [
      ['Checkout', 3_200_000, 10_000_000],
      ['Support inbox', 42_750_000, 50_000_000],
      ['Experiments of the research group', 5_000_000, 5_000_000],
      ['Imports', 150, null],
    ] as const;
    for (const [name, spent_micros, spend_limit_micros] of amounts) {
      const { id: project_id } = await createProject(accounts, OPERATOR, { organization_id, name });
      await changeProject(accounts, OPERATOR, { project_id, spend_limit_micros });
      await createKey(accounts, OPERATOR, { project_id, name: 'Server' });
      spend(project_id, spent_micros);
    }
    const { id } = await createProject(accounts, OPERATOR, { organization_id, name: 'Trial' });
    await archiveProject(accounts, OPERATOR, id);
    await using opened = await visit(made, path, { person: ada, view: PHONE });
    const { page } = opened;
    for (const view of PAGE_VIEWS) {
      await opened.show(view);
      await page.getByRole('row', { name: 'Support inbox' }).waitFor();
      if (view.width < 720) {
        const topOf = async (title: string) =>
          (await page.locator(`tr:has-text("Imports") td[data-title="${title}"]`).boundingBox())?.y;
        expect(await topOf('Active keys')).toBe(await topOf('Created'));
      }
      await opened.photograph(`projects-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      expect(await opened.overflows()).toBe(false);
      await page.getByRole('button', { name: 'Edit Checkout' }).click();
      await opened.photograph(`projects-edit-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Archive Checkout' }).click();
      await opened.photograph(`projects-archive-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('tab', { name: 'Archived' }).click();
      await page.getByRole('row', { name: 'Trial' }).waitFor();
      expect(await opened.seriousFindings()).toEqual([]);
      await page.getByRole('tab', { name: 'Active' }).click();
    }
    expect(opened.complaints).toEqual([]);
  });
});
