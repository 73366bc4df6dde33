import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { OPERATOR } from '../../src/access/actor.ts';
import { revokeKey, setKeyLimit } from '../../src/accounts/keys.ts';
import { setSuspended, setTierSettings } from '../../src/accounts/organizations.ts';
import { archiveProject, changeProject } from '../../src/accounts/projects.ts';
import { PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { creditByHand } from '../../src/payments/credit.ts';
import { expectDecision } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { Gate, intercepted, withoutTable } from '../support/faults.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { metricIn } from '../support/metrics.ts';
import { booksOf, closeAudited, newEntryId, usageOf } from '../support/money.ts';
import { ask } from '../support/requests.ts';
import {
  addAccount,
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts';
import { answersOf, BatchClient, codesOf, HEADER, ndjson, record, sendBatch } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const MINUTE_MS = 60_000;

let own: TestService | undefined;
afterEach(async () => {
  if (own !== undefined) await closeAudited(own);
  own = undefined;
});

/** A service whose model answers at once, and whose pauses move the clock instead of taking time. */
async function start(options: TestServiceOptions = {}) {
  const clock = MovableClock.stopped();
  const pauses: number[] = [];
  const service = await startTestService({
    clock,
    pause: (duration_ms) => {
      pauses.push(duration_ms);
      clock.advance(duration_ms);
      return new Promise(setImmediate);
    },
    embedded: true,
    openEngine: instantEngine,
    ...options,
  });
  own = service;
  return { service, clock, pauses };
}

function records(count: number) {
  return Array.from({ length: count }, (_, number) => record(number));
}

/** The most that the rows within any minute add up to. */
function mostInAMinute(rows: readonly { readonly time_ms: number; readonly amount: number }[]): number {
  return Math.max(
    ...rows.map(({ time_ms: end_ms }) =>
      rows
        .filter(({ time_ms }) => time_ms <= end_ms && time_ms > end_ms - MINUTE_MS)
        .reduce((sum, { amount }) => sum + amount, 0),
    ),
  );
}

async function limited(service: TestService, requests_per_minute: number, tokens_per_minute: number) {
  const account = await addRichlyLimited(service, 1_000_000);
  await setTierSettings(service.accounts, OPERATOR, account.organization_id, {
    requests_per_minute,
    tokens_per_minute,
  });
  return account;
}

describe('rate limits slow a batch down', () => {
  test('requests: every line is answered, a tenth of the limit is left, and none was refused', async () => {
    const { service, clock } = await start();
    const account = await limited(service, 20, 1_000_000);
    const began_ms = clock.monotonic_ms();
    const answers = await answersOf(await sendBatch(service, account.key, [HEADER, ...records(50)]));
    expect(answers.map(({ id }) => id)).toEqual(records(50).map(({ id }) => id));
    expect(codesOf(answers).every(([, code]) => code === null)).toBe(true);
    const rows = await usageOf(service, account);
    expect(rows).toHaveLength(50);
    expect(mostInAMinute(rows.map(({ time_ms }) => ({ time_ms, amount: 1 })))).toBe(18);
    // 50 lines are 18, 18 and 14.
    expect(clock.monotonic_ms() - began_ms).toBeGreaterThanOrEqual(2 * MINUTE_MS);
  });

  test('and what its lines wait on purpose is in no time that an operator watches', async () => {
    const metrics = new PrometheusMetrics({ version: '1', commit: 'abc', runtime: 'test' });
    const { service } = await start({ metrics });
    const account = await limited(service, 20, 1_000_000);
    await answersOf(await sendBatch(service, account.key, [HEADER, ...records(50)]));
    await expectDecision(await ask(service, account.key));
    const text = await metrics.text();
    metrics.close();
    const labels = 'model="decision-1",mode="fast"';
    expect(metricIn(text, `tds_questions_total{${labels}}`)).toBe(51);
    for (const part of ['request', 'platform', 'queue', 'model']) {
      expect(metricIn(text, `tds_${part}_seconds_count{${labels}}`)).toBe(1);
      expect(metricIn(text, `tds_${part}_seconds_bucket{le="1",${labels}}`)).toBe(1);
    }
  });

  test('tokens: every line is answered, and no minute has more than the limit leaves', async () => {
    const { service } = await start();
    const account = await limited(service, 1_000_000, 200);
    const answers = await answersOf(await sendBatch(service, account.key, [HEADER, ...records(30)]));
    expect(codesOf(answers).every(([, code]) => code === null)).toBe(true);
    const rows = await usageOf(service, account);
    const most = mostInAMinute(rows.map(({ time_ms, input_tokens }) => ({ time_ms, amount: input_tokens })));
    expect(rows).toHaveLength(30);
    expect(most).toBeGreaterThanOrEqual(100);
    expect(most).toBeLessThanOrEqual(180);
  });

  test('a line above the whole limit of tokens runs when the window is empty', async () => {
    const { service, pauses } = await start();
    const account = await limited(service, 1_000_000, 100);
    const large = { id: 'large', state: 'I was charged twice. '.repeat(100) };
    const answers = await answersOf(
      await sendBatch(service, account.key, [HEADER, record(1), large, record(2)]),
    );
    expect(codesOf(answers).map(([, code]) => code)).toEqual([null, null, null]);
    expect(pauses.length).toBeGreaterThan(0);
  });

  test('a line above the whole limit, beside single requests, fails alone and holds up none for long', async () => {
    let key = '';
    const { service, clock } = await start({
      pause: async (duration_ms) => {
        clock.advance(duration_ms / 2);
        await expectDecision(await ask(service, key));
        clock.advance(duration_ms / 2);
      },
    });
    const account = await limited(service, 1_000_000, 200);
    ({ key } = account);
    await expectDecision(await ask(service, key));
    const large = { id: 'large', state: 'I was charged twice. '.repeat(100) };
    const answers = await answersOf(await sendBatch(service, key, [HEADER, large, record(1), record(2)]));
    expect(codesOf(answers).map(([, code]) => code)).toEqual(['rate_limit_exceeded', null, null]);
    expect(answers[0]).toMatchObject({
      error: { message: expect.stringMatching(/200 input tokens per minute: this request needs \d+/) },
    });
  });

  test('a single request is answered while a batch waits for its window', async () => {
    const waits = new Gate();
    const { service, clock } = await start({
      pause: async (duration_ms) => {
        await waits.pass();
        clock.advance(duration_ms);
      },
    });
    const account = await limited(service, 20, 1_000_000);
    const sent = sendBatch(service, account.key, [HEADER, ...records(30)]);
    await waits.reached;
    await expectDecision(await ask(service, account.key));
    waits.open();
    expect(codesOf(await answersOf(await sent)).every(([, code]) => code === null)).toBe(true);
  });
});

describe('a change while lines wait for the rate limits', () => {
  /** Nine lines are answered, and then the change is made, while the others wait. */
  async function answersAfter(change: (service: TestService, account: TestAccount) => Promise<unknown>) {
    const waits = new Gate();
    let pauses = 0;
    const { service, clock } = await start({
      pause: async (duration_ms) => {
        pauses += 1;
        await waits.pass();
        clock.advance(duration_ms);
      },
    });
    const account = await limited(service, 10, 1_000_000);
    const sent = sendBatch(service, account.key, [HEADER, ...records(30)]);
    await waits.reached;
    await change(service, account);
    service.service.services.keys.invalidate();
    waits.open();
    const codes = codesOf(await answersOf(await sent)).map(([, code]) => code);
    return { codes, pauses, rows: await usageOf(service, account) };
  }

  test.each([
    [
      'a revoked key',
      (service: TestService, { key_id }: TestAccount) => revokeKey(service.accounts, OPERATOR, key_id),
    ],
    [
      'a suspended organization',
      (service: TestService, { organization_id }: TestAccount) =>
        setSuspended(service.accounts, OPERATOR, { organization_id, is_suspended: true }),
    ],
    [
      'an archived project',
      (service: TestService, { project_id }: TestAccount) =>
        archiveProject(service.accounts, OPERATOR, project_id),
    ],
  ])('%s: no line that waits is asked or charged, and the batch ends', async (_name, change) => {
    const { codes, rows } = await answersAfter(change);
    expect(codes.filter((code) => code === null)).toHaveLength(9);
    expect(new Set(codes)).toEqual(new Set([null, 'invalid_api_key']));
    expect(rows.map(({ status }) => status)).toEqual(Array(9).fill(200));
  });

  test('a higher limit lets them in', async () => {
    const { codes, pauses } = await answersAfter((service, { organization_id }) =>
      setTierSettings(service.accounts, OPERATOR, organization_id, { requests_per_minute: 1_000 }),
    );
    expect(codes).toEqual(Array(30).fill(null));
    expect(pauses).toBe(1);
  });
});

describe('a model that has no room', () => {
  test('a full queue: lines wait for their places, and none fails', async () => {
    const { service } = await start({ queue_limit: 2 });
    const account = await addRichlyLimited(service, 1_000_000);
    const answers = await answersOf(await sendBatch(service, account.key, [HEADER, ...records(100)]));
    expect(codesOf(answers).every(([, code]) => code === null)).toBe(true);
    expect((await usageOf(service, account)).map(({ status }) => status)).toEqual(Array(100).fill(200));
  });

  test('consistent mode that still starts: lines wait, and leave no failed row', async () => {
    const starting = new Gate();
    const { service, pauses } = await start({
      cold: true,
      pause: (duration_ms) => {
        pauses.push(duration_ms);
        starting.open();
        return new Promise(setImmediate);
      },
      openEngine: (engine) => {
        let evaluations = 0;
        return intercepted(instantEngine(engine), async (run) => {
          evaluations += 1;
          // The first is the start of fast mode, the second that of consistent mode.
          if (evaluations === 2) await starting.pass();
          return await run();
        });
      },
    });
    const account = await addRichlyLimited(service, 1_000_000);
    const lines = [{ ...HEADER, mode: 'consistent' }, ...records(5)];
    const answers = await answersOf(await sendBatch(service, account.key, lines));
    expect(codesOf(answers).every(([, code]) => code === null)).toBe(true);
    expect((await usageOf(service, account)).map(({ status }) => status)).toEqual(Array(5).fill(200));
    expect(pauses.length).toBeGreaterThan(0);
  });
});

test('a database that takes no holds is waited for', async () => {
  const waits = new Gate();
  const { service } = await start({ pause: () => waits.pass() });
  const account = await addRichlyLimited(service, 1_000_000);
  const client = new BatchClient(service, account.key);
  client.write(HEADER, record(0));
  const answers = client.answers();
  expect((await answers.next()).value).toMatchObject({ id: 'r0', object: 'decision' });
  await withoutTable(service, 'ledger_entries', async () => {
    client.write(record(1));
    client.end();
    await waits.reached;
  });
  waits.open();
  expect((await answers.next()).value).toMatchObject({ id: 'r1', object: 'decision' });
  expect((await answers.next()).done).toBe(true);
});

test('a repeated line of an Idempotency-Key waits for the rate limit, too', async () => {
  const { service, pauses } = await start();
  const account = await limited(service, 10, 1_000_000);
  const headers = { 'idempotency-key': 'run' };
  const lines = [HEADER, ...records(9)];
  await answersOf(await sendBatch(service, account.key, lines, { headers }));
  expect(pauses).toEqual([]);
  const again = await answersOf(await sendBatch(service, account.key, lines, { headers }));
  expect(again.map((answer) => 'replayed' in answer)).toEqual(Array(9).fill(true));
  expect(pauses.length).toBeGreaterThan(0);
  expect(await usageOf(service, account)).toHaveLength(9);
});

test('broken lines spend the refusals of the key, and wait when there are none left', async () => {
  const { service, clock, pauses } = await start();
  const account = await limited(service, 1_000, 1_000_000);
  const began_ms = clock.monotonic_ms();
  const lines = [HEADER, ...Array<string>(5_000).fill('{'), record(1)];
  const answers = await answersOf(await sendBatch(service, account.key, lines));
  expect(answers).toHaveLength(5_001);
  expect(answers.at(-1)).toMatchObject({ id: 'r1', object: 'decision' });
  // 3,000 a minute, and as many at once.
  expect(clock.monotonic_ms() - began_ms).toBeGreaterThan(30_000);
  expect(pauses.length).toBeGreaterThan(0);
});

test('blank lines spend them by their bytes, before the first line and after it', async () => {
  const { service, pauses } = await start();
  const account = await limited(service, 1_000, 1_000_000);
  const blank = (count: number) => Array<string>(count).fill(' '.repeat(1_000_000));
  // 3,000 refusals are 48 MB, and the second batch finds none left.
  for (const lines of [
    [...blank(55), HEADER, record(1)],
    [HEADER, ...blank(5), record(1)],
  ]) {
    const before = pauses.length;
    const body = gzipSync(ndjson(lines), { level: 1 });
    const headers = { 'content-encoding': 'gzip' };
    const answers = await answersOf(await sendBatch(service, account.key, body, { headers }));
    expect(answers).toMatchObject([{ id: 'r1', line: lines.length, object: 'decision' }]);
    expect(pauses.length).toBeGreaterThan(before);
  }
});

describe('a batch that cannot be paid for ends with the line to go on with', () => {
  /** The lines of two runs: every record is answered, and charged once, and nothing else is charged. */
  async function expectOnce(
    service: TestService,
    account: TestAccount,
    code: string,
    goOn: () => Promise<unknown>,
  ) {
    const all = records(200);
    const first = await answersOf(await sendBatch(service, account.key, [HEADER, ...all]));
    const last = first.at(-1);
    expect(last).toMatchObject({ id: null, error: { code } });
    const next = last?.line ?? 0;
    // Every line before has an answer or an error of its own.
    expect(first.slice(0, -1).map(({ line }) => line)).toEqual(
      Array.from({ length: next - 2 }, (_, index) => index + 2),
    );
    const answered = new Set(first.filter((answer) => 'object' in answer).map(({ id }) => id));
    expect(answered.size).toBeGreaterThan(0);
    expect(answered.size).toBeLessThan(100);
    await goOn();
    const missing = all.filter(({ id }) => !answered.has(id));
    const second = await answersOf(await sendBatch(service, account.key, [HEADER, ...missing]));
    expect(codesOf(second).every(([, failed]) => failed === null)).toBe(true);
    expect(answered.size + second.length).toBe(200);
    const rows = await usageOf(service, account);
    expect(rows).toHaveLength(200);
    return rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0);
  }

  test('for want of credit', async () => {
    const { service } = await start();
    const account = await addRichlyLimited(service, 505);
    const { organization_id } = account;
    const spent = await expectOnce(service, account, 'insufficient_credit', () =>
      creditByHand(service.accounts, OPERATOR, {
        organization_id,
        amount_micros: 1_000_000,
        entry_id: newEntryId(),
      }),
    );
    expect((await booksOf(service, account)).credit_micros).toBe(1_000_505 - spent);
  });

  test("for the project's spend limit", async () => {
    const { service } = await start();
    const account = await addRichlyLimited(service, 1_000_000);
    const { project_id } = account;
    const limit = (spend_limit_micros: number | null) =>
      changeProject(service.accounts, OPERATOR, { project_id, spend_limit_micros });
    await limit(505);
    const spent = await expectOnce(service, account, 'project_spend_limit', () => limit(null));
    expect((await booksOf(service, account)).credit_micros).toBe(1_000_000 - spent);
  });

  test("for the key's spend limit", async () => {
    const { service } = await start();
    const account = await addRichlyLimited(service, 1_000_000);
    const { key_id } = account;
    const limit = (monthly_limit_micros: number | null) =>
      setKeyLimit(service.accounts, OPERATOR, { key_id, monthly_limit_micros });
    await limit(505);
    const spent = await expectOnce(service, account, 'api_key_spend_limit', () => limit(null));
    expect((await booksOf(service, account)).credit_micros).toBe(1_000_000 - spent);
  });

  test('because the key was revoked', async () => {
    const { service } = await start();
    const account = await addRichlyLimited(service, 1_000_000);
    const client = new BatchClient(service, account.key);
    client.write(HEADER, record(0));
    const answers = client.answers();
    expect((await answers.next()).value).toMatchObject({ id: 'r0', object: 'decision' });
    await revokeKey(service.accounts, OPERATOR, account.key_id);
    service.service.services.keys.invalidate();
    client.write(record(1), record(2));
    const codes: unknown[] = [];
    let last: unknown;
    for await (const answer of answers) {
      codes.push('error' in answer ? answer.error.code : null);
      last = answer;
    }
    expect(new Set(codes)).toEqual(new Set(['invalid_api_key']));
    expect(last).toMatchObject({
      id: null,
      error: {
        message: expect.stringMatching(
          /send the lines from line [45] on again, and earlier ones whose error can be retried\.$/,
        ),
      },
    });
    client.leave();
  });

  test('a first request of an organization on Tier 0 is an ordinary error', async () => {
    const { service } = await start();
    const account = await addAccount(service, { credit_dollars: 0 });
    const response = await sendBatch(service, account.key, [HEADER, record(1)]);
    expect(response.status).toBe(402);
  });
});
