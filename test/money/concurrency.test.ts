import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { takeDatabase } from '../support/emptied-postgres.ts';
import { booksOf, usageOf } from '../support/money.ts';
import { isPostgresMissing, type TestDatabase } from '../support/postgres.ts';
import { post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestService,
} from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const CONNECTIONS = 64;
const SUCCESSES = 40;

async function costOfOne(service: TestService): Promise<number> {
  const account = await addRichlyLimited(service, 1_000_000);
  await (await post(service, account.key, SMALL_REQUEST)).arrayBuffer();
  return (await usageOf(service, account))[0]?.cost_micros ?? Number.NaN;
}

const DATABASES = isPostgresMissing() ? ['SQLite'] : ['SQLite', 'PostgreSQL'];

describe.each(DATABASES)('on %s', (name) => {
  let service: TestService;
  let postgres: TestDatabase | undefined;
  beforeAll(async () => {
    postgres = name === 'PostgreSQL' ? await takeDatabase() : undefined;
    service = await startTestService(postgres === undefined ? {} : { postgres_url: postgres.url });
  });
  afterAll(async () => {
    await service.close();
    await postgres?.[Symbol.asyncDispose]();
  });

  test(`credit for exactly ${SUCCESSES} requests gives exactly ${SUCCESSES} answers under ${CONNECTIONS} connections`, async () => {
    const cost_micros = await costOfOne(service);
    const account = await addRichlyLimited(service, SUCCESSES * cost_micros);
    let asked = 0;
    const statuses: number[] = [];
    const ask = async () => {
      while (asked < SUCCESSES + CONNECTIONS) {
        asked += 1;
        const response = await post(service, account.key, SMALL_REQUEST);
        await response.arrayBuffer();
        statuses.push(response.status);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, ask));
    expect(statuses.filter((status) => status === 200)).toHaveLength(SUCCESSES);
    expect(statuses.filter((status) => status !== 200 && status !== 402)).toEqual([]);
    expect(await booksOf(service, account)).toEqual({
      credit_micros: 0,
      held_micros: 0,
      usage_rows: SUCCESSES,
    });
    expect((await service.database.audit()).ok).toBe(true);
  });

  test('clients that leave at any moment leave no hold open, and are charged what the usage rows say', async () => {
    const credit_micros = 10_000_000;
    const account = await addRichlyLimited(service, credit_micros);
    const body = { ...SMALL_REQUEST, state: `${SMALL_REQUEST.state} `.repeat(20) };
    const outcomes = await Promise.all(
      Array.from({ length: CONNECTIONS }, async (_, index) => {
        const leave = new AbortController();
        const request = service.fetch('/v1/decisions', {
          method: 'POST',
          headers: { authorization: `Bearer ${account.key}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal: leave.signal,
        });
        // Before it is sent whole, while it waits or runs, and after its answer has begun.
        if (index % 4 !== 0) {
          const turns = index * 20;
          for (let turn = 0; turn < turns; turn += 1) await new Promise((resume) => setImmediate(resume));
          leave.abort();
        }
        return request.then((response) => response.status).catch(() => null);
      }),
    );
    const answered = outcomes.filter((status) => status === 200).length;
    await service.server.stop();

    const rows = await usageOf(service, account);
    const charged_micros = rows.reduce((sum, row) => sum + row.cost_micros, 0);
    expect(outcomes.filter((status) => status !== null && status !== 200)).toEqual([]);
    expect(rows.filter((row) => row.status === 200).length).toBeGreaterThanOrEqual(answered);
    expect(await booksOf(service, account)).toMatchObject({
      credit_micros: credit_micros - charged_micros,
      held_micros: 0,
    });
    const { ok, open_holds } = await service.database.audit();
    expect([ok, open_holds]).toEqual([true, 0]);
  });
});
