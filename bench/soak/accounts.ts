import { FIRST_CREDIT_MICROS } from '../../src/cli/initialize.ts';
import { MICROS_PER_DOLLAR } from '../../src/contract/money.ts';
import { textField } from '../../test/cli/support.ts';
import type { Client } from './observed.ts';
import type { Served } from './served.ts';

/** All clients, and the organizations that the operator tops up. */
export interface Accounts {
  /** Several organizations with several projects each. */
  readonly working: readonly Client[];
  readonly organizations: readonly string[];
  /** Clients with separate projects, so that their unseen charges can be told apart. */
  readonly leaving: Client;
  readonly huge: Client;
  readonly crowd: Client;
  /** A client whose organization may ask twice a second. */
  readonly limited: Client;
  readonly unpaid: Client;
  readonly spent: Client;
  /** The initial credit of all organizations. */
  readonly credit_micros: number;
  /** The project whose keys change. */
  readonly changing_project_id: string;
}

const UNLIMITED = ['--requests-per-minute', '1000000', '--tokens-per-minute', '1000000000'];
const PER_MINUTE = ['--requests-per-minute', '120', '--tokens-per-minute', '1000000'];
const ORGANIZATIONS = ['Harbour', 'Lamps', 'Parcels'] as const;
const CREDIT_DOLLARS = 500;

/** Fills a new data directory. */
export async function addAccounts(served: Served): Promise<Accounts> {
  await served.tds(['init']);
  let credit_micros = FIRST_CREDIT_MICROS;
  const organization = async (
    name: string,
    limits: readonly string[] = UNLIMITED,
    dollars = CREDIT_DOLLARS,
  ) => {
    const created = await served.tds(['org', 'create', name]);
    const id = textField(created, 'id');
    if (dollars > 0) await served.tds(['org', 'credit', id, String(dollars), '--force']);
    credit_micros += dollars * MICROS_PER_DOLLAR;
    await served.tds(['org', 'tier', id, ...limits]);
    return { id, project_id: textField(created, 'default_project_id') };
  };
  const project = async (organization_id: string, name: string) =>
    textField(await served.tds(['project', 'create', organization_id, name]), 'id');
  const client = async (kind: string, project_id: string): Promise<Client> => {
    const created = await served.tds(['key', 'create', project_id, `${kind} of ${project_id}`]);
    return { kind, key: textField(created, 'key'), project_id };
  };

  const working: Client[] = [];
  const organizations: string[] = [];
  for (const name of ORGANIZATIONS) {
    const { id, project_id } = await organization(name);
    organizations.push(id);
    working.push(await client('working', project_id));
    working.push(await client('working', await project(id, 'Second')));
  }
  const [first = ''] = organizations;
  const crowd = await organization('Crowd');
  const huge = await organization('Huge');
  const limited = await organization('Limited', PER_MINUTE);
  const unpaid = await organization('Unpaid', UNLIMITED, 0);
  const spent_project_id = await project(first, 'Spent');
  await served.tds(['project', 'limit', spent_project_id, '0']);
  return {
    working,
    organizations,
    leaving: await client('leaving', await project(first, 'Leaving')),
    huge: await client('huge', huge.project_id),
    crowd: await client('crowd', crowd.project_id),
    limited: await client('limited', limited.project_id),
    unpaid: await client('invalid', unpaid.project_id),
    spent: await client('invalid', spent_project_id),
    credit_micros,
    changing_project_id: await project(first, 'Changing keys'),
  };
}
