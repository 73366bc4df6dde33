import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/accounts/actor.ts';
import { addMember } from '../../src/accounts/members.ts';
import { ROLES, type Role } from '../../src/accounts/roles.ts';
import { signUp } from '../../src/accounts/users.ts';
import type { SignedIn } from '../../src/console/people/sign-in.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { ask, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { KnownSession } from './known-session.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const Answered = Type.Object({
  usage: Type.Object({ cost_usd: Type.Number(), input_tokens: Type.Integer() }),
  answers: Type.Unknown(),
});

let service: TestService;
let account: TestAccount;
const people = new Map<Role, SignedIn>();
const sign_in = new KnownSession();

beforeAll(async () => {
  service = await startTestService({
    console: { sign_in, public_origin: null, mailInvitation: () => undefined },
  });
  account = await addAccount(service);
  for (const role of ROLES) {
    const { user } = await signUp(service.accounts, { email: `${role}@example.com`, name: role });
    const { organization_id } = account;
    await addMember(service.accounts, OPERATOR, { organization_id, user_id: user.id, role });
    people.set(role, {
      user_id: user.id,
      email: user.email,
      name: role,
      is_operator: false,
      session_id: role,
      csrf_token: role,
      expires_at_ms: 0,
      set_cookies: [],
    });
  }
});
afterAll(() => service.close());

function play(role: Role, key_id: string, body: unknown): Promise<Response> {
  sign_in.session = people.get(role) ?? null;
  return service.fetch(`/console/api/organizations/${account.organization_id}/playground/${key_id}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: {
      origin: service.server.address,
      'content-type': 'application/json',
      'x-csrf-token': role,
    },
  });
}

async function credit_micros(): Promise<number> {
  const organization = await service.accounts.store.accounts.findOrganization(account.organization_id);
  return organization?.credit_micros ?? Number.NaN;
}

test('the playground answers as the API does, and charges the same', async () => {
  const before = await credit_micros();
  const played = Value.Parse(Answered, await (await play('developer', account.key_id, SMALL_REQUEST)).json());
  const between = await credit_micros();
  const asked = Value.Parse(Answered, await (await ask(service, account.key)).json());
  expect(played.answers).toEqual(asked.answers);
  expect(played.usage).toEqual(asked.usage);
  expect(before - between).toBe(Math.round(played.usage.cost_usd * 1e6));
  expect(between - (await credit_micros())).toBe(before - between);
});

test.each([
  ['owner', 200],
  ['admin', 200],
  ['developer', 200],
  ['billing', 403],
  ['reader', 403],
] as const)('%s gets %d from it', async (role, status) => {
  const before = await credit_micros();
  expect((await play(role, account.key_id, SMALL_REQUEST)).status).toBe(status);
  expect((await credit_micros()) < before).toBe(status === 200);
});

test('a request that the API refuses is refused with the same code, and free', async () => {
  const before = await credit_micros();
  const response = await play('owner', account.key_id, { ...SMALL_REQUEST, mode: 'slow' });
  const { error } = Value.Parse(ErrorResponseSchema, await response.json());
  expect([response.status, error.code, error.param]).toEqual([422, 'invalid_mode', 'mode']);
  expect(await credit_micros()).toBe(before);
});

test("another organization's key is one that does not exist", async () => {
  const other = await addAccount(service);
  expect((await play('owner', other.key_id, SMALL_REQUEST)).status).toBe(404);
});
