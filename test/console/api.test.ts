import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey, revokeKey } from '../../src/accounts/keys.ts';
import { createOrganization } from '../../src/accounts/organizations.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { type AnsweredRequest, NO_METRICS } from '../../src/observability/metrics.ts';
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
  made = await startTestConsole({ metrics });
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

  test.each([
    ['of another origin', { origin: 'https://evil.example' }, 'wrong_origin'],
    ['of no origin', {}, 'wrong_origin'],
    ['of another site', { origin: 'own', 'sec-fetch-site': 'cross-site' }, 'wrong_origin'],
    ['without its token', { origin: 'own' }, 'invalid_csrf_token'],
    ['with another token', { origin: 'own', 'x-csrf-token': '0'.repeat(64) }, 'invalid_csrf_token'],
  ])('that changes something, %s, is refused and changes nothing', async (_, given, code) => {
    const before = await (await ada.ask(keys_path)).text();
    const headers: Record<string, string> = { cookie: ada.cookie, ...given };
    if (headers.origin === 'own') headers.origin = origin();
    expect(await refusalOf(await send(headers, JSON.stringify(new_key)))).toEqual([403, code]);
    expect(await (await ada.ask(keys_path)).text()).toBe(before);
  });

  test.each([
    ['text that is no JSON', '{', 400, 'invalid_json'],
    ['no body', '', 422, 'invalid_request'],
    ['a field that is missing', '{"name":"Production"}', 422, 'invalid_request'],
    ['a field of another type', '{"project_id":1,"name":"Production"}', 422, 'invalid_request'],
  ])('with %s is refused', async (_, body, status, code) => {
    expect(await refusalOf(await ada.ask(keys_path, { body }))).toEqual([status, code]);
  });

  test('with a body of another type is refused', async () => {
    const headers = { origin: origin(), 'content-type': 'application/x-www-form-urlencoded' };
    expect(await refusalOf(await send(headers, JSON.stringify(new_key)))).toEqual([
      422,
      'unsupported_media_type',
    ]);
  });

  test('for an unknown path is refused', async () => {
    expect(await refusalOf(await ada.ask('/console/api/nothing'))).toEqual([404, 'not_found']);
  });

  test('for another organization is as for one that does not exist', async () => {
    const other = await addAccount(made.service);
    const path = `/console/api/organizations/${other.organization_id}/keys`;
    expect(await refusalOf(await ada.ask(path))).toEqual([404, 'not_found']);
    const own_path = `${keys_path}/${other.key_id}`;
    expect(await refusalOf(await ada.ask(own_path, { method: 'DELETE' }))).toEqual([404, 'not_found']);
  });

  test("cannot make a key in another organization's project", async () => {
    const { project_id } = await addAccount(made.service);
    const body = { project_id, name: 'Production' };
    expect(await refusalOf(await ada.ask(keys_path, { body }))).toEqual([404, 'not_found']);
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

describe('reading, by every route of an organization', () => {
  test.each([
    'keys',
    'projects',
    'members',
    'invitations',
    'trail',
    'billing',
    'movements',
    'movements?by=request',
    'first-steps',
    'usage/series?from_ms=1700000000000&to_ms=1700003600000',
    'usage/rows',
    'usage/values',
    'usage/export.csv',
  ])('%s', async (path) => {
    const response = await ada.ask(`/console/api/organizations/${ada.organization_id}/${path}`);
    expect([response.status, (await response.text()).length > 0]).toEqual([200, true]);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const other = await addAccount(made.service);
    const others = await ada.ask(`/console/api/organizations/${other.organization_id}/${path}`);
    expect(await refusalOf(others)).toEqual([404, 'not_found']);
  });
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
