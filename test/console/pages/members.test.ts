import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { invite } from '../../../src/accounts/invitations.ts';
import { removeMember } from '../../../src/accounts/members.ts';
import { ROLES, type Role } from '../../../src/contract/roles.ts';
import { PAGE_VIEWS, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, mailedToken, type Person } from '../people.ts';
import { addMemberPerson, LATELY, visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser('the page of members', () => {
  const made = consoleInBrowser();
  let ada: Person;
  let members: Record<Role, Person>;
  let path: string;
  beforeAll(async () => {
    ada = await addPerson(made, { email: 'ada@example.com', name: 'Ada Lovelace' });
    const { organization_id } = ada;
    members = {
      owner: ada,
      admin: await addMemberPerson(made, organization_id, 'admin', 'Alan Admin'),
      developer: await addMemberPerson(made, organization_id, 'developer', 'Dan Developer'),
      billing: await addMemberPerson(made, organization_id, 'billing', 'Bea Billing'),
      reader: await addMemberPerson(made, organization_id, 'reader', 'Rita Reader'),
    };
    path = `/console/o/${organization_id}/members`;
  });

  const rolesNow = async () =>
    (await made.service.accounts.store.accounts.membersOf(ada.organization_id)).map(({ role }) => role);

  test.each([
    ['owner', 3 + 2 * 4],
    // Everybody but the owner, and leaving.
    ['admin', 1 + 2 + 2 * 3],
    ['developer', 1],
    ['billing', 1],
    ['reader', 1],
  ] as const)('offers a %s what the role allows, and no more', async (role, buttons) => {
    const { accounts } = made.service;
    const { organization_id } = ada;
    const { id: invitation_id } = await invite(accounts, OPERATOR, {
      organization_id,
      email: 'new.owner@example.com',
      role: 'owner',
    });
    await using opened = await visit(made, path, { person: members[role] });
    const { page } = opened;
    await page.getByRole('row', { name: 'Rita Reader' }).waitFor();
    const may_manage = role === 'owner' || role === 'admin';
    if (may_manage) await page.getByRole('cell', { name: 'new.owner@example.com', exact: true }).waitFor();
    else expect(await page.getByText('Open invitations').count()).toBe(0);
    // An owner besides: invite, and send again and revoke for the invitation of an owner. Titles sort for everybody.
    const offered = page.locator('main').getByRole('button').and(page.locator(':not(th) > button'));
    expect(await offered.count()).toBe(buttons);
    await page.getByRole('row', { name: 'Ada Lovelace' }).getByText('Owner').waitFor();
    expect(await page.getByRole('row', { name: 'Ada Lovelace' }).getByRole('button').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Leave the organization' }).count()).toBe(
      role === 'owner' ? 0 : 1,
    );
    await accounts.store.invitations.revokeInvitation(invitation_id, accounts.clock.now_ms());
    expect(opened.complaints).toEqual([]);
  });

  test('an owner invites, sends again and revokes', async () => {
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    await page.getByText('No open invitations').waitFor();
    await page.getByRole('button', { name: 'Invite a member' }).click();
    await dialog.getByLabel('Email address').fill('rita.reader@example.com');
    await dialog.getByRole('button', { name: 'Send invitation' }).click();
    await dialog.getByText('This user is already a member of the organization.').waitFor();
    await dialog.getByLabel('Email address').fill('grace@example.com');
    await dialog.getByLabel('Role').selectOption('Billing');
    await dialog.getByText('Tops up credit, and sees what a reader sees.').waitFor();
    await dialog.getByRole('button', { name: 'Send invitation' }).click();
    await page.getByText('An invitation is on its way to grace@example.com.').waitFor();
    const row = page.getByRole('row', { name: 'grace@example.com' });
    expect((await row.getByRole('cell').allTextContents()).slice(0, 4)).toEqual([
      'grace@example.com',
      'Billing',
      'Ada Lovelace',
      expect.stringMatching(LATELY),
    ]);
    const first = await mailedToken(made, 'grace@example.com');
    const read = async (token: string) =>
      (await ada.ask('/console/api/invitation/read', { body: { token } })).status;
    expect(await read(first)).toBe(200);

    await page.getByRole('button', { name: 'Send again the invitation to grace@example.com' }).click();
    await page.getByText('A new link is on its way to grace@example.com.').waitFor();
    const second = await mailedToken(made, 'grace@example.com');
    expect([await read(first), await read(second)]).toEqual([404, 200]);

    await page.getByRole('button', { name: 'Revoke the invitation to grace@example.com' }).click();
    await dialog.getByRole('button', { name: 'Revoke invitation' }).click();
    await page.getByText('The invitation to grace@example.com is revoked.').waitFor();
    await page.getByText('No open invitations').waitFor();
    expect(await read(second)).toBe(409);
    expect(opened.complaints.filter((complaint) => !complaint.includes('409'))).toEqual([]);
  });

  test('an owner changes roles and removes a member; the last owner is not offered to go', async () => {
    const guest = await addMemberPerson(made, ada.organization_id, 'reader', 'Gus Guest');
    await using opened = await visit(made, path, { person: ada });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    const leave = page.getByRole('button', { name: 'Leave the organization' });
    await page.getByRole('button', { name: 'Change the role of Gus Guest' }).click();
    expect(await dialog.getByRole('button', { name: 'Change role' }).isDisabled()).toBe(true);
    expect(await dialog.getByRole('option').count()).toBe(ROLES.length);
    expect(await leave.count()).toBe(0);
    await dialog.getByLabel('Role').selectOption('Owner');
    await dialog.getByRole('button', { name: 'Change role' }).click();
    await page.getByText('Gus Guest is now owner.').waitFor();
    // There are two owners now.
    await leave.waitFor();
    const invited = { email: 'friend.of.gus@example.com', role: 'owner' };
    await guest.ask(`/console/api/organizations/${ada.organization_id}/invitations`, { body: invited });
    await page.reload();
    const invitation = page.getByRole('row', { name: invited.email });
    await invitation.waitFor();
    await page.getByRole('button', { name: 'Remove Gus Guest' }).click();
    await dialog.getByText(guest.email).getByText('open invitations that they sent end').waitFor();
    await dialog.getByRole('button', { name: 'Remove member' }).click();
    await page.getByText('Gus Guest is removed.').waitFor();
    expect(await page.getByRole('row', { name: 'Gus Guest' }).count()).toBe(0);
    await invitation.waitFor({ state: 'detached' });
    expect(await rolesNow()).toEqual(['owner', 'admin', 'developer', 'billing', 'reader']);
    await leave.waitFor({ state: 'detached' });
    expect(opened.complaints).toEqual([]);
  });

  test('an admin may not make owners, and who gives up the own role loses its buttons at once', async () => {
    const second = await addMemberPerson(made, ada.organization_id, 'admin', 'Amy Admin');
    await using opened = await visit(made, path, { person: second });
    const { page } = opened;
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Change the role of Amy Admin' }).click();
    expect(await dialog.getByRole('option', { name: 'Owner' }).count()).toBe(0);
    await dialog.getByLabel('Role').selectOption('Reader');
    await dialog.getByText('This is your own role.').waitFor();
    await dialog.getByRole('button', { name: 'Change role' }).click();
    await page.getByRole('button', { name: 'Invite a member' }).waitFor({ state: 'detached' });
    expect(await page.getByText('Open invitations').count()).toBe(0);
    await page.getByRole('button', { name: 'Leave the organization' }).click();
    await dialog.getByRole('button', { name: 'Leave organization' }).click();
    await page.getByText('You have left Ada Lovelace.').waitFor();
    expect(new URL(page.url()).pathname).not.toContain(ada.organization_id);
    expect(await rolesNow()).toEqual(['owner', 'admin', 'developer', 'billing', 'reader']);
    await page.goto(`${made.service.server.address}${path}`);
    await page.getByText('There is nothing here').waitFor();
    expect(opened.complaints).toEqual([]);
  });

  test('who was removed meanwhile is told that there is nothing', async () => {
    const gone = await addMemberPerson(made, ada.organization_id, 'admin', 'Gil Gone');
    await using opened = await visit(made, path, { person: gone });
    const { page } = opened;
    const { organization_id } = ada;
    await page.getByRole('button', { name: 'Remove Rita Reader' }).click();
    await removeMember(made.service.accounts, OPERATOR, { organization_id, user_id: gone.user_id });
    await page.getByRole('dialog').getByRole('button', { name: 'Remove member' }).click();
    await page.getByRole('dialog').getByText('There is no such organization.').waitFor();
    expect(await rolesNow()).toEqual(['owner', 'admin', 'developer', 'billing', 'reader']);
  });

  test('many members are shown in pages of 50, searched and sorted, and the last owner among them stays', async () => {
    const owner = await addPerson(made, {
      email: 'many@example.com',
      name: 'Owner of many',
      is_operator: true,
    });
    const { organization_id } = owner;
    for (let number = 1; number <= 60; number++) {
      const id = `user_many_${number}`;
      await made.service.execute(
        `INSERT INTO users (id, email, name, created_at_ms)
           VALUES ('${id}', 'm${number}@example.com', 'Member ${number}', ${number})`,
      );
      await made.service.execute(
        `INSERT INTO members (organization_id, user_id, role, created_at_ms)
           VALUES ('${organization_id}', '${id}', 'reader', ${number})`,
      );
    }
    await using opened = await visit(made, `/console/o/${organization_id}/members`, { person: owner });
    const { page } = opened;
    const members = page.getByRole('table', { name: 'Members' });
    await page.getByText('1–50 of 61').waitFor();
    expect(await members.getByRole('row').count()).toBe(1 + 50);
    await page.getByText('the last one cannot leave').waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('51–61 of 61').waitFor();
    const search = page.getByRole('searchbox', { name: 'Search members' });
    await search.fill('owner');
    await members.getByRole('row', { name: 'Owner of many' }).waitFor();
    expect(await members.getByRole('row').count()).toBe(1 + 1);
    expect(await members.getByRole('cell').getByRole('button').count()).toBe(0);
    await search.fill('m7@example reader');
    await members.getByRole('row', { name: 'Member 7' }).waitFor();
    await page.getByRole('button', { name: 'Remove Member 7' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove member' }).click();
    await page.getByRole('button', { name: 'Show all members' }).click();
    await page.getByText('1–50 of 60').waitFor();
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    expect((await members.locator('td.name').first().textContent())?.trim()).toBe('Member 1');

    await page.goto(`${made.origin}/console/operator/organizations/${organization_id}`);
    await page.getByText('1–50 of 60').waitFor();
    expect(await members.getByRole('row').count()).toBe(1 + 50);
    expect(opened.complaints).toEqual([]);
  });

  test('axe finds nothing serious, and nothing is wider than the screen', async () => {
    const { organization_id } = ada;
    for (const [email, role] of [
      ['grace@example.com', 'developer'],
      ['a.person.with.a.rather.long.name@department.example.com', 'owner'],
    ] as const) {
      await invite(
        made.service.accounts,
        { kind: 'user', user_id: ada.user_id },
        { organization_id, email, role },
      );
    }
    await using opened = await visit(made, path, { person: ada, view: PHONE });
    const { page } = opened;
    await page.getByRole('cell', { name: 'grace@example.com', exact: true }).waitFor();
    for (const view of PAGE_VIEWS) {
      await opened.show(view);
      await opened.photograph(`members-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      expect(await opened.overflows()).toBe(false);
      await page.getByRole('button', { name: 'Invite a member' }).click();
      await opened.photograph(`members-invite-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Change the role of Dan Developer' }).click();
      await page.getByRole('dialog').getByLabel('Role').selectOption('Admin');
      await opened.photograph(`members-role-${view.name}`);
      expect(await opened.seriousFindings()).toEqual([]);
      await page.keyboard.press('Escape');
    }
    expect(opened.complaints).toEqual([]);
  });
});
