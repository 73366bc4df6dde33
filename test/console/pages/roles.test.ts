import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../../src/access/actor.ts';
import { invite } from '../../../src/accounts/invitations.ts';
import { createKey } from '../../../src/accounts/keys.ts';
import { addMember } from '../../../src/accounts/members.ts';
import { createOrganization } from '../../../src/accounts/organizations.ts';
import { ROLES, type Role } from '../../../src/contract/roles.ts';
import { projectFile } from '../../../src/files/project-root.ts';
import { startTopUp } from '../../../src/payments/credit.ts';
import { manualProvider } from '../../../src/payments/manual.ts';
import { consoleInBrowser, describeInBrowser } from '../in-browser.ts';
import { addPerson, type Person } from '../people.ts';
import { visit } from './visitor.ts';

setDefaultTimeout(120_000);

/** The fields of a `PageEntry` that the test needs. Its file would import the browser's types. */
interface Page {
  readonly path: string;
  readonly audience: string;
}
const { PAGES }: { readonly PAGES: readonly Page[] } = await import(
  projectFile('src/console/pages/pages.ts')
);

/** Who looks: a member with each role, a user with the operator's flag, and a user who is neither. */
type Reader = Role | 'operator' | 'stranger';
const READERS: readonly Reader[] = [...ROLES, 'operator', 'stranger'];

const MANAGERS: readonly Reader[] = ['owner', 'admin'];
const KEY_MAKERS: readonly Reader[] = ['owner', 'admin', 'developer'];
const PAYERS: readonly Reader[] = ['owner', 'admin', 'billing'];
const OPERATORS: readonly Reader[] = ['operator'];
const NOBODY: readonly Reader[] = [];

const NOT_FOUND = 'There is nothing here';
const FORBIDDEN = 'Your role does not allow this';

/** The expectations of a page, and its visitors. */
interface Row {
  readonly heading: string;
  /** The text of the loaded page. */
  readonly shows: string;
  /** The members who may see a page of an organization; every member by default. */
  readonly seers?: readonly Reader[];
  /** Its buttons that change something, and who of its readers is offered them. */
  readonly offers?: Readonly<Record<string, readonly Reader[]>>;
}

const IN = '/console/o/:organization_id';
const START: Row = { heading: 'Your organizations', shows: 'Acme' };
/** From there, somebody who is signed in is led to the start. */
const LED_TO_START: Row = { ...START };
const ROWS: Readonly<Record<string, Row>> = {
  '/console': START,
  '/console/sign-in': LED_TO_START,
  '/console/sign-up': LED_TO_START,
  '/console/verify': { heading: 'Verify your email address', shows: 'Email address' },
  '/console/reset': { heading: 'Reset your password', shows: 'Email address' },
  '/console/invitation': { heading: 'Join Acme', shows: 'is invited as reader' },
  '/console/account': {
    heading: 'Your account',
    shows: 'This one',
    offers: { 'Change password': READERS, 'Delete account…': READERS },
  },
  [`${IN}/overview`]: {
    heading: 'Overview',
    shows: 'All usage',
  },
  [`${IN}/playground`]: {
    heading: 'Playground',
    shows: 'a million input tokens',
    seers: KEY_MAKERS,
    offers: { Run: KEY_MAKERS },
  },
  [`${IN}/batch`]: { heading: 'Batch', shows: 'Drop a CSV or JSONL file here', seers: KEY_MAKERS },
  [`${IN}/evaluate`]: { heading: 'Evaluate', shows: 'Drop a CSV or JSONL file here', seers: KEY_MAKERS },
  [`${IN}/models`]: { heading: 'Models', shows: 'decision-1' },
  [`${IN}/keys`]: {
    heading: 'API keys',
    shows: 'Production',
    offers: { 'Create key': KEY_MAKERS, 'Revoke Production': MANAGERS },
  },
  [`${IN}/usage`]: { heading: 'Usage', shows: 'No requests in this time' },
  [`${IN}/billing`]: {
    heading: 'Billing',
    shows: 'Available',
    offers: { 'Start payment': PAYERS, 'Cancel…': PAYERS, 'How to pay': PAYERS },
  },
  [`${IN}/projects`]: {
    heading: 'Projects',
    shows: 'Default',
    offers: { 'Create project': MANAGERS, 'Edit Default': MANAGERS, 'Archive Default': MANAGERS },
  },
  [`${IN}/members`]: {
    heading: 'Members',
    shows: 'reader@example.com',
    offers: {
      'Invite a member': MANAGERS,
      'Remove reader': MANAGERS,
      'Change the role of reader': MANAGERS,
      'Change the role of owner': NOBODY,
      'Revoke the invitation to guest@example.com': MANAGERS,
      'Revoke the invitation to second.owner@example.com': ['owner'],
    },
  },
  [`${IN}/trail`]: { heading: 'Audit log', shows: 'Created an API key.', seers: ['owner'] },
  [`${IN}/settings`]: {
    heading: 'Organization settings',
    shows: 'Organization id',
    offers: {
      'Save name': MANAGERS,
      'Create an organization…': ROLES,
      'Leave organization…': ['admin', 'developer', 'billing', 'reader'],
    },
  },
  '/console/operator/organizations': { heading: 'Organizations', shows: 'Acme' },
  '/console/operator/organizations/:organization_id': {
    heading: 'Acme',
    shows: 'Created an API key.',
    offers: {
      'Give credit…': OPERATORS,
      'Take back…': OPERATORS,
      'Change limits…': OPERATORS,
      'Suspend…': OPERATORS,
      'Confirm the payment of $5.00': OPERATORS,
    },
  },
  '/console/operator/models': {
    heading: 'Models',
    shows: 'decision-1',
    offers: { 'Change the price of decision-1': OPERATORS, 'Close decision-1': OPERATORS },
  },
  '/console/operator/live': { heading: 'Live', shows: 'Requests per second' },
  '/console/operator/audit': {
    heading: 'Ledger audit',
    shows: 'Ledger audit',
    offers: { 'Audit now': OPERATORS },
  },
  '/console/operator/inbox': { heading: 'Inbox', shows: 'Payments to confirm' },
  '/console/operator/problems': { heading: 'Problems', shows: 'Look again' },
  '/console/operator/trail': { heading: 'Service audit log', shows: 'Service audit log' },
};

