import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { EvaluationFailed } from '../../native/engine.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { setKeyLimit } from '../../src/accounts/keys.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { changeProject } from '../../src/accounts/projects.ts';
import { MovableClock } from '../support/clock.ts';
import { type Around, intercepted, onePlanAtATime, withoutTable } from '../support/faults.ts';
import { closeAudited } from '../support/money.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision, expectError, platformHeaders } from './expectations.ts';
import { type Code, MODEL_HEADERS, RATE_REQUEST_HEADERS } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let around: Around = (run) => run();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    clock: MovableClock.stopped(),
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));

describe('x-ratelimit-* and service-processing-ms accompany every response that reached the model', () => {
  test('successful', async () => {
    const response = await ask(service, (await addAccount(service)).key);
    await expectDecision(response);
    expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
  });

  test('rejected by the model', async () => {
    const response = await ask(service, (await addAccount(service)).key, {
      questions: { q: { type: 'noul', criteria: 1 } },
    });
    await expectError(response, 'invalid_request', 'questions.q.criteria');
    expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
  });

  test('failed by the model', async () => {
    around = () => Promise.reject(new EvaluationFailed('a decode failed'));
    const response = await ask(service, (await addAccount(service)).key);
    around = (run) => run();
    await expectError(response, 'model_unavailable');
    expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
  });
});

describe('x-typesafe-request-id, an addition, is a copy of x-request-id', () => {
  test('on every response of /v1/systemone and /v1/models, and on no other path', async () => {
    const { key } = await addAccount(service);
    const answered = await post(service, key, SMALL_REQUEST, '/v1/systemone');
    const responses = [
      answered,
      await post(service, key, {}, '/v1/systemone'),
      await post(service, 'nonsense', SMALL_REQUEST, '/v1/systemone'),
      await service.fetch('/v1/systemone'),
      await service.fetch('/v1/models', { headers: { 'x-api-key': key } }),
      await service.fetch('/v1/models'),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 400, 401, 405, 200, 401]);
    for (const { headers } of responses) {
      expect(headers.get('x-typesafe-request-id')).toMatch(/^req_/);
      expect(headers.get('x-typesafe-request-id')).toBe(headers.get('x-request-id'));
    }
    for (const other of [await ask(service, key), await service.fetch('/v1/nothing')]) {
      expect(other.headers.has('x-typesafe-request-id')).toBe(false);
    }
  });
});

describe('A 429 rate_limit_exceeded carries the x-ratelimit-* request headers and Retry-After', () => {
  for (const limit of ['requests_per_minute', 'tokens_per_minute']) {
    test(limit, async () => {
      const account = await addAccount(service);
      await setTierSettings(service.accounts, OPERATOR, account.organization_id, { [limit]: 1 });
      await expectDecision(await ask(service, account.key));
      const response = await ask(service, account.key);
      await expectError(response, 'rate_limit_exceeded');
      expect(platformHeaders(response)).toEqual(['retry-after', ...RATE_REQUEST_HEADERS]);
      expect(response.headers.get('retry-after')).toBe('60');
    });
  }
});

describe('Other errors carry only x-request-id', () => {
  const expectBare = async (response: Response, code: Code, param: string | null = null) => {
    await expectError(response, code, param);
    expect(platformHeaders(response)).toEqual([]);
  };

  test('401, 400, 404, 413, 422', async () => {
    const { key } = await addAccount(service);
    await expectBare(await service.fetch('/v1/decisions', { method: 'POST' }), 'missing_api_key');
    await expectBare(await ask(service, `${key}x`), 'invalid_api_key');
    await expectBare(await post(service, key, '{'), 'invalid_json');
    await expectBare(await ask(service, key, { state: null }), 'missing_state', 'state');
    await expectBare(await ask(service, key, { model: 'chat-1' }), 'model_not_found', 'model');
    await expectBare(await service.fetch('/nothing'), 'not_found');
    await expectBare(await service.fetch('/v1/decisions'), 'method_not_allowed');
    await expectBare(await post(service, key, ' '.repeat(1_100_000)), 'request_too_large');
    await expectBare(await ask(service, key, { mode: 1 }), 'invalid_mode', 'mode');
  });

  test('402 on Tier 0 and at the hold, 429 project_spend_limit, and that of a key', async () => {
    await expectBare(
      await ask(service, (await addAccount(service, { credit_dollars: 0 })).key),
      'insufficient_credit',
    );
    const poor = await addAccount(service, { credit_dollars: 0, tier: 1 });
    await expectBare(await ask(service, poor.key), 'insufficient_credit');
    const spent = await addAccount(service);
    await changeProject(service.accounts, OPERATOR, { project_id: spent.project_id, spend_limit_micros: 0 });
    await expectBare(await ask(service, spent.key), 'project_spend_limit');
    const limited = await addAccount(service);
    await setKeyLimit(service.accounts, OPERATOR, { key_id: limited.key_id, monthly_limit_micros: 0 });
    await expectBare(await ask(service, limited.key), 'api_key_spend_limit');
  });

  test('503 before the model', async () => {
    const { key } = await addAccount(service);
    await withoutTable(service, 'api_keys', async () => {
      await expectBare(await ask(service, key), 'auth_unavailable');
    });
    await withoutTable(service, 'models', async () => {
      await expectBare(await ask(service, key), 'catalog_unavailable');
    });
    await withoutTable(service, 'ledger_entries', async () => {
      await expectBare(await ask(service, key), 'billing_unavailable');
    });
  });
});

