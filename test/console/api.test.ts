import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, revokeKey } from '../../src/accounts/keys.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { type AnsweredRequest, NO_METRICS } from '../../src/observability/metrics.ts';
import { manualProvider } from '../../src/payments/manual.ts';
import { PaymentProviderFailed } from '../../src/payments/provider.ts';
import { withoutTable } from '../support/faults.ts';
import { post as postByKey } from '../support/requests.ts';
import { addAccount, IS_ON_POSTGRES } from '../support/service.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(120_000);

const ListedKeys = Type.Object({ api_keys: Type.Array(Type.Object({ id: Type.String() })) });
const RefusedCodes = Type.Object({ items: Type.Array(Type.Object({ code: Type.String() })) });
const Created = Type.Object({ id: Type.String(), key: Type.String() });

/** The requests that the metrics received. */
const answered: AnsweredRequest[] = [];

let made: TestConsole;
let ada: Person;
let keys_path: string;
let new_key: { readonly project_id: string; readonly name: string };

beforeAll(async () => {
  const metrics = {
    ...NO_METRICS,
    requestAnswered: (request: AnsweredRequest) => void answered.push(request),
  };
  made = await startTestConsole({
    metrics,
    payment_provider: {
      ...manualProvider,
      createCheckout: () => Promise.reject(new PaymentProviderFailed('the reason of the provider')),
    },
  });
  ada = await addPerson(made, { email: 'ada@example.com' });
  keys_path = `/console/api/organizations/${ada.organization_id}/keys`;
  new_key = { project_id: ada.default_project_id, name: 'Production' };
});
afterAll(() => made.close());

/** A request with these headers, and a body where it is a change. */
function send(headers: Record<string, string>, body?: string): Promise<Response> {
  const type = { 'content-type': 'application/json' };
  return made.service.fetch(
    keys_path,
    body === undefined ? { headers } : { method: 'POST', body, headers: { ...type, ...headers } },
  );
}

function origin(): string {
  return made.service.server.address;
}

/** Status and code of a refusal, which must have the contract's shape and its own id. */
async function refusalOf(response: Response): Promise<[status: number, code: string]> {
  const body = Value.Parse(ErrorResponseSchema, await response.json());
  expect(response.headers.get('x-request-id')).toBe(body.request_id);
  expect(response.headers.get('cache-control')).toBe('no-store');
  return [response.status, body.error.code];
}

describe('a request to the API of the console', () => {
  test('without a session is refused', async () => {
    expect(await refusalOf(await send({}))).toEqual([401, 'not_signed_in']);
    expect(await refusalOf(await send({ origin: origin() }, JSON.stringify(new_key)))).toEqual([
      401,
      'not_signed_in',
    ]);
  });

  test('with an API key instead of a session is refused', async () => {
    const { key } = await addAccount(made.service);
    expect(await refusalOf(await send({ authorization: `Bearer ${key}` }))).toEqual([401, 'not_signed_in']);
  });

  test('with a session is not one of the API', async () => {
    const response = await made.service.fetch('/v1/models', { headers: { cookie: ada.cookie } });
    const { error } = Value.Parse(ErrorResponseSchema, await response.json());
    expect([response.status, error.code]).toEqual([401, 'missing_api_key']);
  });

  test.each([false, true])(
    'with cookies of many other programs is of its session; https: %p',
    async (is_https) => {
      const own = await startTestConsole({}, { is_https });
      try {
        const { cookie, organization_id } = await addPerson(own, { email: 'eve@example.com' });
        const others = Array.from({ length: 50 }, (_, index) => `other${index}=1`).join('; ');
        const headers = { cookie: `${others}; ${cookie}; ${others}` };
        const path = `/console/api/organizations/${organization_id}/keys`;
        expect((await own.service.fetch(path, { headers })).status).toBe(200);
      } finally {
        await own.close();
      }
    },
  );

  test.each([
    ['text that is no JSON', '{', 400, 'invalid_json'],
    ['no body', '', 422, 'invalid_request'],
    ['a field that is missing', '{"name":"Production"}', 422, 'invalid_request'],
    ['a field of another type', '{"project_id":1,"name":"Production"}', 422, 'invalid_request'],
  ])('with %s is refused', async (_, body, status, code) => {
    expect(await refusalOf(await ada.ask(keys_path, { body }))).toEqual([status, code]);
  });

  test('for an unknown path is refused', async () => {
    expect(await refusalOf(await ada.ask('/console/api/nothing'))).toEqual([404, 'not_found']);
  });
});

