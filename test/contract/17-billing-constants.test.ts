import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { exportUsage } from '../../src/usage/export.ts';
import { type Around, intercepted } from '../support/faults.ts';
import { closeAudited, usageOf } from '../support/money.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectAnyError, expectDecision } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let around: Around = (run) => run();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    embedded: true,
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));
afterEach(() => {
  around = (run) => run();
});

describe('Billing constants', () => {
  test('input price $0.50 per 1M tokens for decision-1; output $0', async () => {
    const model = await service.accounts.store.catalog.findModel('decision-1');
    expect(model?.input_price_micros_per_million_tokens).toBe(500_000);
  });

  test('a usage export has one row per request, newest first, with exactly the columns of a usage export', async () => {
    const account = await addAccount(service);
    const first = await ask(service, account.key, { questions: ALL_TYPES });
    const { usage } = await expectDecision(first);
    // Rows are ordered by time, so that two requests must not share a millisecond.
    service.clock.advance(5);
    around = () => Promise.reject(new Error('a decode failed'));
    const second = await post(service, account.key, SMALL_REQUEST, '/v1/systemone?mode=consistent');
    await expectAnyError(second);

    let text = '';
    for await (const piece of exportUsage(service.accounts.store.usage, account)) text += piece;
    const [header, ...lines] = text.trimEnd().split('\r\n');
    expect(header).toBe(
      'time_utc,model,mode,endpoint,project,api_key,status,questions,input_tokens,cost_usd,latency_ms,request_id',
    );
    const rows = lines.map((line) => line.split(','));
    const times = (await usageOf(service, account)).map(({ time_ms }) => new Date(time_ms).toISOString());
    const [failed_latency, latency] = [rows[0]?.[10], rows[1]?.[10]];
    expect(rows).toEqual([
      [
        times[1] ?? '',
        'decision-1',
        'consistent',
        '/v1/systemone',
        'Default',
        'Test key',
        '502',
        '0',
        '0',
        '0.000000',
        failed_latency ?? '',
        second.headers.get('x-request-id') ?? '',
      ],
      [
        times[0] ?? '',
        'decision-1',
        'fast',
        '/v1/decisions',
        'Default',
        'Test key',
        '200',
        '3',
        String(usage.input_tokens),
        usage.cost_usd.toFixed(6),
        latency ?? '',
        first.headers.get('x-request-id') ?? '',
      ],
    ]);
    expect(Number(latency)).toBeGreaterThan(0);
    expect(Number(failed_latency)).toBeGreaterThanOrEqual(0);
  });
});

describe('Versioning', () => {
  test('the interface version is in the path prefix /v1/', async () => {
    const { key } = await addAccount(service);
    await expectDecision(await post(service, key, SMALL_REQUEST, '/v1/decisions'));
    expect((await post(service, key, SMALL_REQUEST, '/decisions')).status).toBe(404);
    expect((await post(service, key, SMALL_REQUEST, '/v2/decisions')).status).toBe(404);
  });
});
