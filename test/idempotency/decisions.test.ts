import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { OPERATOR } from '../../src/access/actor.ts';
import { revokeKey } from '../../src/accounts/keys.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { hourly } from '../../src/maintenance/maintenance.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { DAY_MS, MINUTE_MS } from '../../src/time/clock.ts';
import { expectError } from '../contract/expectations.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { type Around, aborted, Gate, intercepted } from '../support/faults.ts';
import { booksOf, closeAudited, DOLLAR, untilHeld, usageOf } from '../support/money.ts';
import { isPostgresMissing, type TestDatabase, testDatabase } from '../support/postgres.ts';
import { RecordedLog } from '../support/problems.ts';
import { ALL_TYPES, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const REQUEST = { ...SMALL_REQUEST, questions: ALL_TYPES };

interface Sent {
  readonly key: string;
  readonly idempotency_key?: string;
  readonly body?: unknown;
  readonly path?: string;
  readonly signal?: AbortSignal;
}

function send(service: TestService, { key, idempotency_key = 'key-1', body = REQUEST, path, signal }: Sent) {
  return service.fetch(path ?? '/v1/decisions', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': idempotency_key,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** The body of a 200 as text, and whether it says that it was given before. */
async function answered(sent: Response | Promise<Response>) {
  const response = await sent;
  expect(response.status).toBe(200);
  expect(response.headers.get('x-ratelimit-limit-requests')).not.toBeNull();
  return { text: await response.text(), is_replayed: response.headers.get('idempotent-replayed') === 'true' };
}

/** The hourly run, without its audit. */
async function maintain({ service: { services } }: TestService): Promise<void> {
  const { problems, ...parts } = services;
  if (!(problems instanceof ProblemLog)) throw new Error('no log of problems');
  const log = { ...parts.log, problem: () => undefined };
  const history = { run: () => Promise.resolve(null), stop: () => undefined };
  const beginsHourlyRun = () => Promise.resolve(true);
  const kept = { usage_retention_days: null, audit_log_retention_days: 365 };
  await hourly({ ...parts, problems, log, history, beginsHourlyRun, ...kept });
}

const DATABASES = [
  { name: 'SQLite', has_postgres: false },
  { name: 'two nodes on PostgreSQL', has_postgres: true },
].filter(({ has_postgres }) => !has_postgres || !isPostgresMissing());

describe.each(DATABASES)('decisions with an idempotency key, on $name', ({ has_postgres }) => {
  let own: TestDatabase | null = null;
  let service: TestService;
  /** Another node where there is one. */
  let other: TestService;
  let around: Around = (run) => run();
  const clock = MovableClock.stopped();
  const recorded = new RecordedLog();
  const start = () =>
    startTestService({
      clock,
      log: recorded.log,
      openEngine: (engine) => intercepted(engine, (run, options) => around(run, options)),
      ...(own === null ? {} : { postgres_url: own.url }),
    });
  beforeAll(async () => {
    own = has_postgres ? await testDatabase() : null;
    service = await start();
    other = has_postgres ? await start() : service;
  });
  afterAll(async () => {
    if (other !== service) await other.close();
    await closeAudited(service);
    await own?.[Symbol.asyncDispose]();
  });

  test('a repeated request gets the same answer, is charged once and leaves one usage row', async () => {
    const account = await addAccount(service);
    const first = await answered(send(service, account));
    const charged = await booksOf(service, account);
    expect(first.is_replayed).toBe(false);
    for (const node of [service, other]) {
      expect(await answered(send(node, account))).toEqual({ text: first.text, is_replayed: true });
    }
    // Spaces are no other body.
    const spaced = await answered(send(service, { ...account, body: JSON.stringify(REQUEST, null, 2) }));
    expect(spaced).toEqual({ text: first.text, is_replayed: true });
    expect(await booksOf(service, account)).toEqual(charged);
    expect(charged).toMatchObject({ held_micros: 0, usage_rows: 1 });
  });

  test('a retry without the header, or with another key of it, is a fresh decision', async () => {
    const account = await addAccount(service);
    const first = await answered(send(service, account));
    const fresh = [
      await answered(send(service, { ...account, idempotency_key: 'key-2' })),
      await answered(
        service.fetch('/v1/decisions', {
          method: 'POST',
          headers: { 'x-api-key': account.key, 'content-type': 'application/json' },
          body: JSON.stringify(REQUEST),
        }),
      ),
    ];
    expect(fresh.map(({ is_replayed }) => is_replayed)).toEqual([false, false]);
    expect(new Set([first, ...fresh].map(({ text }) => text)).size).toBe(3);
    expect(await usageOf(service, account)).toHaveLength(3);
  });

  test('the same idempotency key of another API key is another one', async () => {
    const [one, two] = [await addAccount(service), await addAccount(service)];
    await answered(send(service, one));
    expect(await answered(send(service, two))).toMatchObject({ is_replayed: false });
  });

  test('another body, path or mode with the key is 409, and charges nothing', async () => {
    const account = await addAccount(service);
    await answered(send(service, account));
    const charged = await booksOf(service, account);
    const { state: _, ...rest } = REQUEST;
    const changes: Partial<Sent>[] = [
      { body: SMALL_REQUEST },
      { body: { ...rest, state: REQUEST.state } },
      { path: '/v1/systemone' },
      { path: '/v1/decisions?mode=consistent' },
    ];
    for (const change of changes) {
      for (const node of [service, other]) {
        await expectError(await send(node, { ...account, ...change }), 'idempotency_key_reused');
      }
    }
    expect(await booksOf(service, account)).toEqual(charged);
  });

  test("in OpenAI's shape it is the body as it was sent that counts", async () => {
    const account = await addAccount(service);
    const body = {
      model: 'decision-1',
      input: 'I was charged twice.',
      questions: [{ type: 'predicate', instructions: 'Is it about money?' }],
    };
    const { text } = await answered(send(service, { ...account, body }));
    const charged = await booksOf(service, account);
    const twin = {
      model: 'decision-1',
      state: body.input,
      questions: { '0': { type: 'noul', instructions: 'Is it about money?' } },
    };
    for (const changed of [{ ...body, seed: 1 }, twin]) {
      const reused = await send(other, { ...account, body: changed });
      await expectError(reused, 'idempotency_key_reused');
    }
    expect(await answered(send(other, { ...account, body }))).toEqual({ text, is_replayed: true });
    expect(await booksOf(service, account)).toEqual(charged);
  });

  test('a key has 1 to 255 characters', async () => {
    const account = await addAccount(service);
    for (const idempotency_key of ['', 'k'.repeat(256)]) {
      await expectError(await send(service, { ...account, idempotency_key }), 'invalid_idempotency_key');
    }
    await answered(send(service, { ...account, idempotency_key: 'k'.repeat(255) }));
  });

  test('requests that come while the first runs wait for it, on every node, and one hold is taken', async () => {
    const account = await addAccount(service);
    const gate = new Gate();
    around = gate.hold;
    try {
      const sent = [service, other, service, other, service].map((node) => send(node, account));
      await gate.reached;
      // Another body does not wait.
      await expectError(await send(service, { ...account, body: SMALL_REQUEST }), 'idempotency_key_reused');
      const held = await service.execute(
        `SELECT count(*) AS holds FROM ledger_entries WHERE kind = 'hold' AND organization_id = '${account.organization_id}'`,
      );
      expect(Number(held[0]?.holds)).toBe(1);
      gate.open();
      const answers = await Promise.all(sent.map(answered));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(answers.filter(({ is_replayed }) => !is_replayed)).toHaveLength(1);
    } finally {
      gate.open();
      around = (run) => run();
    }
    expect(await usageOf(service, account)).toHaveLength(1);
  });

  test('a request whose key is revoked while it waits for the first one is refused, and charges nothing', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    const { keys, unplanned_bodies } = service.service.services;
    const gate = new Gate();
    around = async () => {
      await gate.pass();
      throw new Error('broken');
    };
    try {
      const first = send(service, account);
      await gate.reached;
      const second = send(service, account);
      await eventually(() => unplanned_bodies.taken_bytes > 0);
      await revokeKey(service.accounts, OPERATOR, account.key_id);
      keys.invalidate();
      around = (run) => run();
      gate.open();
      await expectError(await first, 'model_unavailable');
      await expectError(await second, 'invalid_api_key');
    } finally {
      gate.open();
      around = (run) => run();
    }
    const { credit_micros } = before;
    expect(await booksOf(service, account)).toMatchObject({ credit_micros, held_micros: 0 });
  });

  test('what failed at the model, and what was refused, is not kept: the next attempt runs', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    around = () => Promise.reject(new Error('broken'));
    await expectError(await send(service, account), 'model_unavailable');
    around = (run) => run();
    const rejected = { ...REQUEST, questions: { q: { type: 'noul', criteria: 'yes' } } };
    for (const _ of [1, 2]) {
      const sent = { ...account, idempotency_key: 'key-2', body: rejected };
      await expectError(await send(other, sent), 'invalid_request', 'questions.q.criteria');
    }
    expect(await booksOf(service, account)).toMatchObject({
      credit_micros: before.credit_micros,
      held_micros: 0,
    });
    expect(await answered(send(other, account))).toMatchObject({ is_replayed: false });
    expect(await answered(send(service, account))).toMatchObject({ is_replayed: true });
    // A refused request may be mended under its key.
    expect(await answered(send(service, { ...account, idempotency_key: 'key-2' }))).toMatchObject({
      is_replayed: false,
    });
  });

  test('a client that goes away leaves the key to its next attempt', async () => {
    const account = await addAccount(service);
    const gate = new Gate();
    around = async (_, options) => {
      await gate.pass();
      await aborted(options?.signal);
      options?.signal?.throwIfAborted();
      throw new Error('the client is still there');
    };
    const leaving = new AbortController();
    const left = send(service, { ...account, signal: leaving.signal }).catch(() => null);
    await gate.reached;
    leaving.abort();
    await left;
    gate.open();
    await untilHeld(service, account, 0);
    around = (run) => run();
    expect(await answered(send(other, account))).toMatchObject({ is_replayed: false });
    expect(await usageOf(service, account)).toHaveLength(1);
  });

  test('a client that goes away while it waits for another request is logged as gone, and counted nowhere', async () => {
    const account = await addAccount(service);
    const gate = new Gate();
    around = gate.hold;
    try {
      const first = send(service, account);
      await gate.reached;
      const leaving = new AbortController();
      const left = send(service, { ...account, signal: leaving.signal }).catch(() => null);
      await eventually(() => service.service.services.unplanned_bodies.taken_bytes > 0);
      const logged = recorded.text.length;
      leaving.abort();
      await left;
      await eventually(() => recorded.text.slice(logged).includes('"msg":"request"'));
      expect((await recorded.lines()).at(-1)).toMatchObject({ status: 499, code: null });
      gate.open();
      await answered(first);
    } finally {
      gate.open();
      around = (run) => run();
    }
  });

  test('the kept answer stands when the price changes, the credit is spent or the model is closed', async () => {
    const account = await addAccount(service);
    const first = await answered(send(service, account));
    const { organization_id } = account;
    const replay = { text: first.text, is_replayed: true };
    const { credit_micros } = await booksOf(service, account);
    await service.execute(`UPDATE organizations SET credit_micros = 0 WHERE id = '${organization_id}'`);
    await expectError(await send(service, { ...account, idempotency_key: 'key-2' }), 'insufficient_credit');
    expect(await answered(send(service, account))).toEqual(replay);
    await service.execute(
      `UPDATE organizations SET credit_micros = ${credit_micros} WHERE id = '${organization_id}'`,
    );
    const price = 'input_price_micros_per_million_tokens';
    await service.execute(`UPDATE models SET ${price} = ${9 * DOLLAR}, status = 'coming_soon'`);
    expect(await answered(send(other, account))).toEqual(replay);
    await service.execute(
      `UPDATE models SET ${price} = ${DOLLAR / 2}, status = 'live' WHERE id = 'decision-1'`,
    );
  });

  test('a replay counts as a request of the minute, and needs a key that is active', async () => {
    const account = await addAccount(service);
    const { organization_id, key_id } = account;
    await setTierSettings(service.accounts, OPERATOR, organization_id, { requests_per_minute: 2 });
    const first = await answered(send(service, account));
    expect(await answered(send(service, account))).toEqual({ text: first.text, is_replayed: true });
    const limited = await send(service, account);
    expect(limited.headers.get('retry-after')).not.toBeNull();
    await expectError(limited, 'rate_limit_exceeded');
    clock.advance(MINUTE_MS);
    expect(await answered(send(service, account))).toEqual({ text: first.text, is_replayed: true });
    await revokeKey(service.accounts, OPERATOR, key_id);
    clock.advance(MINUTE_MS);
    await expectError(await send(service, account), 'invalid_api_key');
  });

  test('an answer is kept for 24 hours, survives a restart and is taken away by the maintenance', async () => {
    const account = await addAccount(service);
    const first = await answered(send(service, account));
    const late = await answered(send(service, { ...account, idempotency_key: 'unrepeated' }));
    clock.advance(DAY_MS - 1);
    if (other !== service) {
      await other.close();
      other = await start();
    }
    expect(await answered(send(other, account))).toEqual({ text: first.text, is_replayed: true });
    clock.advance(1);
    const again = await answered(send(service, account));
    expect(again).toMatchObject({ is_replayed: false });
    expect([first.text, late.text]).not.toContain(again.text);
    expect(await usageOf(service, account)).toHaveLength(3);
    const kept = () =>
      service.execute(
        `SELECT answer FROM idempotent_requests WHERE organization_id = '${account.organization_id}'`,
      );
    expect(await kept()).toHaveLength(2);
    await maintain(service);
    expect(await kept()).toHaveLength(1);
    expect(await answered(send(other, account))).toEqual({ text: again.text, is_replayed: true });
  });

  test('nothing that a client sent is stored: neither record, questions, ids and options, nor the key', async () => {
    const account = await addAccount(service);
    const body = {
      model: 'decision-1',
      state: { Xrecord: 'Xwritten' },
      questions: {
        Xquestion: {
          type: 'choice',
          instructions: 'Xinstructed',
          criteria: { Xoption: 'Xdescribed', Xsecond: null },
        },
        Xscore: { type: 'score', criteria: ['Xlowest', 'Xhighest'] },
      },
    };
    const sent = { ...account, idempotency_key: 'Xidempotency', body };
    const first = await answered(send(service, sent));
    expect(await answered(send(other, sent))).toEqual({ text: first.text, is_replayed: true });
    const stored = JSON.stringify(await service.execute('SELECT * FROM idempotent_requests'));
    expect(stored).toContain(JSON.parse(first.text).id);
    for (const word of `${sent.idempotency_key} ${JSON.stringify(body)}`.match(/X[a-z]+/g) ?? [])
      expect(stored).not.toContain(word);
  });

  test('a database that cannot be read refuses the request with 503, and the key stays free', async () => {
    const account = await addAccount(service);
    const rename = (from: string, to: string) => service.execute(`ALTER TABLE ${from} RENAME TO ${to}`);
    await rename('idempotent_requests', 'away');
    await expectError(await send(service, account), 'billing_unavailable').finally(() =>
      rename('away', 'idempotent_requests'),
    );
    expect(await answered(send(service, account))).toMatchObject({ is_replayed: false });
    await eventually(() => service.service.services.idempotency.running === 0);
  });
});

test('a restart on the same file gives the kept answer', async () => {
  const directory = temporaryDirectory();
  const before = await startTestService({ directory: directory.path });
  const account = await addAccount(before);
  const first = await answered(send(before, account));
  await before.close();
  const after = await startTestService({ directory: directory.path });
  expect(await answered(send(after, account))).toEqual({ text: first.text, is_replayed: true });
  await closeAudited(after);
  directory.remove();
});
