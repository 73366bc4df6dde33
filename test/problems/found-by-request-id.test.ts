import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { HistoryThread } from '../../db/sqlite/history-thread.ts';
import { EvaluationFailed, WeightsError } from '../../native/engine.ts';
import type { DecisionInput, DecisionPlan } from '../../native/plan/profile.ts';
import type { ErrorCode } from '../../src/errors/errors.ts';
import { startServer } from '../../src/http/server.ts';
import { hourly } from '../../src/maintenance/maintenance.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import type { Cause } from '../../src/problems/causes.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { systemClock } from '../../src/time/clock.ts';
import { type Call, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { type Around, aborted, Gate, intercepted, withoutTable } from '../support/faults.ts';
import { booksOf, untilHeld } from '../support/money.ts';
import { type LogLine, RecordedLog } from '../support/problems.ts';
import { post } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  stateOf,
  type TestAccount,
  type TestService,
  type TestServiceOptions,
  TINY_MODEL,
} from '../support/service.ts';
import { holdWriteLock } from '../support/write-lock.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

/** Words that are nowhere unless a request brought them; an identifier, so that SQLite and JSON quote it. */
const marker = (place: string) => `zq${place}${crypto.randomUUID().replaceAll('-', '')}`;
const RECORD = marker('record');
const QUESTION = marker('question');
const OPTION = marker('option');
const BODY = {
  model: 'decision-1',
  state: { note: RECORD },
  questions: {
    [QUESTION]: { type: 'choice', instructions: QUESTION, criteria: { [OPTION]: OPTION, b: null } },
  },
};
/** A request that no context of the model can hold. */
const UNREADABLE = {
  ...BODY,
  questions: { [QUESTION]: { type: 'noul', instructions: `${QUESTION} `.repeat(12_000) } },
};

/** Real errors that quote what a client wrote. */
function quotedByJson(): unknown {
  return thrownBy(() => JSON.parse(`{"state": ${RECORD}}`));
}
function quotedBySqlite(): unknown {
  return thrownBy(() => new Database(':memory:').query(`SELECT ${RECORD} FROM ${OPTION}`));
}
function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    expect(String(error)).toMatch(/zq(record|option)/);
    return error;
  }
  throw new Error('nothing was thrown');
}

/** The faults of the next request. */
const faults: { around: Around; plan: unknown; wall_clock: unknown } = {
  around: (run) => run(),
  plan: undefined,
  wall_clock: undefined,
};
const recorded = new RecordedLog();
const keys: string[] = [];
const options: TestServiceOptions = {
  log: recorded.log,
  payment_provider: paddleProvider(SETTINGS),
  clock: new MovableClock({
    ...systemClock,
    now_ms() {
      if (faults.wall_clock !== undefined) throw faults.wall_clock;
      return systemClock.now_ms();
    },
  }),
  // A write that meets another process's lock gives up soon, but not before a checkpoint has ended.
  writes: { lock_deadline_ms: 100 },
  openPlanner: async () => {
    const planner = await TINY_MODEL.planner((engine) =>
      intercepted(engine, (run, given) => (given.scope === 'warm-up' ? run() : faults.around(run, given))),
    );
    return {
      ...planner,
      plan: (input: DecisionInput): Promise<DecisionPlan> =>
        faults.plan === undefined ? planner.plan(input) : Promise.reject(faults.plan),
    };
  },
};

let service: TestService;
let account: TestAccount;
beforeAll(async () => {
  service = await startTestService(options);
});
afterAll(() => service.close());
beforeEach(async () => {
  faults.around = (run) => run();
  faults.plan = undefined;
  faults.wall_clock = undefined;
  account = await newAccount(service);
});

async function newAccount(of: TestService): Promise<TestAccount> {
  const made = await addAccount(of);
  keys.push(made.key);
  return made;
}

const decide = (body: unknown = BODY, path?: string) => post(service, account.key, body, path);
const listModels = () => service.fetch('/v1/models', { headers: { 'x-api-key': account.key } });
function callWebhook({ body, signature }: Call): Promise<Response> {
  const headers = { 'paddle-signature': signature ?? '' };
  return service.fetch('/webhooks/paddle', { method: 'POST', headers, body });
}

