import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { cpSync, renameSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type DecisionEngine, openEngine } from '../../native/engine.ts';
import { ERROR_TYPES, ERRORS } from '../../src/errors/errors.ts';
import { BodyBudget } from '../../src/limits/body-budget.ts';
import { eventually } from '../support/eventually.ts';
import { type Around, Gate, intercepted, waitingAt, withoutTable } from '../support/faults.ts';
import { booksOf, closeAudited, untilHeld, usageOf } from '../support/money.ts';
import { parseRaw, sendRaw } from '../support/raw-http.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  POLL_MS,
  startTestService,
  stateOf,
  type TestAccount,
  type TestService,
  untilReady,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TINY_WEIGHTS } from '../support/tiny-weights.ts';
import { expectAnyError, expectDecision, expectError, platformHeaders } from './expectations.ts';
import { MODEL_HEADERS, STATUS_OF_CODE, TYPE_OF_STATUS } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

describe('Status to type', () => {
  test('each status has the one type of its errors', () => {
    expect<Readonly<Record<number, string>>>(ERROR_TYPES).toEqual(TYPE_OF_STATUS);
  });
});

describe('Codes', () => {
  test('every code of an error has its one status', () => {
    const ours = new Map(Object.entries(ERRORS).map(([code, { status }]) => [code, status] as const));
    for (const [code, status] of Object.entries(STATUS_OF_CODE))
      expect([code, ours.get(code)]).toEqual([code, status]);
  });
});

let around: Around = (run) => run();
let service: TestService;
let account: TestAccount;
beforeAll(async () => {
  service = await startTestService({
    openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
  });
});
afterAll(() => closeAudited(service));
beforeEach(async () => {
  account = await addAccount(service);
});
afterEach(() => {
  around = (run) => run();
});

describe('a body that is not finished', () => {
  const head = (key: string, length: number) =>
    `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${length}\r\n\r\n`;

  test('408 request_timeout, and the connection is closed: never charged, does not count', async () => {
    // Long enough for the whole body that follows, also on a machine that is busy.
    const own = await startTestService({ body_limits: { deadline_ms: 1_000 } });
    try {
      const slow = await addAccount(own);
      const before = await booksOf(own, slow);
      const received = await sendRaw(own.server.address, head(slow.key, 20), ['{"model"']);
      const { status, headers, body } = parseRaw(received);
      await expectError(new Response(body, { status, headers }), 'request_timeout');
      expect(headers.connection).toBe('close');
      expect(await booksOf(own, slow)).toEqual(before);
      const response = await ask(own, slow.key);
      expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('299');
    } finally {
      await closeAudited(own);
    }
  });

  test('503 overloaded above the budget of the key, with Retry-After; other keys are answered', async () => {
    const budget = new BodyBudget({ owner_bytes: 2_000, total_bytes: 10_000, body_bytes_min: 1_900 });
    const own = await startTestService({ body_limits: { budget } });
    try {
      const [greedy, other] = [await addAccount(own), await addAccount(own)];
      const before = await booksOf(own, greedy);
      const { hostname, port } = new URL(own.server.address);
      const unfinished = connect(Number(port), hostname);
      unfinished.write(`${head(greedy.key, 1_900)}{`);
      await eventually(() => budget.taken_bytes !== 0);
      const refused = await ask(own, greedy.key);
      expect(refused.headers.get('retry-after')).toBe('1');
      await expectError(refused, 'overloaded');
      await expectDecision(await ask(own, other.key));
      expect(await booksOf(own, greedy)).toEqual(before);
      unfinished.destroy();
      await eventually(() => budget.taken_bytes === 0);
      await expectDecision(await ask(own, greedy.key));
    } finally {
      await closeAudited(own);
    }
  });
});

