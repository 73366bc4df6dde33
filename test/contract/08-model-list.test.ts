import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/accounts/actor.ts';
import { addModel, addOpenModel, removeModel, setModelAlias } from '../../src/catalog/changes.ts';
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
    await setModelAlias(accounts, OPERATOR, { alias: 'jev-latest', model_id: 'decision-1' });
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
        { id: 'decision-0', object: 'model', owned_by: 'tds', kind: 'decision', status: 'live' },
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