/** Asks until the key's lookup is kept, so that other tables than the keys' can be taken away. */
async function decideKnown(table: string, body: unknown = BODY): Promise<Response> {
  expect((await listModels()).status).toBe(200);
  return await withoutTable(service, table, () => decide(body));
}

async function problemOf(response: Response): Promise<{ line: LogLine; causes: readonly Cause[] }> {
  const request_id = response.headers.get('x-request-id');
  expect(request_id).toMatch(/^req_/);
  const problems = await recorded.problems();
  const lines = problems.filter((each) => each.request_id === request_id);
  expect(lines).toHaveLength(1);
  const [line] = lines;
  const first = problems.find(
    (each) => each.causes !== undefined && each.request_id === (line?.same_as ?? request_id),
  );
  if (line === undefined || first?.causes === undefined) throw new Error('the line leads to no causes');
  return { line, causes: first.causes };
}

interface Row {
  readonly name: string;
  readonly provoke: () => Promise<Response>;
  readonly status: number;
  readonly code: ErrorCode;
  readonly step: string;
  /** As in the line: the classes and codes of the causes. */
  readonly error: string | RegExp;
  /** Where its stack leads; a cause of its own in an engine has another. */
  readonly at: RegExp;
  /** True if the request has its own line beside that of the problem; true by default. */
  readonly has_own_line?: boolean;
}