describe('Values', () => {
  test('x-ratelimit-limit-requests and -tokens are those of the organization', async () => {
    const account = await addAccount(service);
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, {
      requests_per_minute: 77,
      tokens_per_minute: 5_555,
    });
    const response = await ask(service, account.key);
    await expectDecision(response);
    expect(response.headers.get('x-ratelimit-limit-requests')).toBe('77');
    expect(response.headers.get('x-ratelimit-limit-tokens')).toBe('5555');
  });

  test('x-ratelimit-remaining-requests is what is left after this one', async () => {
    const { key } = await addAccount(service);
    const remaining: (string | null)[] = [];
    for (let count = 0; count < 3; count += 1) {
      const response = await ask(service, key);
      await expectDecision(response);
      remaining.push(response.headers.get('x-ratelimit-remaining-requests'));
    }
    expect(remaining).toEqual(['299', '298', '297']);
  });

  test('x-ratelimit-reset-requests is the time until a slot frees, in whole seconds with an s', async () => {
    const { key } = await addAccount(service);
    const resets: (string | null)[] = [];
    for (const wait_ms of [0, 15_000, 44_500, 499]) {
      service.clock.advance(wait_ms);
      const response = await ask(service, key);
      await expectDecision(response);
      resets.push(response.headers.get('x-ratelimit-reset-requests'));
    }
    expect(resets).toEqual(['60s', '45s', '1s', '1s']);
  });

  test('x-ratelimit-reset-tokens, an addition, is the time until the oldest tokens leave', async () => {
    const { key } = await addAccount(service);
    const resets: (string | null)[] = [];
    for (const wait_ms of [0, 15_000, 44_500, 500]) {
      service.clock.advance(wait_ms);
      const response = await ask(service, key);
      await expectDecision(response);
      resets.push(response.headers.get('x-ratelimit-reset-tokens'));
    }
    expect(resets).toEqual(['60s', '45s', '1s', '15s']);
  });

  test('x-ratelimit-remaining-tokens counts this request at its estimate, and those before as billed', async () => {
    const { key } = await addAccount(service);
    const first = await ask(service, key);
    const { usage } = await expectDecision(first);
    const second = await ask(service, key);
    await expectDecision(second);
    const estimate = 300_000 - Number(first.headers.get('x-ratelimit-remaining-tokens'));
    expect(estimate).toBeGreaterThan(usage.input_tokens);
    expect(second.headers.get('x-ratelimit-remaining-tokens')).toBe(
      String(300_000 - usage.input_tokens - estimate),
    );
  });

  test('service-processing-ms is the total platform time: latency_ms, and what passes outside of the model', async () => {
    const clock = MovableClock.stopped();
    const own = await startTestService({
      clock,
      openEngine: (engine) =>
        intercepted(
          onePlanAtATime(engine, (compute) => {
            clock.advance(120);
            return compute();
          }),
          (run) => {
            clock.advance(35);
            return run();
          },
        ),
    });
    try {
      const response = await post(own, (await addAccount(own)).key, SMALL_REQUEST);
      const { latency_ms } = await expectDecision(response);
      expect(latency_ms).toBe(120);
      expect(Number(response.headers.get('service-processing-ms'))).toBe(155);
    } finally {
      await closeAudited(own);
    }
  });
});