describe('503 auth_unavailable', () => {
  test('the keys cannot be read: on every endpoint, never charged, and over when they can', async () => {
    const before = await booksOf(service, account);
    await withoutTable(service, 'api_keys', async () => {
      await expectError(await ask(service, account.key), 'auth_unavailable');
      await expectError(await post(service, account.key, SMALL_REQUEST, '/v1/systemone'), 'auth_unavailable');
      const headers = { 'x-api-key': account.key };
      await expectError(await service.fetch('/v1/models', { headers }), 'auth_unavailable');
    });
    expect(await booksOf(service, account)).toEqual(before);
    await expectDecision(await ask(service, account.key));
  });

  test('a value that cannot be a key is 401 all the same', async () => {
    await withoutTable(service, 'api_keys', async () => {
      await expectError(await ask(service, 'sk_svc_short'), 'missing_api_key');
    });
  });

  test('a key that was looked up within the minute goes on working', async () => {
    const other = await addAccount(service);
    await expectDecision(await ask(service, account.key));
    // Keys are looked up by this column; a hold reads the limit of a key from its row.
    const rename = (from: string, to: string) =>
      service.execute(`ALTER TABLE api_keys RENAME COLUMN ${from} TO ${to}`);
    await rename('secret_sha256', 'secret_away');
    try {
      await expectError(await ask(service, other.key), 'auth_unavailable');
      await expectDecision(await ask(service, account.key));
    } finally {
      await rename('secret_away', 'secret_sha256');
    }
    await expectDecision(await ask(service, account.key));
  });
});

describe('503 catalog_unavailable', () => {
  test('the catalog cannot be read: never charged, does not count, and over when it can', async () => {
    const before = await booksOf(service, account);
    await withoutTable(service, 'models', async () => {
      await expectError(await ask(service, account.key), 'catalog_unavailable');
      const headers = { 'x-api-key': account.key };
      await expectError(await service.fetch('/v1/models', { headers }), 'catalog_unavailable');
    });
    expect(await booksOf(service, account)).toEqual(before);
    const response = await ask(service, account.key);
    await expectDecision(response);
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('299');
  });
});

describe('503 billing_unavailable', () => {
  test('the hold cannot be written: nothing runs, nothing is charged, and over when it can', async () => {
    const before = await booksOf(service, account);
    await withoutTable(service, 'ledger_entries', async () => {
      await expectError(await ask(service, account.key), 'billing_unavailable');
    });
    expect(await booksOf(service, account)).toEqual(before);
    const response = await ask(service, account.key);
    const { usage } = await expectDecision(response);
    const reserved = 300_000 - Number(response.headers.get('x-ratelimit-remaining-tokens'));
    expect(reserved).toBeLessThan(2 * usage.input_tokens);
  });

  for (const table of ['ledger_entries', 'usage_records', 'organizations']) {
    test(`the charge cannot be written (${table}): no answer, nothing charged, the hold is released when it can be`, async () => {
      const before = await booksOf(service, account);
      const gate = new Gate();
      around = gate.hold;
      const waiting = ask(service, account.key);
      await gate.reached;
      await withoutTable(service, table, async () => {
        gate.open();
        const response = await waiting;
        await expectError(response, 'billing_unavailable');
        expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
      });
      await untilHeld(service, account, 0);
      expect((await booksOf(service, account)).credit_micros).toBe(before.credit_micros);
      for (const row of await usageOf(service, account))
        expect(row).toMatchObject({ status: 503, questions: 0, cost_micros: 0 });
      around = (run) => run();
      await expectDecision(await ask(service, account.key));
    });
  }
});