const NO_TABLE = 'SQLiteError SQLITE_ERROR';
const ROWS: readonly Row[] = [
  {
    name: 'keys that cannot be read',
    provoke: () => withoutTable(service, 'api_keys', () => decide()),
    status: 503,
    code: 'auth_unavailable',
    step: 'authenticate',
    error: NO_TABLE,
    at: /key-directory\.ts/,
  },
  {
    name: 'keys that cannot be read, for the other endpoint',
    provoke: () => withoutTable(service, 'api_keys', () => decide(BODY, '/v1/systemone')),
    status: 503,
    code: 'auth_unavailable',
    step: 'authenticate',
    error: NO_TABLE,
    at: /key-directory\.ts/,
  },
  {
    name: 'keys that cannot be read, for the list of models',
    provoke: () => withoutTable(service, 'api_keys', listModels),
    status: 503,
    code: 'auth_unavailable',
    step: 'authenticate',
    error: NO_TABLE,
    at: /model-routes\.ts|key-directory\.ts/,
  },
  {
    name: 'a catalog that cannot be read',
    provoke: () => withoutTable(service, 'models', () => decide()),
    status: 503,
    code: 'catalog_unavailable',
    step: 'catalog',
    error: NO_TABLE,
    at: /catalog\.ts/,
  },
  {
    name: 'a catalog that cannot be listed',
    provoke: () => withoutTable(service, 'models', listModels),
    status: 503,
    code: 'catalog_unavailable',
    step: 'catalog',
    error: NO_TABLE,
    at: /catalog\.ts/,
  },
  {
    name: 'a request that could not be planned',
    provoke: () => {
      faults.plan = quotedByJson();
      return decide();
    },
    status: 502,
    code: 'model_unavailable',
    step: 'plan',
    error: 'ModelUnavailable < SyntaxError',
    at: /found-by-request-id\.test\.ts/,
  },
  {
    name: 'a hold that could not be written',
    provoke: () => withoutTable(service, 'ledger_entries', () => decide()),
    status: 503,
    code: 'billing_unavailable',
    step: 'hold',
    error: NO_TABLE,
    at: /ledger\.ts/,
  },
  {
    name: 'a hold that waited for the lock of another process for too long',
    provoke: async () => {
      const lock = await holdWriteLock(service.directory);
      const response = await decide();
      await lock.release();
      return response;
    },
    status: 503,
    code: 'billing_unavailable',
    step: 'hold',
    error: 'SQLiteError SQLITE_BUSY',
    at: /group-commit\.ts/,
  },
  {
    name: 'credit that could not be read for a request that the model will not read',
    provoke: () => decideKnown('organizations', UNREADABLE),
    status: 503,
    code: 'billing_unavailable',
    step: 'hold',
    error: NO_TABLE,
    at: /ledger\.ts/,
  },
  {
    name: 'an evaluation that failed',
    provoke: () => {
      faults.around = () => Promise.reject(new EvaluationFailed('no logit', { cause: quotedBySqlite() }));
      return decide();
    },
    status: 502,
    code: 'model_unavailable',
    step: 'model',
    error: 'EvaluationFailed < SQLiteError SQLITE_ERROR',
    at: /found-by-request-id\.test\.ts/,
  },
  {
    name: 'scores that are no numbers',
    provoke: () => {
      faults.around = () => Promise.resolve([[Number.NaN, Number.NaN]]);
      return decide();
    },
    status: 502,
    code: 'model_unavailable',
    step: 'model',
    error: 'RangeError',
    at: /probabilities\.ts/,
  },
  {
    name: 'a charge that could not be written',
    provoke: async () => {
      const gate = new Gate();
      faults.around = gate.hold;
      const waiting = decide();
      await gate.reached;
      const response = await withoutTable(service, 'usage_records', async () => {
        gate.open();
        return await waiting;
      });
      await untilHeld(service, account, 0);
      return response;
    },
    status: 503,
    code: 'billing_unavailable',
    step: 'charge',
    error: NO_TABLE,
    at: /usage-writer\.ts|sqlite-books\.ts/,
  },
  {
    name: 'anything unexpected',
    provoke: async () => {
      expect((await listModels()).status).toBe(200);
      faults.wall_clock = quotedByJson();
      return await decide();
    },
    status: 500,
    code: 'internal_error',
    step: 'http',
    error: 'SyntaxError',
    at: /found-by-request-id\.test\.ts/,
  },
  {
    name: 'a failure outside of the routes',
    has_own_line: false,
    provoke: async () => {
      const handler = { ...service.service, handle: () => Promise.reject(quotedBySqlite()) };
      const server = await startServer(handler, { host: '127.0.0.1', port: 0 });
      const response = await fetch(server.address, { method: 'POST', body: RECORD });
      await server.stop();
      return response;
    },
    status: 500,
    code: 'internal_error',
    step: 'http',
    error: NO_TABLE,
    at: /found-by-request-id\.test\.ts/,
  },
  {
    name: 'a payment event that could not be written',
    provoke: () =>
      withoutTable(service, 'payment_events', () =>
        callWebhook(sign(transaction('transaction.completed', { id: RECORD }))),
      ),
    status: 503,
    code: 'billing_unavailable',
    step: 'webhook',
    error: NO_TABLE,
    at: /apply-event\.ts/,
  },
  {
    name: 'a payment event whose payment nobody knows',
    provoke: () => callWebhook(sign(transaction('transaction.completed', { id: 'txn_lost' }))),
    status: 503,
    code: 'unresolved_payment',
    step: 'webhook',
    error: 'WebhookNotApplied',
    at: /webhook-routes\.ts/,
  },
  {
    name: 'a payment event that was signed at another time than ours',
    provoke: () => callWebhook(sign(transaction('transaction.completed'), { age_s: 3_600 })),
    status: 401,
    code: 'signature_outside_tolerance',
    step: 'webhook',
    error: 'WebhookNotApplied',
    at: /webhook-routes\.ts/,
  },
  {
    name: 'a genuine payment event that this program cannot read',
    provoke: () => callWebhook(sign(`{"${RECORD}`)),
    status: 400,
    code: 'unreadable_webhook',
    step: 'webhook',
    error: 'WebhookNotApplied',
    at: /webhook-routes\.ts/,
  },
];

