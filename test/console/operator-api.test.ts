import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { addMember } from '../../src/accounts/members.ts';
import { setOperator } from '../../src/accounts/operators.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { startTopUp } from '../../src/payments/credit.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { dismissPaymentEvent } from '../../src/payments/resolve-event.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { eventId, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { eventually } from '../support/eventually.ts';
import { newEntryId } from '../support/money.ts';
import { post as postByKey, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, POLL_MS, type TestAccount } from '../support/service.ts';
import { addUpstreamModel } from '../support/upstream-model.ts';
import { addPerson, mailedToken, type Person, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(120_000);

const API = '/console/api/operator';

let made: TestConsole;
let people: Record<'operator' | 'owner' | 'stranger', Person>;
let account: TestAccount;

beforeAll(async () => {
  made = await startTestConsole();
  people = {
    operator: await addPerson(made, { email: 'operator@example.com', is_operator: true }),
    owner: await addPerson(made, { email: 'owner@example.com' }),
    stranger: await addPerson(made, { email: 'stranger@example.com' }),
  };
  account = await addAccount(made.service, { tier: 2 });
  const { organization_id } = account;
  const { user_id } = people.owner;
  await addMember(made.service.accounts, OPERATOR, { organization_id, user_id, role: 'owner' });
});
afterAll(() => made.close());
// An audit that a test began writes when it ends, which the next test could take for its own doing.
afterEach(async () => {
  const { audits } = made.service.service.services;
  await eventually(() => !audits.status(OPERATOR).is_running);
});

async function pendingPayment(organization_id = account.organization_id): Promise<string> {
  const given = { organization_id, amount_micros: 5_000_000 };
  return (await startTopUp(made.service.accounts, OPERATOR, manualProvider, given)).payment_id;
}

async function codeOf(response: Response): Promise<[status: number, code: string]> {
  const { error } = Value.Parse(ErrorResponseSchema, await response.json());
  return [response.status, error.code];
}

async function read(path: string): Promise<unknown> {
  const response = await people.operator.ask(`${API}${path}`);
  expect(response.status).toBe(200);
  return await response.json();
}

interface Tried {
  readonly method?: 'GET' | 'POST' | 'PATCH';
  readonly path: string | (() => string | Promise<string>);
  readonly body?: unknown;
}

const inOrganization = (path: string) => () => `/organizations/${account.organization_id}${path}`;

/** Every route of the operator; the last ones may change what the ones before need. */
const ROUTES: Readonly<Record<string, Tried>> = {
  'list organizations': { path: '/organizations' },
  'search organizations': { path: '/organizations?text=acme' },
  'see an organization': { path: inOrganization('') },
  'see its audit log': { path: inOrganization('/trail') },
  'enter credit': {
    method: 'POST',
    path: inOrganization('/credit'),
    body: { entry_id: 'entry_the_first_credit', amount_micros: 5_000_000, is_forced: false },
  },
  refund: {
    method: 'POST',
    path: inOrganization('/refund'),
    body: { entry_id: 'entry_the_first_refund', amount_micros: 1_000_000 },
  },
  'confirm a payment': {
    method: 'POST',
    path: async () => `/organizations/${account.organization_id}/payments/${await pendingPayment()}/confirm`,
  },
  'cancel a top-up': {
    method: 'POST',
    path: async () => `/organizations/${account.organization_id}/payments/${await pendingPayment()}/cancel`,
  },
  'set limits': { method: 'PATCH', path: inOrganization('/limits'), body: { requests_per_minute: 77 } },
  'invite an owner': {
    method: 'POST',
    path: inOrganization('/owner'),
    body: { email: 'the-owner@example.com' },
  },
  suspend: { method: 'POST', path: inOrganization('/suspension'), body: { is_suspended: true } },
  resume: { method: 'POST', path: inOrganization('/suspension'), body: { is_suspended: false } },
  'list models': { path: '/models' },
  'set a price': { method: 'POST', path: '/models/price', body: { id: 'decision-1', price_micros: 600_000 } },
  'close a model': { method: 'POST', path: '/models/close', body: { id: 'decision-1' } },
  'open a model': { method: 'POST', path: '/models/open', body: { id: 'decision-1' } },
  'reload a model': { method: 'POST', path: '/models/reload', body: { id: 'chat-1' } },
  'look at the service': { path: '/live' },
  'see the audit': { path: '/audit' },
  'audit now': { method: 'POST', path: '/audit' },
  'list problems': { path: '/problems' },
  'read the inbox': { path: '/inbox' },
  'see the audit log of the service': { path: '/trail' },
};

describe.each(Object.entries(ROUTES))('%s', (_, { method = 'GET', path, body }) => {
  const addressOf = async () => `${API}${typeof path === 'string' ? path : await path()}`;

  test.each(['owner', 'stranger'] as const)('is as nothing to: %s', async (who) => {
    const address = await addressOf();
    const before = await made.service.everything();
    const nothing = await people[who].ask(`${API}/nothing`, { method, body });
    const refused = await people[who].ask(address, { method, body });
    const shape = async (response: Response) => {
      const { error } = Value.Parse(ErrorResponseSchema, await response.json());
      return [response.status, error];
    };
    expect(refused.status).toBe(404);
    expect(await shape(refused)).toEqual(await shape(nothing));
    const broken = await people[who].ask(address, { method, ...(method === 'GET' ? {} : { body: {} }) });
    expect(await codeOf(broken)).toEqual([404, 'not_found']);
    const { sessions: _before, ...rest } = before;
    const { sessions: _after, ...after } = await made.service.everything();
    expect(after).toEqual(rest);
  });

  test('is done for an operator', async () => {
    const response = await people.operator.ask(await addressOf(), { method, body });
    expect([response.status, await response.text()]).toEqual([200, expect.stringMatching(/^\{.*\}$/)]);
  });
});

test('what the operator did stands in the audit log of the organization and of the service, with the operator', async () => {
  const actions = JSON.stringify(await read(`/organizations/${account.organization_id}/trail`));
  for (const action of ['credit.enter', 'credit.refund', 'top_up.confirm', 'organization.limits']) {
    expect(actions).toContain(`"${action}"`);
  }
  const AuditLog = Type.Object({
    items: Type.Array(
      Type.Object({
        action: Type.String(),
        by: Type.String(),
        user_id: Type.Union([Type.String(), Type.Null()]),
      }),
    ),
  });
  const { items } = Value.Parse(AuditLog, await read('/trail?action=model.price'));
  expect(items.map(({ action, by, user_id }) => [action, by, user_id])).toEqual([
    ['model.price', 'operator', people.operator.user_id],
  ]);
  expect(await codeOf(await people.operator.ask(`${API}/trail?action=nothing`))).toEqual([
    422,
    'invalid_request',
  ]);
});

test('the power ends with the next request when it is taken', async () => {
  const former = await addPerson(made, { email: 'former@example.com', is_operator: true });
  expect((await former.ask(`${API}/live`)).status).toBe(200);
  await setOperator(made.service.accounts, OPERATOR, { user_id: former.user_id, is_operator: false });
  expect((await former.ask(`${API}/live`)).status).toBe(404);
});

describe('an organization', () => {
  const Overview = Type.Object({
    credit_micros: Type.Integer(),
    tier_in_force: Type.Integer(),
    suspended_at_ms: Type.Union([Type.Integer(), Type.Null()]),
    dedicated: Type.Object({ tokens_per_minute: Type.Union([Type.Integer(), Type.Null()]) }),
    pending: Type.Array(Type.Object({ id: Type.String() })),
  });
  const overviewOf = async (id: string) => Value.Parse(Overview, await read(`/organizations/${id}`));

  test('is found by its id, its name and the address of a member, and pages miss none', async () => {
    const Page = Type.Object({
      items: Type.Array(Type.Object({ id: Type.String() })),
      next: Type.Union([Type.String(), Type.Null()]),
    });
    const search = async (text: string) => {
      const query = new URLSearchParams({ text });
      const { items } = Value.Parse(Page, await read(`/organizations?${query}`));
      return items.map(({ id }) => id);
    };
    expect(await search(account.organization_id)).toEqual([account.organization_id]);
    expect(await search('OWNER@example')).toContain(account.organization_id);
    for (let count = 0; count < 52; count += 1) await addAccount(made.service, { credit_dollars: 0 });
    const first = Value.Parse(Page, await read('/organizations'));
    const rest = Value.Parse(Page, await read(`/organizations?after=${first.next}`));
    expect(first.items).toHaveLength(50);
    expect(rest.next).toBeNull();
    const all = Value.Parse(
      Type.Array(Type.Object({ id: Type.String() })),
      await made.service.execute('SELECT id FROM organizations'),
    );
    const shown = [...first.items, ...rest.items].map(({ id }) => id);
    expect(shown.toSorted()).toEqual(all.map(({ id }) => id).toSorted());
  });

  test('without an owner gets one, who is invited by name before anybody paid', async () => {
    const { id } = await createOrganization(made.service.accounts, OPERATOR, { name: 'Ownerless Works' });
    const email = 'new-owner@example.com';
    const { operator } = people;
    const person = await addPerson(made, { email });
    made.mails.length = 0;
    expect((await operator.ask(`${API}/organizations/${id}/owner`, { body: { email } })).status).toBe(200);
    const token = await mailedToken(made, email);
    expect(made.mails.findLast(({ to }) => to === email)?.text).toContain('the organization Ownerless Works');
    expect((await person.ask('/console/api/invitation/accept', { body: { token } })).status).toBe(200);
    expect(await (await person.ask('/console/api/session')).json()).toMatchObject({
      organizations: expect.arrayContaining([
        { id, name: 'Ownerless Works', role: 'owner', is_suspended: false },
      ]),
    });
  });

  test('has its keys refused at once when it is suspended, and answered at once when that is lifted', async () => {
    const { organization_id, key } = await addAccount(made.service);
    const suspend = async (is_suspended: boolean) => {
      const path = `${API}/organizations/${organization_id}/suspension`;
      expect((await people.operator.ask(path, { body: { is_suspended } })).status).toBe(200);
    };
    const asked = async () => (await postByKey(made.service, key, '{')).status;
    expect(await asked()).toBe(400);
    await suspend(true);
    expect(await asked()).toBe(401);
    expect((await overviewOf(organization_id)).suspended_at_ms).not.toBeNull();
    await suspend(false);
    expect(await asked()).toBe(400);
  });

  test('gets credit to the micro-dollar, within the range of its tier unless it is forced', async () => {
    const { organization_id } = await addAccount(made.service, { credit_dollars: 5 });
    const enter = (amount_micros: number, is_forced = false) =>
      people.operator.ask(`${API}/organizations/${organization_id}/credit`, {
        body: { entry_id: newEntryId(), amount_micros, is_forced },
      });
    expect(await codeOf(await enter(26_000_000))).toEqual([422, 'top_up_out_of_range']);
    expect(await (await enter(26_000_001, true)).json()).toMatchObject({ credit_micros: 31_000_001 });
    const refund = (amount_micros: number) =>
      people.operator.ask(`${API}/organizations/${organization_id}/refund`, {
        body: { entry_id: newEntryId(), amount_micros },
      });
    expect(await codeOf(await refund(31_000_002))).toEqual([409, 'refund_exceeds_paid']);
    expect(await (await refund(31_000_001)).json()).toMatchObject({ credit_micros: 0 });
    expect((await overviewOf(organization_id)).credit_micros).toBe(0);
  });

  const ENTRIES = [
    ['credit', { amount_micros: 7_000_000, is_forced: false }, 32_000_000, 'credit.enter'],
    ['refund', { amount_micros: 7_000_000 }, 18_000_000, 'credit.refund'],
  ] as const;

  test.each(ENTRIES)(
    'gets one entry for one entry_id, sent at once or again: %s',
    async (what, entered, credit_micros, act) => {
      const { organization_id } = await addAccount(made.service);
      const body = { entry_id: newEntryId(), ...entered };
      const send = () => people.operator.ask(`${API}/organizations/${organization_id}/${what}`, { body });
      const rows = async (table: string) =>
        (await made.service.execute(`SELECT id FROM ${table} WHERE organization_id = '${organization_id}'`))
          .length;
      const before = [await rows('ledger_entries'), await rows('payments'), await rows('trail_entries')];
      const sent = [...(await Promise.all([send(), send(), send()])), await send()];
      for (const response of sent) {
        expect([response.status, await response.json()]).toEqual([200, { credit_micros, tier: 1 }]);
      }
      const after = [await rows('ledger_entries'), await rows('payments'), await rows('trail_entries')];
      expect(after).toEqual(before.map((count) => count + 1));
      const entries = JSON.stringify(await read(`/organizations/${organization_id}/trail`));
      expect(entries.split(`"${act}"`)).toHaveLength(what === 'credit' ? 3 : 2);
    },
  );

  test('gets nothing for an entry_id of another entry, and none without one', async () => {
    const { organization_id } = await addAccount(made.service);
    const other = await addAccount(made.service);
    const refund = { entry_id: newEntryId(), amount_micros: 7_000_000 };
    const credit = { ...refund, is_forced: false };
    const send = (what: string, body: unknown, id = organization_id) =>
      people.operator.ask(`${API}/organizations/${id}/${what}`, { body });
    expect((await send('credit', credit)).status).toBe(200);
    const before = await made.service.everything();
    for (const refused of [
      await send('credit', { ...credit, amount_micros: 7_000_001 }),
      await send('refund', refund),
      await send('credit', credit, other.organization_id),
    ]) {
      expect(await codeOf(refused)).toEqual([409, 'entry_exists']);
    }
    const payment_id = await pendingPayment(organization_id);
    for (const entry_id of [undefined, '', 7, payment_id, 'entry_short', `entry_${'x'.repeat(65)}`]) {
      const refused = await send('credit', { ...credit, entry_id });
      expect(await codeOf(refused)).toEqual([422, 'invalid_request']);
    }
    const { ledger_entries } = await made.service.everything();
    expect(ledger_entries).toEqual(before.ledger_entries);
  });

  test('on Tier 0 may ask at once after its first payment', async () => {
    const { organization_id, key } = await addAccount(made.service, { credit_dollars: 0 });
    expect((await postByKey(made.service, key, '{')).status).toBe(402);
    const body = { entry_id: newEntryId(), amount_micros: 5_000_000, is_forced: false };
    await people.operator.ask(`${API}/organizations/${organization_id}/credit`, { body });
    expect((await postByKey(made.service, key, '{')).status).toBe(400);
  });

  test('has a pending payment confirmed once, and under its own path only', async () => {
    const { organization_id } = await addAccount(made.service, { credit_dollars: 5 });
    const payment_id = await pendingPayment(organization_id);
    expect((await overviewOf(organization_id)).pending).toMatchObject([{ id: payment_id }]);
    const confirm = (owner: string) =>
      people.operator.ask(`${API}/organizations/${owner}/payments/${payment_id}/confirm`, { method: 'POST' });
    expect(await codeOf(await confirm(account.organization_id))).toEqual([404, 'not_found']);
    expect((await confirm(organization_id)).status).toBe(200);
    expect(await codeOf(await confirm(organization_id))).toEqual([409, 'payment_settled']);
    expect(await overviewOf(organization_id)).toMatchObject({ credit_micros: 10_000_000, pending: [] });
  });

  test('has a top-up that nobody pays canceled, which is not confirmed then', async () => {
    const { organization_id } = await addAccount(made.service, { credit_dollars: 5 });
    const payment_id = await pendingPayment(organization_id);
    const settle = (owner: string, how: string) =>
      people.operator.ask(`${API}/organizations/${owner}/payments/${payment_id}/${how}`, { method: 'POST' });
    expect(await codeOf(await settle(account.organization_id, 'cancel'))).toEqual([404, 'not_found']);
    expect((await settle(organization_id, 'cancel')).status).toBe(200);
    expect(await codeOf(await settle(organization_id, 'confirm'))).toEqual([409, 'payment_settled']);
    expect(await overviewOf(organization_id)).toMatchObject({ credit_micros: 5_000_000, pending: [] });
  });

  test('takes limits one by one, and gives the tier its own back', async () => {
    const { organization_id } = await addAccount(made.service);
    const set = (body: unknown) =>
      people.operator.ask(`${API}/organizations/${organization_id}/limits`, { method: 'PATCH', body });
    expect((await set({ minimum_tier: 3, tokens_per_minute: 9 })).status).toBe(200);
    expect((await set({ minimum_tier: 4 })).status).toBe(200);
    expect(await overviewOf(organization_id)).toMatchObject({
      tier_in_force: 4,
      dedicated: { tokens_per_minute: 9 },
    });
    expect((await set({ tokens_per_minute: null })).status).toBe(200);
    expect((await overviewOf(organization_id)).dedicated.tokens_per_minute).toBeNull();
    expect(await codeOf(await set({ minimum_tier: 9 }))).toEqual([422, 'invalid_limit']);
    expect(await codeOf(await set({ credit_micros: 1 }))).toEqual([422, 'invalid_request']);
  });

  test.each(['', '/trail'])('that does not exist is not found: %s', async (path) => {
    const response = await people.operator.ask(`${API}/organizations/org_none${path}`);
    expect(await codeOf(response)).toEqual([404, 'not_found']);
  });
});

describe('a model', () => {
  const change = (what: string, body: unknown) => people.operator.ask(`${API}/models/${what}`, { body });

  test.each([
    ['open', { id: 'chat-1' }, 409, 'change_refused'],
    ['price', { id: 'decision-1', price_micros: 1e12 }, 409, 'change_refused'],
    ['price', { id: 'decision-1', price_micros: -1 }, 422, 'invalid_request'],
    ['price', { id: 'none', price_micros: 1 }, 404, 'not_found'],
    ['open', { id: 'none' }, 404, 'not_found'],
    ['close', { id: 'none' }, 404, 'not_found'],
    ['reload', { id: 'none' }, 404, 'not_found'],
  ])('%s %p is refused', async (what, body, status, code) => {
    expect(await codeOf(await change(what, body))).toEqual([status, code]);
  });

  test('is closed for clients at once, and open again', async () => {
    const { key } = await addAccount(made.service);
    const isListed = async () => {
      const response = await made.service.fetch('/v1/models', {
        headers: { authorization: `Bearer ${key}` },
      });
      return (await response.text()).includes('decision-1');
    };
    expect(await isListed()).toBe(true);
    await change('close', { id: 'decision-1' });
    expect(await isListed()).toBe(false);
    expect(JSON.stringify(await read('/models'))).toContain('"status":"coming_soon"');
    await change('open', { id: 'decision-1' });
    expect(await isListed()).toBe(true);
  });

  test('says what became of its reload', async () => {
    expect((await change('reload', { id: 'chat-1' })).status).toBe(200);
    for (;;) {
      const list = JSON.stringify(await read('/models'));
      if (!list.includes('"state":"running"')) {
        expect(list).toContain('chat-1 is not open.');
        return;
      }
      await Bun.sleep(POLL_MS);
    }
  });
});

test('an audit that was begun comes to its end, and its checks are told', async () => {
  const Audit = Type.Object({
    running_since_ms: Type.Union([Type.Integer(), Type.Null()]),
    last: Type.Union([Type.Object({ outcome: Type.String(), whole: Type.Boolean() }), Type.Null()]),
  });
  await people.operator.ask(`${API}/audit`, { method: 'POST' });
  for (;;) {
    const { running_since_ms, last } = Value.Parse(Audit, await read('/audit'));
    if (running_since_ms === null) {
      expect(last).toEqual({ outcome: 'ok', whole: true });
      return;
    }
    await Bun.sleep(POLL_MS);
  }
});

test('the inbox has the payments of all organizations that wait for the operator, and failures of a day', async () => {
  const { accounts, service, clock } = made.service;
  const Read = Type.Object({
    count: Type.Integer(),
    payments: Type.Array(Type.Object({ id: Type.String(), organization_name: Type.String() })),
    backups: Type.Object({ count: Type.Integer() }),
    problems: Type.Object({ count: Type.Integer() }),
  });
  const before = Value.Parse(Read, await read('/inbox'));
  const other = await createOrganization(accounts, OPERATOR, { name: 'Another organization' });
  const ids = [await pendingPayment(), await pendingPayment(other.id)];
  const failed = { request_id: null, code: null, error: new Error('the record of a client') } as const;
  service.services.problems.report({ ...failed, step: 'backup' });
  service.services.problems.report({ ...failed, step: 'charge' });
  const text = await read('/inbox');
  expect(JSON.stringify(text)).not.toContain('record of a client');
  const inbox = Value.Parse(Read, text);
  expect(inbox.payments.map(({ id }) => id)).toEqual([...before.payments.map(({ id }) => id), ...ids]);
  expect(inbox.payments.at(-1)?.organization_name).toBe('Another organization');
  expect([inbox.backups.count, inbox.problems.count]).toEqual([
    before.backups.count + 1,
    before.problems.count + 1,
  ]);
  expect(inbox.count).toBeGreaterThan(before.count + 1);
  const confirm = `/organizations/${other.id}/payments/${ids[1]}/confirm`;
  expect((await people.operator.ask(`${API}${confirm}`, { method: 'POST' })).status).toBe(200);
  clock.advance(86_400_001);
  const later = Value.Parse(Read, await read('/inbox'));
  expect(later.payments.map(({ id }) => id)).not.toContain(ids[1]);
  expect([later.backups.count, later.problems.count]).toEqual([0, 0]);
});

test('a payment event that belongs to nobody waits in the inbox until it is decided, however long', async () => {
  const { accounts, clock } = made.service;
  const Read = Type.Object({ count: Type.Integer(), unresolved_events: Type.Integer() });
  const waiting = async () => Value.Parse(Read, await read('/inbox'));
  clock.advance(DAY_MS + 1);
  const before = await waiting();
  const { body, signature } = sign(transaction('transaction.completed'), { now_ms: clock.now_ms() });
  await handleWebhook(accounts, paddleProvider(SETTINGS), Buffer.from(body), signature);
  clock.advance(DAY_MS + 1);
  expect(await waiting()).toEqual({
    count: before.count + 1,
    unresolved_events: before.unresolved_events + 1,
  });
  await dismissPaymentEvent(accounts, OPERATOR, eventId(body));
  expect(await waiting()).toEqual(before);
});

test('an upstream that does not answer waits in the inbox once, and its model not beside it', async () => {
  const Read = Type.Object({
    models: Type.Array(Type.Object({ id: Type.String() })),
    upstreams: Type.Array(Type.Object({ model_id: Type.String() })),
  });
  // Nothing listens on the port of "discard".
  await addUpstreamModel(made.service, 'elsewhere', ['http://127.0.0.1:9']);
  const asked = JSON.stringify({ ...SMALL_REQUEST, model: 'elsewhere' });
  await (await postByKey(made.service, account.key, asked)).body?.cancel();
  const { models } = made.service.service.services;
  await eventually(() =>
    models.states().some(({ id, load_error }) => id === 'elsewhere' && load_error !== undefined),
  );
  const inbox = Value.Parse(Read, await read('/inbox'));
  expect(inbox.upstreams.map(({ model_id }) => model_id)).toEqual(['elsewhere']);
  expect(inbox.models).toEqual([]);
});

test('a problem is found by the id of its request, without a word of a client', async () => {
  made.service.service.services.problems.report({
    request_id: 'req_lost',
    step: 'charge',
    code: 'internal_error',
    error: new Error('the record of a client'),
  });
  const text = JSON.stringify(await read('/problems?request_id=req_lost'));
  expect(text).toContain('req_lost');
  expect(text).not.toContain('record of a client');
  expect(await read('/problems?request_id=req_other')).toEqual({ items: [] });
});

test('what the service did is seen by the second', async () => {
  const { key } = await addAccount(made.service);
  await postByKey(made.service, key, '{');
  made.service.clock.advance(1_000);
  const Live = Type.Object({ history: Type.Object({ refused: Type.Array(Type.Integer()) }) });
  const { history } = Value.Parse(Live, await read('/live'));
  expect(history.refused.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
});
