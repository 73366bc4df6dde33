import { OPERATOR } from '../../../src/accounts/actor.ts';
import { addMember } from '../../../src/accounts/members.ts';
import type { Role } from '../../../src/accounts/roles.ts';
import { type ConsoleBrowser, type ConsolePage, DESKTOP, type View } from '../browser.ts';
import { addPerson, type Person, type TestConsole } from '../people.ts';

/** Opens a path of the console in a fresh browser profile, signed in as that person if one is given. */
export async function visit(
  browser: ConsoleBrowser,
  { service }: TestConsole,
  path: string,
  { person, view = DESKTOP }: { readonly person?: Person; readonly view?: View } = {},
): Promise<ConsolePage> {
  const opened = await browser.page(view);
  if (person !== undefined) {
    const cookies = person.cookie.split('; ').map((pair) => {
      const at = pair.indexOf('=');
      return { name: pair.slice(0, at), value: pair.slice(at + 1) };
    });
    const { hostname } = new URL(service.server.address);
    await opened.page
      .context()
      .addCookies(cookies.map((cookie) => ({ ...cookie, domain: hostname, path: '/console' })));
  }
  await opened.page.goto(`${service.server.address}${path}`);
  return opened;
}

/** Somebody who is signed in and a member of an organization with that role. */
export async function addMemberPerson(
  made: TestConsole,
  organization_id: string,
  role: Role,
  name: string = role,
): Promise<Person> {
  const person = await addPerson(made, {
    email: `${name.toLowerCase().replaceAll(' ', '.')}@example.com`,
    name,
  });
  await addMember(made.service.accounts, OPERATOR, { organization_id, user_id: person.user_id, role });
  return person;
}