describe('what our own fault refused is found by the x-request-id of its response', () => {
  for (const { name, provoke, status, code, step, error, at, has_own_line = true } of ROWS) {
    test(`${status} ${code}: ${name}`, async () => {
      const before = service.service.services.problems.counts();
      const response = await provoke();
      faults.wall_clock = undefined;
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({ error: { code } });
      if (has_own_line) expect(await requestLineOf(response)).toMatchObject({ status, code });
      const { line, causes } = await problemOf(response);
      expect(line).toMatchObject({ msg: 'problem', step, code, error: expect.stringMatching(error) });
      expect(causes.flatMap((cause) => cause.at).join('\n')).toMatch(at);
      const after: Readonly<Record<string, number>> = service.service.services.problems.counts();
      expect(after[step]).toBe(Reflect.get(before, step) + 1);
    });
  }

  test('502 model_unavailable: the weights cannot be loaded; the load itself is told once', async () => {
    const message = 'The weights file /nowhere is missing: check the path.';
    const own = await startTestService({
      log: recorded.log,
      cold: true,
      openEngine: () => Promise.reject(new WeightsError(message)),
    });
    const { key } = await newAccount(own);
    const warming = await post(own, key, { ...BODY, mode: 'consistent' });
    expect(warming.status).toBe(503);
    await eventually(() => stateOf(own.service) !== 'loading');
    const set_off = (await recorded.problems()).filter(({ step }) => step === 'model_load');
    expect(set_off).toMatchObject([{ request_id: null, causes: [{ error: 'WeightsError', message }] }]);

    const failed = await Promise.all([post(own, key, BODY), post(own, key, BODY)]);
    for (const response of failed) {
      expect(response.status).toBe(502);
      const { causes } = await problemOf(response);
      expect(causes).toMatchObject([{ error: 'ModelUnavailable' }, { error: 'WeightsError', message }]);
    }
    await own.close();
  });

  test('502 model_unavailable: the model did not answer in time', async () => {
    const own = await startTestService({
      log: recorded.log,
      evaluation_ms: 1,
      openEngine: (engine) =>
        intercepted(engine, (run, { scope, signal, schedulePlan }) => {
          if (schedulePlan === undefined || signal === undefined || scope === 'warm-up') return run();
          // Its turn comes, and then nothing more.
          return schedulePlan(
            { tokens: 1, decoder: 'small', decoder_tokens: 1 },
            () => new Promise(() => {}),
            signal,
          );
        }),
    });
    const response = await post(own, (await newAccount(own)).key, BODY);
    expect(response.status).toBe(502);
    const { causes } = await problemOf(response);
    expect(causes).toMatchObject([
      { error: 'EvaluationTimedOut', message: expect.stringContaining('in time') },
    ]);
    await own.close();
  });
});

describe('background work', () => {
  const background = async () => (await recorded.problems()).filter(({ request_id }) => request_id === null);

  test('last-used times that cannot be written beside a request that is answered', async () => {
    expect((await listModels()).status).toBe(200);
    const before = service.service.services.problems.counts().last_used;
    // A hold reads the limit of its key, so the table stays.
    const rename = (from: string, to: string) =>
      service.execute(`ALTER TABLE api_keys RENAME COLUMN ${from} TO ${to}`);
    await rename('last_used_at_ms', 'last_used_away');
    const response = await decide().finally(() => rename('last_used_away', 'last_used_at_ms'));
    expect(response.status).toBe(200);
    expect(service.service.services.problems.counts().last_used).toBeGreaterThan(before);
    expect((await background()).map(({ step }) => step)).toContain('last_used');
  });

  test('a hold that waits to be released: when that begins, and when it is over', async () => {
    const gate = new Gate();
    faults.around = async () => {
      await gate.pass();
      throw new EvaluationFailed('no logit');
    };
    const waiting = decide();
    await gate.reached;
    const lock = await holdWriteLock(service.directory);
    gate.open();
    const response = await waiting;
    expect(response.status).toBe(502);
    expect((await booksOf(service, account)).held_micros).toBeGreaterThan(0);
    expect(await background()).toContainEqual(
      expect.objectContaining({ step: 'release', error: 'SQLiteError SQLITE_BUSY' }),
    );
    await lock.release();
    await untilHeld(service, account, 0);
    await service.service.services.books.whenSettled();
    expect(await recorded.lines()).toContainEqual(
      expect.objectContaining({ msg: 'the holds that waited to be released are released', holds: 1 }),
    );
  });

  test('an hourly run that fails in its thread, with the cause of that thread', async () => {
    const { services } = service.service;
    const { store, keys: directory, limiter, refusals, answer_counts, clock, metrics, problems } = services;
    expect(problems).toBeInstanceOf(ProblemLog);
    if (!(problems instanceof ProblemLog)) return;
    const history = new HistoryThread(service.db.$client.filename);
    const parts = {
      history,
      store,
      keys: directory,
      limiter,
      refusals,
      answer_counts,
      clock,
      metrics,
      problems,
    };
    await withoutTable(service, 'usage_records', () =>
      hourly({
        ...parts,
        alerts: null,
        log: recorded.log,
        beginsHourlyRun: () => Promise.resolve(true),
        usage_retention_days: null,
        audit_log_retention_days: 365,
      }),
    );
    const line = (await background()).find(({ step }) => step === 'hourly_run');
    expect(line).toMatchObject({ error: 'ThreadFailed < SQLiteError SQLITE_ERROR' });
    expect(line?.causes?.flatMap(({ at }) => at).join()).toContain('audit.ts');
  });
});

