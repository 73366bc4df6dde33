import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import { DAY_MS } from '../../src/time/clock.ts';
import { exportUsage } from '../../src/usage/export.ts';
import { type Around, intercepted } from '../support/faults.ts';
import { closeAudited, usageOf } from '../support/money.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectAnyError, expectDecision, expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let around: Around = (run) => run();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));
afterEach(() => {
  around = (run) => run();
});

describe('Usage record', () => {
  test('of a request that was answered: its metadata, and nothing else', async () => {
    const account = await addAccount(service);
    const from_ms = service.clock.now_ms();
    const response = await ask(service, account.key, { questions: ALL_TYPES, mode: 'consistent' });
    const { usage, latency_ms } = await expectDecision(response);
    const rows = await usageOf(service, account);
    expect(rows).toEqual([
      {
        request_id: response.headers.get('x-request-id') ?? '',
        time_ms: expect.any(Number),
        organization_id: account.organization_id,
        project_id: account.project_id,
        api_key_id: account.key_id,
        model: 'decision-1',
        mode: 'consistent',
        endpoint: '/v1/decisions',
        status: 200,
        questions: 3,
        input_tokens: usage.input_tokens,
        cost_micros: Math.round(usage.cost_usd * 1e6),
        latency_ms: expect.any(Number),
      },
    ]);
    expect(rows[0]?.time_ms).toBeWithin(from_ms, service.clock.now_ms() + 1);
    expect(rows[0]?.latency_ms).toBe(latency_ms);
  });

  test('of a request that reached the model and failed: questions 0 and cost 0', async () => {
    const account = await addAccount(service);
    around = () => Promise.reject(new Error('a decode failed'));
    const response = await post(service, account.key, SMALL_REQUEST, '/v1/systemone');
    await expectAnyError(response);
    expect(await usageOf(service, account)).toEqual([
      {
        request_id: response.headers.get('x-request-id') ?? '',
        time_ms: expect.any(Number),
        organization_id: account.organization_id,
        project_id: account.project_id,
        api_key_id: account.key_id,
        model: 'decision-1',
        mode: 'fast',
        endpoint: '/v1/systemone',
        status: 502,
        questions: 0,
        input_tokens: 0,
        cost_micros: 0,
        latency_ms: expect.any(Number),
      },
    ]);
  });

  test('of a request that the model rejected: questions 0 and cost 0, in the export too', async () => {
    const account = await addAccount(service);
    const rejected = { ...SMALL_REQUEST, questions: { q: { type: 'noul', criteria: [] } } };
    const response = await post(service, account.key, rejected);
    await expectError(response, 'invalid_request', 'questions.q.criteria');
    const request_id = response.headers.get('x-request-id') ?? '';
    expect(await usageOf(service, account)).toEqual([
      {
        request_id,
        time_ms: expect.any(Number),
        organization_id: account.organization_id,
        project_id: account.project_id,
        api_key_id: account.key_id,
        model: 'decision-1',
        mode: 'fast',
        endpoint: '/v1/decisions',
        status: 422,
        questions: 0,
        input_tokens: 0,
        cost_micros: 0,
        latency_ms: 0,
      },
    ]);
    const { organization_id } = account;
    const exported = await Array.fromAsync(exportUsage(service.accounts.store.usage, { organization_id }));
    expect(exported.join('')).toContain(
      `,decision-1,fast,/v1/decisions,Default,Test key,422,0,0,0.000000,0,${request_id}`,
    );
  });

  test('of requests that the model rejected: no more of an organization than its budget, which is its own', async () => {
    const own = await startTestService({ rejected_rows_per_day: 2 });
    try {
      const [greedy, other] = [await addAccount(own), await addAccount(own)];
      const rejected = { ...SMALL_REQUEST, questions: { q: { type: 'noul', criteria: [] } } };
      for (let request = 0; request < 4; request += 1)
        await expectError(await post(own, greedy.key, rejected), 'invalid_request', 'questions.q.criteria');
      await expectError(await post(own, other.key, rejected), 'invalid_request', 'questions.q.criteria');
      await expectDecision(await ask(own, greedy.key));
      expect((await usageOf(own, greedy)).map(({ status }) => status)).toEqual([422, 422, 200]);
      expect(await usageOf(own, other)).toHaveLength(1);
      own.clock.advance(DAY_MS / 2);
      await expectError(await post(own, greedy.key, rejected), 'invalid_request', 'questions.q.criteria');
      expect(await usageOf(own, greedy)).toHaveLength(4);
    } finally {
      await closeAudited(own);
    }
  });

  const ENDINGS: readonly { readonly of: string; readonly status: number; readonly around: Around }[] = [
    { of: 'was answered', status: 200, around: (run) => run() },
    { of: 'failed', status: 502, around: () => Promise.reject(new Error('a decode failed')) },
  ];
  for (const ending of ENDINGS) {
    test(`of a request that ${ending.of}: its latency is to the microsecond, like that of a response`, async () => {
      const account = await addAccount(service);
      around = ending.around;
      const response = await ask(service, account.key);
      await response.text();
      const latencies = (await usageOf(service, account)).map(({ latency_ms }) => latency_ms);
      expect([response.status, latencies]).toEqual([
        ending.status,
        latencies.map((latency_ms) => Number(latency_ms.toFixed(3))),
      ]);
      expect(latencies).toHaveLength(1);
    });
  }

  test('one for each request that reached the model, also of many at once', async () => {
    const account = await addAccount(service);
    let evaluations = 0;
    around = (run) => (evaluations++ % 4 === 0 ? Promise.reject(new Error('a decode failed')) : run());
    const responses = await Promise.all(Array.from({ length: 20 }, () => ask(service, account.key)));
    await Promise.all(responses.map((response) => response.text()));
    const rows = await usageOf(service, account);
    expect(rows.map(({ request_id }) => request_id).sort()).toEqual(
      responses.map(({ headers }) => headers.get('x-request-id') ?? '').sort(),
    );
    expect(rows.filter(({ status }) => status === 200)).toHaveLength(15);
    expect(rows.filter(({ status }) => status === 502)).toHaveLength(5);
  });

  test('none for any refusal before the model', async () => {
    const limited = await addAccount(service);
    await setTierSettings(service.accounts, OPERATOR, limited.organization_id, { requests_per_minute: 1 });
    await expectDecision(await ask(service, limited.key));
    const spent = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, { project_id: spent.project_id, spend_limit_micros: 0 });
    const poor = await addAccount(service, { credit_dollars: 0, tier: 1 });
    const tier0 = await addAccount(service, { credit_dollars: 0 });
    const rich = await addAccount(service);
    const refusals: readonly (readonly [string, unknown])[] = [
      [limited.key, SMALL_REQUEST],
      [spent.key, SMALL_REQUEST],
      [poor.key, SMALL_REQUEST],
      [tier0.key, SMALL_REQUEST],
      [rich.key, '{'],
      [rich.key, { ...SMALL_REQUEST, model: 'chat-1' }],
      [rich.key, { ...SMALL_REQUEST, mode: 'slow' }],
      [rich.key, ' '.repeat(1_100_000)],
    ];
    for (const [key, body] of refusals) await expectAnyError(await post(service, key, body));
    for (const account of [spent, poor, tier0, rich]) expect(await usageOf(service, account)).toEqual([]);
    expect(await usageOf(service, limited)).toHaveLength(1);
  });
});
