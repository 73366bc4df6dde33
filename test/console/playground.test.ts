import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { addMember } from '../../src/accounts/members.ts';
import { addOpenModel } from '../../src/catalog/changes.ts';
import { ROLES, type Role } from '../../src/contract/roles.ts';
import { TokenCountSchema } from '../../src/decisions/schemas.ts';
import { ErrorResponseSchema } from '../../src/http/schemas.ts';
import { type AnsweredRequest, NO_METRICS } from '../../src/observability/metrics.ts';
import { ask, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, type TestAccount } from '../support/service.ts';
import { addPerson, type Person, startTestConsole, type TestConsole } from './people.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const Answered = Type.Object({
  usage: Type.Object({ cost_usd: Type.Number(), input_tokens: Type.Integer() }),
  answers: Type.Unknown(),
});

const Live = Type.Object({ history: Type.Object({ answered: Type.Array(Type.Integer()) }) });

let made: TestConsole;
let account: TestAccount;
const people = new Map<Role, Person>();
/** The requests that the metrics received. */
const answered: AnsweredRequest[] = [];
const told: string[] = [];

beforeAll(async () => {
  const metrics = {
    ...NO_METRICS,
    requestAnswered: (request: AnsweredRequest) => void answered.push(request),
    decisionTimed: () => void told.push('timed'),
    decisionCharged: () => void told.push('charged'),
  };
  made = await startTestConsole({ cold: false, metrics });
  account = await addAccount(made.service);
  for (const role of ROLES) {
    const person = await addPerson(made, { email: `${role}@example.com` });
    const { organization_id } = account;
    await addMember(made.service.accounts, OPERATOR, { organization_id, user_id: person.user_id, role });
    people.set(role, person);
  }
});
afterAll(() => made.close());

function play(role: Role, key_id: string, body: unknown): Promise<Response> {
  const person = people.get(role);
  if (person === undefined) throw new Error(`nobody is ${role}`);
  return person.ask(`/console/api/organizations/${account.organization_id}/playground/${key_id}`, { body });
}

async function credit_micros(): Promise<number> {
  const organization = await made.service.accounts.store.accounts.findOrganization(account.organization_id);
  return organization?.credit_micros ?? Number.NaN;
}

test('the playground answers as the API does, and charges the same', async () => {
  const before = await credit_micros();
  const played = Value.Parse(Answered, await (await play('developer', account.key_id, SMALL_REQUEST)).json());
  const between = await credit_micros();
  const asked = Value.Parse(Answered, await (await ask(made.service, account.key)).json());
  expect(played.answers).toEqual(asked.answers);
  expect(played.usage).toEqual(asked.usage);
  expect(before - between).toBe(Math.round(played.usage.cost_usd * 1e6));
  expect(between - (await credit_micros())).toBe(before - between);
});

test('the API reference is there after a request of it, too', async () => {
  await play('developer', account.key_id, SMALL_REQUEST);
  await play('developer', `${account.key_id}/tokens`, SMALL_REQUEST);
  expect((await made.service.fetch('/swagger')).status).toBe(200);
});

test('its tokens and price are counted as the API counts them, free of charge, and are what a run then costs', async () => {
  const before = await credit_micros();
  const path = `${account.key_id}/tokens`;
  const counted = Value.Parse(TokenCountSchema, await (await play('developer', path, SMALL_REQUEST)).json());
  const api = await made.service.fetch('/v1/tokens', {
    method: 'POST',
    headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(SMALL_REQUEST),
  });
  expect(counted).toEqual(Value.Parse(TokenCountSchema, await api.json()));
  expect(await credit_micros()).toBe(before);
  const played = Value.Parse(Answered, await (await play('developer', account.key_id, SMALL_REQUEST)).json());
  expect(played.usage.cost_usd).toBe(counted.cost_usd);
  expect((await play('reader', path, SMALL_REQUEST)).status).toBe(403);
});

test('counting is no use of the key, as a run is', async () => {
  const { keys } = made.service.service.services;
  const { id } = await createKey(made.service.accounts, OPERATOR, {
    project_id: account.project_id,
    name: 'For drafts',
  });
  const lastUsed = async () => {
    await keys.flushLastUsed();
    const [row] = await made.service.execute(`SELECT last_used_at_ms FROM api_keys WHERE id = '${id}'`);
    return row?.last_used_at_ms;
  };
  expect((await play('developer', `${id}/tokens`, SMALL_REQUEST)).status).toBe(200);
  expect(await lastUsed()).toBeNull();
  expect((await play('developer', id, SMALL_REQUEST)).status).toBe(200);
  expect(await lastUsed()).not.toBeNull();
});

