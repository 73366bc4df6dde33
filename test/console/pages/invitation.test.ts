import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { addMember } from '../../../src/accounts/members.ts';
import type { SignUpRule } from '../../../src/console/people/sign-in.ts';
import { type ConsolePage, PHONE } from '../browser.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, mailedLink, PASSWORD, type Person } from '../people.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(120_000);

describeInBrowser.each([['open'], ['invited']] as const satisfies readonly (readonly [SignUpRule])[])(
  'an invitation, where sign-up is %s',
  (sign_up) => {
    const made = consoleInBrowser({}, { sign_up });
    let ada: Person;
    beforeAll(async () => {
      ada = await addPerson(made, { email: 'ada@example.com', name: 'Analytical Engines' });
    });

    /** Invites as the owner does, on the page of members; resolves with the link that is mailed. */
    const inviteByPage = async (email: string): Promise<string> => {
      const path = `/console/o/${ada.organization_id}/members`;
      await using opened = await visit(made, path, { person: ada });
      const { page } = opened;
      await page.getByRole('button', { name: 'Invite a member' }).click();
      await page.getByRole('dialog').getByLabel('Email address').fill(email);
      await page.getByRole('dialog').getByRole('button', { name: 'Send invitation' }).click();
      await page.getByText(`An invitation is on its way to ${email}.`).waitFor();
      return await mailedLink(made, email, 'invitation');
    };
    const open = async (link: string, person?: Person): Promise<ConsolePage> => {
      expect(link).toStartWith(made.service.server.address);
      const path = link.slice(made.service.server.address.length);
      return await visit(made, path, person === undefined ? { view: PHONE } : { person });
    };
    const seesOrganization = async ({ page }: ConsolePage) => {
      await page.getByText('You are now a member of Analytical Engines.').waitFor();
      await page.getByRole('button', { name: 'Organization: Analytical Engines' }).waitFor();
      expect(new URL(page.url()).pathname).toStartWith(`/console/o/${ada.organization_id}/`);
      await page.goto(`${made.service.server.address}/console/o/${ada.organization_id}/members`);
      await page.getByRole('row', { name: 'ada@example.com' }).getByText('Owner').waitFor();
    };

    test('a stranger follows the link, names a password, and sees the organization', async () => {
      const email = 'stranger@example.com';
      await using opened = await open(await inviteByPage(email));
      const { page } = opened;
      await page.getByRole('heading', { name: 'Join Analytical Engines' }).waitFor();
      await opened.photograph(`invitation-${sign_up}`);
      expect([await opened.seriousFindings(), await opened.overflows()]).toEqual([[], false]);
      expect(await page.getByLabel('Email address').inputValue()).toBe(email);
      const mails = made.mails.length;
      await page.getByLabel('Name').fill('Stella Stranger');
      await page.getByLabel('Password').fill('Password123');
      await page.getByRole('button', { name: 'Create account and join' }).click();
      await page.getByText('This password is one of the most common').waitFor();
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Create account and join' }).click();
      await seesOrganization(opened);
      expect(made.mails).toHaveLength(mails);
      // The link works once.
      await page.goto(await mailedLink(made, email, 'invitation'));
      await page.getByText('This invitation has ended').waitFor();
      expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
      await page.getByRole('link', { name: 'Go to your organizations' }).click();
      await page.getByRole('button', { name: 'Organization: ' }).waitFor();
    });

    test('a link that was cut says what may have happened, and what to do', async () => {
      const link = await inviteByPage('cut@example.com');
      await using opened = await open(link.slice(0, -5));
      await opened.page.getByText('This invitation link is not valid').waitFor();
      await opened.page.getByText('open it from the mail').waitFor();
      expect([await opened.seriousFindings(), await opened.overflows()]).toEqual([[], false]);
    });

    const whereOpen = test.if(sign_up === 'open');

    whereOpen('somebody with an account follows the link, signs in, and joins', async () => {
      const email = 'grace@example.com';
      await addPerson(made, { email, name: 'Grace Hopper' });
      await using opened = await open(await inviteByPage(email));
      const { page } = opened;
      await page.getByRole('link', { name: 'Sign in to join' }).click();
      await page.getByLabel('Email address').fill(email);
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('button', { name: 'Join' }).click();
      await seesOrganization(opened);
      expect(opened.complaints).toEqual([]);
    });

    whereOpen(
      'whoever is signed in with another address is told so, and goes on with the invited one',
      async () => {
        const email = 'right@example.com';
        const wrong = await addPerson(made, { email: 'wrong@example.com' });
        await addPerson(made, { email });
        await using opened = await open(await inviteByPage(email), wrong);
        const { page } = opened;
        await page.getByText('You are signed in as wrong@example.com.').waitFor();
        expect(await page.getByRole('button', { name: 'Join' }).count()).toBe(0);
        await page.getByRole('button', { name: 'Sign out' }).click();
        await page.getByRole('link', { name: 'Sign in to join' }).click();
        await page.getByLabel('Email address').fill(email);
        await page.getByLabel('Password').fill(PASSWORD);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('button', { name: 'Join' }).click();
        await seesOrganization(opened);
      },
    );

    test('somebody else who uses the browser where it was looked at does not find it', async () => {
      await using opened = await open(await inviteByPage('bob@example.com'));
      const { page } = opened;
      await page.getByRole('heading', { name: 'Join Analytical Engines' }).waitFor();
      const address = page.url();
      const next = await page.context().newPage();
      await page.close();
      await next.goto(address);
      await next.getByText('No invitation is open here').waitFor();
    });

    test('whoever is a member already is told so, and the browser forgets it', async () => {
      const email = 'member@example.com';
      const member = await addPerson(made, { email });
      const link = await inviteByPage(email);
      const { organization_id } = ada;
      const { user_id } = member;
      await addMember(made.service.accounts, OPERATOR, { organization_id, user_id, role: 'reader' });
      await using opened = await open(link, member);
      const { page } = opened;
      await page.getByRole('button', { name: 'Join' }).click();
      await page.getByText('This user is already a member of the organization.').waitFor();
      await page.goto(`${made.service.server.address}/console/invitation`);
      await page.getByText('No invitation is open here').waitFor();
    });

    test('the link opens nothing for another address', async () => {
      const link = await inviteByPage('invited@example.com');
      const token = new URLSearchParams(new URL(link).hash.slice(1)).get('token');
      const eve = await addPerson(made, { email: 'eve.other@example.com' });
      const taken = await eve.ask('/console/api/invitation/accept', { body: { token } });
      expect([taken.status, await taken.text()]).toEqual([403, expect.stringContaining('wrong_address')]);
    });
  },
);
