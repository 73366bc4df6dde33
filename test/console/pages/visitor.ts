import { OPERATOR } from '../../../src/access/actor.ts';
import { addMember } from '../../../src/accounts/members.ts';
import type { Role } from '../../../src/contract/roles.ts';
import { type ConsoleBrowser, type ConsolePage, DESKTOP, openPage, type View } from '../browser.ts';
import { addPerson, type Person, type TestConsole } from '../people.ts';

/** Gives a browser the session of that person. */
export async function carrySession(
  { page }: Pick<ConsolePage, 'page'>,
  { service }: TestConsole,
  { cookie }: Pick<Person, 'cookie'>,
): Promise<void> {
  const { hostname } = new URL(service.server.address);
  const cookies = cookie.split('; ').map((pair) => {
    const at = pair.indexOf('=');
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    return { name, value, domain: hostname, path: '/console', httpOnly: true };
  });
  await page.context().addCookies(cookies);
}

/** How a page is visited: by nobody, on a desk and in the shared browser unless something else is given. */
interface Visit {
  readonly person?: Pick<Person, 'cookie'>;
  readonly view?: View;
  readonly browser?: ConsoleBrowser;
}

/** Opens a path of the console in a fresh browser profile, signed in as that person if one is given. */
export async function visit(
  made: TestConsole,
  path: string,
  { person, view = DESKTOP, browser }: Visit = {},
): Promise<ConsolePage> {
  const opened = await (browser?.page(view) ?? openPage(view));
  if (person !== undefined) await carrySession(opened, made, person);
  await opened.page.goto(`${made.service.server.address}${path}`);
  return opened;
}

/** A time of this test, however long the machine took for what came since. */
export const LATELY = /^(just now|\d+ minutes? ago)$/;

/** The reader comes back to the page, which asks then what has changed. */
export async function comeBack({ page }: ConsolePage): Promise<void> {
  await page.evaluate("dispatchEvent(new Event('focus'))");
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