test('every page has a row, and every row is of a page', () => {
  expect(Object.keys(ROWS).sort()).toEqual(PAGES.map(({ path }) => path).sort());
});

describeInBrowser('every page, as every kind of reader', () => {
  const made = consoleInBrowser();
  let organization_id: string;
  let invitation_token: string;
  const people = new Map<Reader, Person>();
  beforeAll(async () => {
    const { accounts } = made.service;
    for (const reader of READERS) {
      const is_operator = reader === 'operator';
      people.set(reader, await addPerson(made, { email: `${reader}@example.com`, is_operator }));
    }
    const acme = await createOrganization(accounts, OPERATOR, { name: 'Acme' });
    organization_id = acme.id;
    for (const role of ROLES) {
      const user_id = people.get(role)?.user_id ?? '';
      await addMember(accounts, OPERATOR, { organization_id, user_id, role });
    }
    await createKey(accounts, OPERATOR, { project_id: acme.default_project_id, name: 'Production' });
    await startTopUp(accounts, OPERATOR, manualProvider, { organization_id, amount_micros: 5_000_000 });
    const asked = { organization_id, email: 'guest@example.com', role: 'reader' } as const;
    invitation_token = (await invite(accounts, OPERATOR, asked)).token;
    await invite(accounts, OPERATOR, { ...asked, email: 'second.owner@example.com', role: 'owner' });
  });

  test.each(READERS)('%s', async (reader) => {
    const person = people.get(reader);
    if (person === undefined) throw new Error(`${reader} is not signed in`);
    await using opened = await visit(made, '/console/account', { person });
    const { page } = opened;
    const main = page.locator('main');
    await main.getByRole('heading', { name: 'Your account', level: 1 }).waitFor();
    for (const { path, audience } of PAGES) {
      const row = ROWS[path];
      if (row === undefined) throw new Error(`add ${path} to ROWS`);
      const { heading, shows, seers = READERS, offers = {} } = row;
      const address = path.replace(':organization_id', organization_id);
      const token = path === '/console/invitation' ? `#token=${invitation_token}` : '';
      // As the browser's way back does it: a whole load for each page and reader would take most of the time.
      await page.evaluate(`history.pushState(null, '', ${JSON.stringify(address + token)});
        dispatchEvent(new PopStateEvent('popstate'))`);
      if (row === LED_TO_START) await page.waitForURL((url) => url.pathname !== path);
      const is_member = ROLES.some((role) => role === reader);
      const is_there =
        audience === 'organization' ? is_member : audience === 'operator' ? reader === 'operator' : true;
      if (!is_there || !seers.includes(reader)) {
        await main.getByText(is_there ? FORBIDDEN : NOT_FOUND, { exact: true }).waitFor();
        expect([path, await main.getByRole('button').count()]).toEqual([path, 0]);
      } else if ((row === START || row === LED_TO_START) && !is_member) {
        // Whose only organization is their own is led into it.
        await main.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
      } else {
        await main.getByRole('heading', { name: heading, level: 1 }).waitFor();
        await main.getByText(shows).first().waitFor();
        for (const [name, may] of Object.entries(offers)) {
          const button = main.getByRole('button', { name, exact: true });
          if (may.includes(reader)) await button.waitFor();
          else expect([path, name, await button.count()]).toEqual([path, name, 0]);
        }
        const closed = PAGES.filter((other) => !(ROWS[other.path]?.seers ?? READERS).includes(reader));
        for (const other of closed) {
          const link = main.locator(`a[href="${other.path.replace(':organization_id', organization_id)}"]`);
          expect([path, other.path, await link.count()]).toEqual([path, other.path, 0]);
        }
      }
      const operator_links = await page.getByRole('link', { name: 'Operator pages' }).count();
      if (reader !== 'operator') expect([path, operator_links]).toEqual([path, 0]);
    }
    expect(opened.complaints).toEqual([]);
  });
});
