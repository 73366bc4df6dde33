import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { OPERATOR } from '../../src/access/actor.ts';
import {
  addModel,
  addOpenModel,
  removeModel,
  removeModelAlias,
  setModelAlias,
  setModelPrice,
} from '../../src/catalog/changes.ts';
import { type ModelList, ModelListSchema } from '../../src/http/schemas.ts';
import { TestClock } from '../accounts/support.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { ask } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision, expectError, platformHeaders } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => closeAudited(service));

function list(key: string): Promise<Response> {
  return service.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } });
}

async function listed(key: string): Promise<ModelList> {
  const body: unknown = await (await list(key)).json();
  if (!Value.Check(ModelListSchema, body)) throw new Error(`not the list: ${JSON.stringify(body)}`);
  return body;
}

describe('Model object', () => {
  test('id, object, owned_by, kind, status', async () => {
    const response = await list((await addAccount(service)).key);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      object: 'list',
      data: [{ id: 'decision-1', object: 'model', owned_by: 'tds', kind: 'decision', status: 'live' }],
    });
  });
});

describe('additions to the model object', () => {
  test('release, context, price, modes, and the limits of the organization whose key asks', async () => {
    const second = await addAccount(service, { tier: 2 });
    const [model] = (await listed(second.key)).data;
    expect(model).toEqual({
      id: 'decision-1',
      object: 'model',
      created: Date.UTC(2026, 10, 1) / 1_000,
      owned_by: 'tds',
      kind: 'decision',
      status: 'live',
      context_tokens: 16_384,
      price: { input: 0.5, output: 0 },
      modes: ['fast', 'consistent'],
      limits: {
        requests_per_minute: 700,
        tokens_per_minute: 700_000,
        questions_per_request: 64,
        options_per_question: 255,
        body_bytes: 1_048_576,
      },
    });
  });

  test('limits are null on Tier 0, which has no access to the API', async () => {
    const [model] = (await listed((await addAccount(service, { credit_dollars: 0 })).key)).data;
    expect(model?.limits).toMatchObject({
      requests_per_minute: null,
      tokens_per_minute: null,
      questions_per_request: null,
    });
  });

  test('the price is what a request costs', async () => {
    const { key } = await addAccount(service);
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 123_456_000);
    const [model] = (await listed(key)).data;
    const { usage } = await expectDecision(await ask(service, key));
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 500_000);
    expect(model?.price.input).toBe(123.456);
    expect(usage.cost_usd).toBe(Math.ceil(usage.input_tokens * 123.456) / 1_000_000);
  });
});

