import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { createKey } from '../../src/accounts/keys.ts';
import { signUp } from '../../src/accounts/users.ts';
import type { SignedIn } from '../../src/console/people/sign-in.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { addAccount, startTestService, type TestService } from '../support/service.ts';
import { KnownSession } from './known-session.ts';

const CSRF_TOKEN = 'token of the session';
const Created = Type.Object({ id: Type.String(), key: Type.String() });

let service: TestService;
const sign_in = new KnownSession();
let signed_in: SignedIn;
let organization_id: string;
let project_id: string;

beforeAll(async () => {
  service = await startTestService({
    cold: true,
    console: { sign_in, public_origin: null, mailInvitation: () => undefined },
  });
  const { user, organization } = await signUp(service.accounts, { email: 'ada@example.com', name: 'Ada' });
  organization_id = organization.id;
  project_id = organization.default_project_id;
  signed_in = {
    user_id: user.id,
    email: user.email,
    name: user.name,
    is_operator: false,
    session_id: 'session',
    csrf_token: CSRF_TOKEN,
    expires_at_ms: 0,
    set_cookies: [],
  };
});
afterAll(() => service.close());

/** A change as the console's own pages ask for it, with other headers where they are given. */
function post(path: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  const own = {
    origin: service.server.address,
    'content-type': 'application/json',
    'x-csrf-token': CSRF_TOKEN,
  };
  return service.fetch(path, { method: 'POST', body, headers: { ...own, ...headers } });
}

function keysPath(): string {
  return `/console/api/organizations/${organization_id}/keys`;
}

function newKey(): string {
  return JSON.stringify({ project_id, name: 'Production' });
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
    sign_in.session = null;
    expect(await refusalOf(await service.fetch(keysPath()))).toEqual([401, 'not_signed_in']);
    expect(await refusalOf(await post(keysPath(), newKey()))).toEqual([401, 'not_signed_in']);
  });

  test('with an API key instead of a session is refused', async () => {
    sign_in.session = null;
    const { key } = await addAccount(service);
    const response = await service.fetch(keysPath(), { headers: { authorization: `Bearer ${key}` } });
    expect(await refusalOf(response)).toEqual([401, 'not_signed_in']);
  });

  test.each([
    ['of another origin', { origin: 'https://evil.example' }, 'wrong_origin'],
    ['of another site', { 'sec-fetch-site': 'cross-site' }, 'wrong_origin'],
    ['without its token', { 'x-csrf-token': '' }, 'invalid_csrf_token'],
    ['with another token', { 'x-csrf-token': 'token of the sessioN' }, 'invalid_csrf_token'],
  ])('that changes something, %s, is refused and changes nothing', async (_, headers, code) => {
    sign_in.session = signed_in;
    const before = await (await service.fetch(keysPath())).text();
    expect(await refusalOf(await post(keysPath(), newKey(), headers))).toEqual([403, code]);
    expect(await (await service.fetch(keysPath())).text()).toBe(before);
  });

  test('that changes something, without an origin, is refused', async () => {
    sign_in.session = signed_in;
    const response = await service.fetch(keysPath(), {
      method: 'POST',
      body: newKey(),
      headers: { 'content-type': 'application/json', 'x-csrf-token': CSRF_TOKEN },
    });
    expect(await refusalOf(response)).toEqual([403, 'wrong_origin']);
  });

  test.each([
    ['text that is no JSON', '{', 400, 'invalid_json'],
    ['no body', '', 422, 'invalid_request'],
    ['a field that is missing', '{"name":"Production"}', 422, 'invalid_request'],
    ['a field of another type', '{"project_id":1,"name":"Production"}', 422, 'invalid_request'],
  ])('with %s is refused', async (_, body, status, code) => {
    sign_in.session = signed_in;
    expect(await refusalOf(await post(keysPath(), body))).toEqual([status, code]);
  });

  test('with a body of another type is refused', async () => {
    sign_in.session = signed_in;
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(await refusalOf(await post(keysPath(), newKey(), form))).toEqual([422, 'unsupported_media_type']);
  });

  test('for an unknown path is refused', async () => {
    sign_in.session = signed_in;
    expect(await refusalOf(await service.fetch('/console/api/nothing'))).toEqual([404, 'not_found']);
  });

  test('for another organization is as for one that does not exist', async () => {
    sign_in.session = signed_in;
    const other = await addAccount(service);
    const path = `/console/api/organizations/${other.organization_id}/keys`;
    expect(await refusalOf(await service.fetch(path))).toEqual([404, 'not_found']);
    const own_path = `${keysPath()}/${other.key_id}`;
    const headers = { origin: service.server.address, 'x-csrf-token': CSRF_TOKEN };
    const response = await service.fetch(own_path, { method: 'DELETE', headers });
    expect(await refusalOf(response)).toEqual([404, 'not_found']);
  });

  test("cannot make a key in another organization's project", async () => {
    sign_in.session = signed_in;
    const other = await addAccount(service);
    const body = JSON.stringify({ project_id: other.project_id, name: 'Production' });
    expect(await refusalOf(await post(keysPath(), body))).toEqual([404, 'not_found']);
  });
});

describe('a key that the console made', () => {
  test('is shown once, asks the API at once, and ends when it is revoked', async () => {
    sign_in.session = signed_in;
    const { id, key } = Value.Parse(Created, await (await post(keysPath(), newKey())).json());
    const list = await (await service.fetch(keysPath())).text();
    expect(list).toContain(id);
    expect(list).not.toContain(key);
    const ask = async () => (await post('/v1/decisions', '{}', { authorization: `Bearer ${key}` })).status;
    // Tier 0: the key is known, and the organization has not paid.
    expect(await ask()).toBe(402);
    const headers = { origin: service.server.address, 'x-csrf-token': CSRF_TOKEN };
    expect((await service.fetch(`${keysPath()}/${id}`, { method: 'DELETE', headers })).status).toBe(200);
    expect(await ask()).toBe(401);
  });

  test('is listed with revoked ones after its end only', async () => {
    sign_in.session = signed_in;
    const actor = { kind: 'user', user_id: signed_in.user_id } as const;
    const { id } = await createKey(service.accounts, actor, { project_id, name: 'Short-lived' });
    const headers = { origin: service.server.address, 'x-csrf-token': CSRF_TOKEN };
    const revoked = async () => await (await service.fetch(`${keysPath()}?revoked=true`)).text();
    expect(await revoked()).not.toContain(id);
    await service.fetch(`${keysPath()}/${id}`, { method: 'DELETE', headers });
    expect(await revoked()).toContain(id);
    expect(await (await service.fetch(keysPath())).text()).not.toContain(id);
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
    sign_in.session = signed_in;
    const response = await service.fetch(`/console/api/organizations/${organization_id}/${path}`);
    expect([response.status, (await response.text()).length > 0]).toEqual([200, true]);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const other = await addAccount(service);
    const others = await service.fetch(`/console/api/organizations/${other.organization_id}/${path}`);
    expect(await refusalOf(others)).toEqual([404, 'not_found']);
  });
});