test('a failure is none of the successes that metrics count', async () => {
  answered.length = 0;
  const missing = `/console/api/organizations/${ada.organization_id}/keys/none`;
  await ada.ask(missing, { method: 'DELETE' });
  await made.service.fetch(keys_path);
  await ada.ask(keys_path);
  expect(answered.map(({ endpoint, code }) => [endpoint, code])).toEqual([
    ['/console', 'not_found'],
    ['/console', 'not_signed_in'],
    ['/console', null],
  ]);
});

describe('a change of a project', () => {
  const path = () => `/console/api/organizations/${ada.organization_id}/projects/${ada.default_project_id}`;

  test('that names nothing to change is refused, whoever asks and whatever project is named', async () => {
    const stranger = await addPerson(made, { email: 'stranger@example.com' });
    for (const named of [path(), path().replace(ada.default_project_id, 'proj_000000000000000000000000')]) {
      for (const person of [ada, stranger]) {
        const asked = person.ask(named, { method: 'PATCH', body: {} });
        expect(await refusalOf(await asked)).toEqual([422, 'invalid_request']);
      }
    }
  });

  test('is made as a whole or not at all, and its refusal names the field of the form', async () => {
    const body = { name: 'Renamed', spend_limit_micros: -1 };
    const response = await ada.ask(path(), { method: 'PATCH', body });
    const { error } = Value.Parse(ErrorResponseSchema, await response.json());
    expect([response.status, error.code, error.param]).toEqual([422, 'invalid_amount', 'spend_limit']);
    expect(await made.service.accounts.store.accounts.findProject(ada.default_project_id)).toMatchObject({
      name: 'Default',
      spend_limit_micros: null,
    });
    const taken = { name: 'Taken', spend_limit_micros: 5 };
    await ada.ask(path().replace(`/${ada.default_project_id}`, ''), { body: { name: 'Taken' } });
    expect(await refusalOf(await ada.ask(path(), { method: 'PATCH', body: taken }))).toEqual([
      409,
      'name_taken',
    ]);
    expect(await made.service.accounts.store.accounts.findProject(ada.default_project_id)).toMatchObject({
      spend_limit_micros: null,
    });
  });
});

describe('a key that the console made', () => {
  test('is shown once, asks the API at once, and ends when it is revoked', async () => {
    const { id, key } = Value.Parse(Created, await (await ada.ask(keys_path, { body: new_key })).json());
    const list = await (await ada.ask(keys_path)).text();
    expect(list).toContain(id);
    expect(list).not.toContain(key);
    const asked = async () => (await postByKey(made.service, key, '{}')).status;
    // Tier 0: the key is known, and the organization has not paid.
    expect(await asked()).toBe(402);
    const refused = await ada.ask(`/console/api/organizations/${ada.organization_id}/usage/refusals`);
    const { items } = Value.Parse(RefusedCodes, await refused.json());
    expect(items.map(({ code }) => code)).toEqual(['insufficient_credit']);
    expect((await ada.ask(`${keys_path}/${id}`, { method: 'DELETE' })).status).toBe(200);
    expect(await asked()).toBe(401);
  });

  test('is listed among the revoked ones after its end only', async () => {
    const { id } = Value.Parse(Created, await (await ada.ask(keys_path, { body: new_key })).json());
    const revoked = async () => await (await ada.ask(`${keys_path}?revoked=true`)).text();
    expect(await revoked()).not.toContain(id);
    await ada.ask(`${keys_path}/${id}`, { method: 'DELETE' });
    expect(await revoked()).toContain(id);
    expect(await (await ada.ask(keys_path)).text()).not.toContain(id);
  });
});

