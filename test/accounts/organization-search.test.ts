import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import type { AccountContext } from '../../src/access/context.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { type OrganizationCursor, searchOrganizations } from '../../src/accounts/organization-search.ts';
import { createOrganization, setSuspended, setTierSettings } from '../../src/accounts/organizations.ts';
import { randomIdentifiers } from '../../src/contract/identifiers.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { DATABASES, type OpenDatabase } from '../store/databases.ts';
import { addEveryone, EVERYONE, outcome } from './everyone.ts';
import { TestClock } from './support.ts';

describe.each(DATABASES)('the operator’s search, $name', ({ open }) => {
  let database: OpenDatabase;
  let context: AccountContext;
  let acme: string;
  let project_id: string;
  let everyone: Awaited<ReturnType<typeof addEveryone>>;

  beforeEach(async () => {
    database = await open();
    context = { store: database.store, clock: new TestClock(), identifiers: randomIdentifiers };
    const created = await createOrganization(context, OPERATOR, { name: 'Acme 100%_off' });
    acme = created.id;
    project_id = created.default_project_id;
    everyone = await addEveryone(context, acme);
  });

  afterEach(() => database.close());

  const found = async (text: string) =>
    (await searchOrganizations(context, OPERATOR, { text })).items.map(({ name }) => name).sort();

  test.each(EVERYONE)('%s: the operator alone sees all organizations', async (who) => {
    expect(await outcome(() => searchOrganizations(context, everyone[who]))).toBe(
      who === 'operator' ? 'ok' : 'permission_denied',
    );
  });

  test('finds by a part of the name, of the id, or of the address of a member', async () => {
    await createOrganization(context, OPERATOR, { name: 'Ärzte' });
    // The ids are random: a text without a space may be in one of them.
    expect(await found('acme 100')).toEqual(['Acme 100%_off']);
    expect(await found(' Ärzte ')).toEqual(['Ärzte']);
    expect(await found(acme.slice(4))).toEqual(['Acme 100%_off']);
    expect(await found('Billing@EXAMPLE')).toEqual(['Acme 100%_off', 'billing']);
    expect(await found('stranger@')).toEqual(['stranger']);
    expect(await found('nobody')).toEqual([]);
  });

  test('takes the text as it is: it has no wildcards', async () => {
    expect(await found('100%_off')).toEqual(['Acme 100%_off']);
    expect(await found('%')).toEqual(['Acme 100%_off']);
    expect(await found('_')).toContain('Acme 100%_off');
    expect(await found('A%f')).toEqual([]);
    expect(await found("'; --\\")).toEqual([]);
  });

  test('tells credit, tier, limits, suspension, members and last use', async () => {
    await creditByHand(context, OPERATOR, { organization_id: acme, amount_micros: 5_000_000 });
    await setTierSettings(context, OPERATOR, acme, { requests_per_minute: 9 });
    await setSuspended(context, OPERATOR, { organization_id: acme, is_suspended: true });
    for (const at_ms of [7, 9, 8]) {
      const { id } = await createKey(context, OPERATOR, { project_id, name: 'k' });
      await context.store.keys.writeLastUsed(() => [{ key_id: id, at_ms }]);
    }
    const { items } = await searchOrganizations(context, OPERATOR, { text: 'acme 100' });
    expect(items).toMatchObject([
      {
        id: acme,
        credit_micros: 5_000_000,
        held_micros: 0,
        tier_in_force: 1,
        requests_per_minute: 9,
        limits: { requests_per_minute: 9, tokens_per_minute: 300_000 },
        suspended_at_ms: context.clock.now_ms(),
        members: 5,
        last_used_at_ms: 9,
      },
    ]);
    const [quiet] = (await searchOrganizations(context, OPERATOR, { text: 'stranger' })).items;
    expect(quiet).toMatchObject({ members: 1, last_used_at_ms: null, suspended_at_ms: null, limits: null });
  });

  test('pages miss nothing and repeat nothing, also of organizations that were made in the same millisecond', async () => {
    for (let number = 0; number < 5; number += 1) {
      await createOrganization(context, OPERATOR, { name: `New ${number}` });
    }
    const whole = (await searchOrganizations(context, OPERATOR)).items.map(({ id }) => id);
    const paged: string[] = [];
    let cursor: OrganizationCursor | null = null;
    do {
      const page: Awaited<ReturnType<typeof searchOrganizations>> = await searchOrganizations(
        context,
        OPERATOR,
        {
          cursor,
          limit: 4,
        },
      );
      paged.push(...page.items.map(({ id }) => id));
      cursor = page.next;
    } while (cursor !== null);
    expect(paged).toEqual(whole);
    expect(new Set(whole).size).toBe(12);
  });
});