test('counting is bounded for each person, and takes nothing from what they may change', async () => {
  const counting = await addPerson(made, { email: 'counting@example.com' });
  const { organization_id } = account;
  const { user_id } = counting;
  await addMember(made.service.accounts, OPERATOR, { organization_id, user_id, role: 'developer' });
  const within = `/console/api/organizations/${organization_id}`;
  let refused: Response | undefined;
  for (let count = 0; count < 200 && refused === undefined; count++) {
    const path = `${within}/playground/${account.key_id}/tokens`;
    const response = await counting.ask(path, { body: SMALL_REQUEST });
    if (response.status === 429) refused = response;
    else await response.body?.cancel();
  }
  const { error } = Value.Parse(ErrorResponseSchema, await refused?.json());
  expect(error.code).toBe('too_many_attempts');
  expect((await play('developer', account.key_id, SMALL_REQUEST)).status).toBe(200);
  const played = await counting.ask(`${within}/playground/${account.key_id}`, { body: SMALL_REQUEST });
  expect(played.status).toBe(200);
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

test('metrics and the live view are told of it as of a request to the API, under a name of its own', async () => {
  const operator = await addPerson(made, { email: 'operator@example.com', is_operator: true });
  const counted = async () => {
    made.service.clock.advance(1_000);
    const live = Value.Parse(Live, await (await operator.ask('/console/api/operator/live')).json());
    return live.history.answered.reduce((sum, count) => sum + count, 0);
  };
  const before = await counted();
  answered.length = 0;
  told.length = 0;
  expect((await play('owner', account.key_id, SMALL_REQUEST)).status).toBe(200);
  expect((await play('owner', account.key_id, { ...SMALL_REQUEST, mode: 'slow' })).status).toBe(422);
  expect(told).toEqual(['timed', 'charged']);
  const { organization_id } = account;
  expect(answered).toEqual([
    {
      endpoint: '/console/playground',
      model: 'decision-1',
      mode: 'fast',
      code: null,
      status: 200,
      organization_id,
    },
    {
      endpoint: '/console/playground',
      model: null,
      mode: null,
      code: 'invalid_mode',
      status: 422,
      organization_id,
    },
  ]);
  expect((await counted()) - before).toBe(1);
});

test("another organization's key is one that does not exist", async () => {
  const other = await addAccount(made.service);
  expect((await play('owner', other.key_id, SMALL_REQUEST)).status).toBe(404);
});

test('an answer has the headers of the API, so that the page can tell its latency', async () => {
  const played = await play('owner', account.key_id, SMALL_REQUEST);
  const asked = await ask(made.service, account.key);
  const names = ({ headers }: Response) =>
    [...headers.keys()].filter((name) => /^(x-ratelimit-|service-|x-request-id)/.test(name)).sort();
  expect(names(played)).toEqual(names(asked));
  expect(Number(played.headers.get('service-processing-ms'))).toBeGreaterThan(0);
});

test('a member sees the models that the organization may ask, with price and context, its own too', async () => {
  const { organization_id } = account;
  const other = await addAccount(made.service);
  for (const [id, owner] of [
    ['support-1', organization_id],
    ['support-2', other.organization_id],
  ] as const) {
    const live = { context_tokens: 16_384, input_price_micros_per_million_tokens: 600_000 };
    const source = { base_id: 'decision-1', tuning_sha256: 'd'.repeat(64), tuning: 'none' };
    await addOpenModel(
      made.service.accounts,
      OPERATOR,
      { id, kind: 'decision', description: 'Support', ...live },
      { ...source, organization_id: owner },
    );
  }
  const path = `/console/api/organizations/${organization_id}/models/`;
  const response = await people.get('reader')?.ask(path);
  expect(await response?.json()).toEqual({
    items: [
      { id: 'decision-1', context_tokens: 16_384, input_price_micros_per_million_tokens: 500_000 },
      { id: 'support-1', context_tokens: 16_384, input_price_micros_per_million_tokens: 600_000 },
    ],
  });
});