test("a refusal that is not our fault makes no line: the request's own line has its code", async () => {
  const before = (await recorded.problems()).length;
  const counts = service.service.services.problems.counts();
  const poor = await addAccount(service, { credit_dollars: 0 });
  const refused = [
    await service.fetch('/v1/decisions', { method: 'POST' }),
    await post(service, `sk_svc_${'0'.repeat(32)}`, BODY),
    await post(service, poor.key, BODY),
    await service.fetch(`/${RECORD}`),
    await service.fetch('/v1/models', { method: 'DELETE' }),
    await decide(`{"state": ${RECORD}`),
    await decide(new Uint8Array([0xff])),
    await decide({ ...BODY, model: RECORD }),
    await decide({ ...BODY, mode: RECORD }),
    await decide({ ...BODY, questions: { [QUESTION]: { type: RECORD } } }),
    await decide({ ...BODY, state: RECORD.repeat(60_000) }),
    await decide(UNREADABLE),
    await callWebhook(sign(transaction('transaction.completed'), { secret: 'guess' })),
    await callWebhook({ body: RECORD, signature: null }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([
    401, 401, 402, 404, 405, 400, 400, 404, 422, 422, 413, 422, 401, 401,
  ]);
  expect((await recorded.problems()).length).toBe(before);
  expect(service.service.services.problems.counts()).toEqual(counts);
  for (const response of refused) {
    const { status } = response;
    const { error }: { error: { code: string } } = JSON.parse(await response.text());
    expect(await requestLineOf(response)).toMatchObject({ status, code: error.code });
  }
});

test('load makes no line, nor does a client that goes away', async () => {
  const own = await startTestService({
    log: recorded.log,
    queue_limit: 1,
    openEngine: (engine) =>
      intercepted(engine, async (run, given) => {
        return given.scope === 'warm-up' ? await run() : await faults.around(run, given);
      }),
  });
  const { key } = await newAccount(own);
  const gate = new Gate();
  faults.around = async (_, { signal }) => {
    void gate.pass();
    await aborted(signal);
    throw signal?.reason;
  };
  const client = new AbortController();
  const leaving = own
    .fetch('/v1/decisions', {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: JSON.stringify(BODY),
      signal: client.signal,
    })
    .catch(() => null);
  await gate.reached;
  const full = await post(own, key, BODY);
  expect([full.status, full.headers.has('retry-after')]).toEqual([502, true]);
  client.abort();
  await leaving;
  await untilHeld(own, { organization_id: await organizationOf(own, key) }, 0);
  await own.close();
  const counts: Readonly<Record<string, number>> = own.service.services.problems.counts();
  expect(Object.entries(counts).filter(([, count]) => count > 0)).toEqual([]);
});

/** The request's own line, which is written after its response. */
async function requestLineOf(response: Response): Promise<LogLine> {
  for (;;) {
    const lines = await recorded.lines();
    const id = response.headers.get('x-request-id');
    const line = lines.find(({ msg, request_id }) => msg === 'request' && request_id === id);
    if (line !== undefined) return line;
    await new Promise(setImmediate);
  }
}

async function organizationOf(of: TestService, key: string): Promise<string> {
  return (await of.service.services.keys.authenticate(key))?.organization_id ?? '';
}

test('none of it left a word of a client in the log', async () => {
  await recorded.lines();
  expect(recorded.text.length).toBeGreaterThan(10_000);
  for (const found of [RECORD, QUESTION, OPTION, ...keys]) {
    expect([found, recorded.text.includes(found)]).toEqual([found, false]);
  }
});