describe('GET /v1/models/{id}, an addition', () => {
  function show(key: string, id: string, init: RequestInit = {}): Promise<Response> {
    return service.fetch(`/v1/models/${id}`, { headers: { authorization: `Bearer ${key}` }, ...init });
  }

  test('shows the model as the list does, by its id, and by an alias', async () => {
    const { key } = await addAccount(service);
    const [listed_model] = (await listed(key)).data;
    await setModelAlias(service.accounts, OPERATOR, { alias: 'of/a:team', model_id: 'decision-1' });
    for (const id of ['decision-1', 'decision-1/', 'decision%2D1', 'of%2Fa%3Ateam']) {
      const response = await show(key, id);
      expect([id, response.status]).toEqual([id, 200]);
      expect(await response.json()).toEqual(listed_model);
    }
    await removeModelAlias(service.accounts, OPERATOR, 'of/a:team');
  });

  test('404 model_not_found with the ids that there are; a price, a hold or a row is nowhere', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    for (const id of ['decision-9', 'chat-1', 'models%00', '%E0%A4', 'constructor']) {
      const response = await show(account.key, id);
      const { error } = await expectError(response, 'model_not_found', 'model');
      expect(error.message).toContain('decision-1');
      expect(platformHeaders(response)).toEqual([]);
    }
    expect(await booksOf(service, account)).toEqual(before);
  });

  test('401 without a valid key, 404 not_found below it, and 405 with Allow for another method', async () => {
    const { key } = await addAccount(service);
    await expectError(await service.fetch('/v1/models/decision-1'), 'missing_api_key');
    await expectError(await show(`sk_svc_${'0'.repeat(32)}`, 'decision-1'), 'invalid_api_key');
    await expectError(await show(key, 'decision-1/prices'), 'not_found');
    const posted = await show(key, 'decision-1', { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('who asks for models that there are not spends refusals of the key, not of the address', async () => {
    const { key } = await addAccount(service);
    const statuses = new Set<number>();
    // Thousands of requests one after the other would take minutes on a busy machine.
    for (let asked = 0; asked < 10_000 && !statuses.has(429); asked += 100) {
      const shown = await Promise.all(Array.from({ length: 100 }, () => show(key, 'nothing')));
      for (const { status } of shown) statuses.add(status);
    }
    expect([...statuses]).toEqual([404, 429]);
    expect((await show((await addAccount(service)).key, 'decision-1')).status).toBe(200);
    await expectError(await service.fetch('/v1/models'), 'missing_api_key');
  });
});

describe('GET /v1/models', () => {
  test('lists live models only: none that is coming soon, none without an engine, no alias', async () => {
    const { accounts } = service;
    await addModel(accounts, OPERATOR, {
      id: 'decision-2',
      kind: 'decision',
      description: 'Coming soon.',
      context_tokens: 4_096,
      input_price_micros_per_million_tokens: 1,
    });
    await setModelAlias(accounts, OPERATOR, { alias: 'decision-latest', model_id: 'decision-1' });
    const { key } = await addAccount(service);
    const only = { data: [{ id: 'decision-1' }], models: [{ name: 'decision-1' }] };
    expect(await (await list(key)).json()).toMatchObject(only);
    await service.execute("UPDATE models SET status = 'live' WHERE id = 'decision-2'");
    expect(await (await list(key)).json()).toMatchObject(only);
  });

  test('lists every live model, in the order of their ids, with the data of its row', async () => {
    const { accounts } = service;
    const row = {
      kind: 'decision',
      context_tokens: 4_096,
      input_price_micros_per_million_tokens: 1,
    } as const;
    const weights = { weights: '/models/decision-0.gguf', weights_sha256: 'x', profile: 'y' };
    const described = { ...row, description: 'Another one.' };
    const at_ms = Date.UTC(2026, 10, 5);
    const opened = { ...accounts, clock: new TestClock(at_ms) };
    await addOpenModel(opened, OPERATOR, { ...described, id: 'decision-0' }, weights);
    await addModel(accounts, OPERATOR, { ...described, id: 'decision-00' }, weights);
    const { key } = await addAccount(service);
    const body: unknown = await (await list(key)).json();
    expect(body).toMatchObject({
      data: [
        {
          id: 'decision-0',
          object: 'model',
          created: at_ms / 1_000,
          owned_by: 'tds',
          kind: 'decision',
          status: 'live',
        },
        { id: 'decision-1' },
      ],
      models: [
        { name: 'decision-0', description: 'Another one.', release_date: '2026-11-05' },
        { name: 'decision-1' },
      ],
    });
    expect(JSON.stringify(body)).not.toContain('/models/');
    await removeModel(accounts, OPERATOR, 'decision-0');
    await removeModel(accounts, OPERATOR, 'decision-00');
    expect(await (await list(key)).json()).toMatchObject({ data: [{ id: 'decision-1' }] });
  });

  test('the list in the form of other servers stands beside it', async () => {
    const body: unknown = await (await list((await addAccount(service)).key)).json();
    expect(body).toMatchObject({
      models: [
        {
          name: 'decision-1',
          description: expect.any(String),
          release_date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        },
      ],
    });
  });

  test('carries x-request-id and none of the other headers', async () => {
    const response = await list((await addAccount(service)).key);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    expect(platformHeaders(response)).toEqual([]);
  });

  test('is not billed, not recorded, and does not count toward requests per minute', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    for (let count = 0; count < 5; count += 1) expect((await list(account.key)).status).toBe(200);
    expect(await booksOf(service, account)).toEqual(before);
    const response = await ask(service, account.key);
    await expectDecision(response);
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('299');
  });

  test("does not update a key's last-used time, as a decision does", async () => {
    const account = await addAccount(service);
    const lastUsed = async () => {
      const [row] = await service.execute(
        `SELECT last_used_at_ms FROM api_keys WHERE id = '${account.key_id}'`,
      );
      return row?.last_used_at_ms;
    };
    await list(account.key);
    await service.service.services.keys.flushLastUsed();
    expect(await lastUsed()).toBeNull();
    const before_ms = service.clock.now_ms();
    await expectDecision(await ask(service, account.key));
    await service.service.services.keys.flushLastUsed();
    expect(Number(await lastUsed())).toBeGreaterThanOrEqual(before_ms);
  });

  test('does not check credit: an organization on Tier 0 gets the list', async () => {
    expect((await list((await addAccount(service, { credit_dollars: 0 })).key)).status).toBe(200);
  });

  test('401 without a key and with an unknown one', async () => {
    await expectError(await service.fetch('/v1/models'), 'missing_api_key');
    await expectError(await list(`sk_svc_${'0'.repeat(32)}`), 'invalid_api_key');
  });
});