describe('502 model_unavailable', () => {
  const OWN_ENGINE = { model_path: TINY_WEIGHTS, gpu: false, threads: 1, context_tokens: 1_024 } as const;

  /** Starts a service on an engine of its own that can be taken away from under it. */
  async function startOnOwnEngine(open: () => Promise<DecisionEngine>, cold = false) {
    const own = await startTestService({ openEngine: open, cold });
    return { own, account: await addAccount(own) };
  }

  test('the engine is killed: not charged, recorded with nothing, and the next request is answered', async () => {
    const engines: DecisionEngine[] = [];
    const { own, account } = await startOnOwnEngine(async () => {
      const engine = await openEngine(OWN_ENGINE);
      engines.push(engine);
      return engine;
    });
    try {
      await expectDecision(await ask(own, account.key));
      const before = await booksOf(own, account);
      await engines[0]?.close();
      const response = await ask(own, account.key, { state: 'Another record.' });
      await expectError(response, 'model_unavailable');
      expect(platformHeaders(response)).toEqual([...MODEL_HEADERS]);
      expect(await booksOf(own, account)).toEqual({ ...before, usage_rows: before.usage_rows + 1 });
      expect((await usageOf(own, account)).at(-1)).toMatchObject({
        status: 502,
        questions: 0,
        input_tokens: 0,
        cost_micros: 0,
      });
      await expectDecision(await ask(own, account.key, { state: 'Another record.' }));
      expect(engines).toHaveLength(2);
    } finally {
      await closeAudited(own);
    }
  });

  test('the weights are gone: not charged, and answered once they are back', async () => {
    const weights = temporaryDirectory();
    const model_path = join(weights.path, 'tiny.gguf');
    cpSync(TINY_WEIGHTS, model_path);
    const open = () => openEngine({ ...OWN_ENGINE, model_path });
    const { own, account } = await startOnOwnEngine(open, true);
    try {
      const before = await booksOf(own, account);
      renameSync(model_path, `${model_path}-away`);
      for (const mode of ['fast', 'fast']) {
        await expectError(await ask(own, account.key, { mode }), 'model_unavailable');
      }
      expect(await booksOf(own, account)).toEqual({ ...before, usage_rows: 2 });
      renameSync(`${model_path}-away`, model_path);
      await expectDecision(await ask(own, account.key));
    } finally {
      await closeAudited(own);
      weights.remove();
    }
  });

  test('a full queue: Retry-After, not charged, and answered later', async () => {
    const gate = new Gate();
    const own = await startTestService({
      queue_limit: 1,
      openEngine: (engine) => waitingAt(engine, gate),
    });
    const account = await addAccount(own);
    try {
      const before = await booksOf(own, account);
      const first = ask(own, account.key, { state: 'The first record.' });
      await gate.reached;
      const refused = await Promise.all(
        Array.from({ length: 11 }, (_, index) => ask(own, account.key, { state: `Record ${index}.` })),
      );
      for (const response of refused) {
        expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        await expectError(response, 'model_unavailable');
      }
      gate.open();
      const { usage } = await expectDecision(await first);
      expect(await booksOf(own, account)).toEqual({
        credit_micros: before.credit_micros - Math.round(usage.cost_usd * 1e6),
        held_micros: 0,
        usage_rows: 12,
      });
      await expectDecision(await ask(own, account.key));
    } finally {
      await closeAudited(own);
    }
  });

  test('the message does not tell what the model failed on', async () => {
    around = () => Promise.reject(new Error('cannot read "my secret record"'));
    const { error } = await expectError(await ask(service, account.key), 'model_unavailable');
    expect(error.message).not.toContain('secret');
  });
});

describe('503 model_warming_up', () => {
  test('a cold model: a fast request waits and is answered', async () => {
    const own = await startTestService({ cold: true });
    try {
      const { key } = await addAccount(own);
      expect(stateOf(own.service)).toBe('cold');
      await expectDecision(await ask(own, key));
    } finally {
      await closeAudited(own);
    }
  });

  test('consistent mode still starting: Retry-After, never charged, and answered when it is ready', async () => {
    const consistent = new Gate();
    const warmUps = { count: 0 };
    const own = await startTestService({
      cold: true,
      openEngine: (engine) =>
        intercepted(engine, async (run, { scope }) => {
          // The second warm-up is that of consistent mode.
          if (scope === 'warm-up' && ++warmUps.count === 2) await consistent.pass();
          return await run();
        }),
    });
    try {
      const owner = await addAccount(own);
      const before = await booksOf(own, owner);
      const cold = await ask(own, owner.key, { mode: 'consistent' });
      await expectError(cold, 'model_warming_up');
      expect(Number(cold.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
      expect(platformHeaders(cold)).toEqual(['retry-after', ...MODEL_HEADERS]);
      await consistent.reached;
      await expectError(await ask(own, owner.key, { mode: 'consistent' }), 'model_warming_up');
      expect(await booksOf(own, owner)).toEqual({ ...before, usage_rows: 2 });
      expect((await usageOf(own, owner))[0]).toMatchObject({
        status: 503,
        mode: 'consistent',
        questions: 0,
        cost_micros: 0,
      });
      await expectDecision(await ask(own, owner.key, { mode: 'fast' }));
      consistent.open();
      await untilReady(own.service);
      await expectDecision(await ask(own, owner.key, { mode: 'consistent' }));
    } finally {
      await closeAudited(own);
    }
  });
});

describe('anything unexpected', () => {
  test('is an error of our shape, without a word of the request', async () => {
    around = () => Promise.resolve([[Number.NaN]]);
    const body = await expectAnyError(await ask(service, account.key));
    expect(JSON.stringify(body)).not.toContain('8812');
    await Bun.sleep(POLL_MS);
    expect((await booksOf(service, account)).held_micros).toBe(0);
  });
});
