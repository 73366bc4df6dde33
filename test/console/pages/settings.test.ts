import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { expectReadsWell } from '../screens.ts';
import { addMemberPerson, visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser("the page of an organization's settings", () => {
  const made = consoleInBrowser();
  let ada: Person;
  let path: string;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
    path = `/console/o/${ada.organization_id}/settings`;
  });

  test('an owner renames the organization, founds another one, and is not offered to leave the only owner', async () => {
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    await page.getByText(ada.organization_id).waitFor();
    const name = page.getByLabel('Name', { exact: true });
    expect(await name.inputValue()).toBe('Ada Lovelace');
    await name.fill('Analytical Engines');
    await page.getByRole('button', { name: 'Save name' }).click();
    await page.getByText('The name is saved.').waitFor();
    await page.getByRole('button', { name: 'Organization: Analytical Engines' }).waitFor();
    await page.getByText('You are the only owner').waitFor();
    expect(await page.getByRole('button', { name: 'Leave organization…' }).count()).toBe(0);

    await page.getByRole('button', { name: 'Create an organization…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('Difference Engines');
    await dialog.getByRole('button', { name: 'Create organization' }).click();
    await page.getByRole('button', { name: 'Organization: Difference Engines' }).waitFor();
    const founded_id = new URL(page.url()).pathname.split('/')[3] ?? '';
    const { store } = made.service.accounts;
    expect(await store.accounts.findOrganization(founded_id)).toMatchObject({ name: 'Difference Engines' });
    expect(await store.accounts.roleOf({ organization_id: founded_id, user_id: ada.user_id })).toBe('owner');
    await page.getByRole('button', { name: 'Create key' }).waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('a reader sees the id, is not offered to rename, and leaves', async () => {
    const reader = await addMemberPerson(made, ada.organization_id, 'reader', 'Rita Reader');
    await using opened = await visit(made, path, { person: reader });
    const { page } = opened;
    await page.getByText(ada.organization_id).waitFor();
    expect(await page.getByRole('button', { name: 'Save name' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Leave organization…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Leave organization' }).click();
    await page.getByText(/^You have left /).waitFor();
    const { store } = made.service.accounts;
    const membership = { organization_id: ada.organization_id, user_id: reader.user_id };
    expect(await store.accounts.roleOf(membership)).toBeNull();
    await page.goto(`${made.service.server.address}${path}`);
    await page.getByText('There is nothing here').waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('axe finds nothing serious, and nothing is wider than the screen', async () => {
    await using opened = await visit(made, path, { person: ada, view: PHONE });
    await opened.page.getByText('You are the only owner').waitFor();
    await expectReadsWell(opened, 'settings');
    expect(opened.complaints).toEqual([]);
  });
});