test('a number that is no id is refused, and is no failure of ours', async () => {
  const { problems } = made.service.service.services;
  const body = JSON.stringify({ up_to_id: 1e300 });
  const response = await ada.ask('/console/api/alerts/read', { method: 'POST', body });
  expect(response.status).toBe(422);
  expect(problems.recent({ request_id: response.headers.get('x-request-id') ?? '' })).toEqual([]);
});

test('an export that fails in the middle is broken off, and its cause is found by the request id', async () => {
  const path = `/console/api/organizations/${ada.organization_id}/usage/export.csv`;
  const { problems } = made.service.service.services;
  await withoutTable(made.service, 'usage_records', async () => {
    const response = await ada.ask(path);
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    const request_id = response.headers.get('x-request-id') ?? '';
    expect(problems.recent({ request_id })).toMatchObject([
      {
        step: 'http',
        code: null,
        error: expect.stringContaining(IS_ON_POSTGRES ? 'PostgresError' : 'SQLiteError'),
      },
    ]);
  });
  expect(await (await ada.ask(path)).text()).toEndWith('request_id\r\n');
});

test('a top-up that the provider refuses is told without its reason, and is a problem with the code', async () => {
  const path = `/console/api/organizations/${ada.organization_id}/top-ups`;
  const response = await ada.ask(path, { body: { amount_micros: 5_000_000 } });
  const text = await response.text();
  expect([response.status, text]).toEqual([502, expect.stringContaining('"payment_provider_failed"')]);
  expect(text).not.toContain('the reason of the provider');
  const request_id = response.headers.get('x-request-id') ?? '';
  expect(made.service.service.services.problems.recent({ request_id })).toMatchObject([
    { code: 'payment_provider_failed', error: 'AccountError < PaymentProviderFailed' },
  ]);
});

test('of revoked keys the last 200 are there to filter usage by', async () => {
  const { accounts } = made.service;
  const { default_project_id: project_id, organization_id } = await createOrganization(accounts, OPERATOR, {
    name: 'Of many keys',
    owner_user_id: ada.user_id,
  }).then(({ id, ...rest }) => ({ ...rest, organization_id: id }));
  const ids: string[] = [];
  for (let number = 0; number < 201; number += 1) {
    const { id } = await createKey(accounts, OPERATOR, { project_id, name: `Number ${number}` });
    made.service.clock.advance(1);
    await revokeKey(accounts, OPERATOR, id);
    ids.push(id);
  }
  const response = await ada.ask(`/console/api/organizations/${organization_id}/usage/values`);
  const { api_keys } = Value.Parse(ListedKeys, await response.json());
  expect(api_keys.map(({ id }) => id)).toEqual(ids.slice(1).reverse());
});

test('the start page can ask for few entries of the audit log, and for the totals of usage without their buckets', async () => {
  const own = `/console/api/organizations/${ada.organization_id}`;
  const ask = async (path: string) => JSON.parse(await (await ada.ask(`${own}/${path}`)).text());
  for (const name of ['One', 'Two', 'Three']) await ada.ask(`${own}/projects`, { body: { name } });
  const all = await ask('trail');
  expect(all.items.length).toBeGreaterThan(2);
  expect((await ask('trail?limit=2')).items).toEqual(all.items.slice(0, 2));

  const from = `from_ms=${made.service.clock.now_ms() - 86_400_000}&to_ms=${made.service.clock.now_ms()}`;
  const whole = await ask(`usage/series?${from}`);
  expect(whole.buckets.length).toBeGreaterThan(0);
  expect(await ask(`usage/series?${from}&without_buckets=true`)).toEqual({ ...whole, buckets: [] });
});
