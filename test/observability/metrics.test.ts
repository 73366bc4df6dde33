import { Database } from 'bun:sqlite';
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { continueAudit } from '../../db/sqlite/audit.ts';
import { connectDatabase } from '../../db/sqlite/connection.ts';
import { HistoryThread } from '../../db/sqlite/history-thread.ts';
import { OPERATOR } from '../../src/access/actor.ts';
import { CONNECTION_LIMITS, startMetricsListener } from '../../src/http/metrics-listener.ts';
import { hourly } from '../../src/maintenance/maintenance.ts';
import { PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { paddleProvider } from '../../src/payments/paddle.ts';
import { dismissPaymentEvent } from '../../src/payments/resolve-event.ts';
import { handleWebhook } from '../../src/payments/webhooks.ts';
import { ProblemLog } from '../../src/problems/problem-log.ts';
import { ModelScheduler } from '../../src/scheduling/model-scheduler.ts';
import { eventId, SETTINGS, sign, transaction } from '../payments/paddle-calls.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { Gate, goingOnWithoutClient, intercepted, waitingAt, withoutTable } from '../support/faults.ts';
import { metricIn, seriesOf, startWatchedService, type WatchedService } from '../support/metrics.ts';
import { parseRaw, sendRaw } from '../support/raw-http.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const LABELS = [
  'check',
  'code',
  'commit',
  'endpoint',
  'le',
  'mode',
  'model',
  'runtime',
  'status',
  'step',
  'version',
];
const REQUESTS = 64;

let watched: WatchedService;
beforeAll(async () => {
  watched = await startWatchedService();
});
afterAll(() => watched.close());

const Answer = Type.Object({
  usage: Type.Object({ input_tokens: Type.Number(), decisions: Type.Number(), cost_usd: Type.Number() }),
});

/** Resolves with the usage in these responses. */
async function usageOf(
  responses: readonly Response[],
): Promise<{ tokens: number; questions: number; micros: number }> {
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
  const bodies = await Promise.all(
    responses.map(async (response) => Value.Parse(Answer, await response.json())),
  );
  return {
    tokens: bodies.reduce((sum, { usage }) => sum + usage.input_tokens, 0),
    questions: bodies.reduce((sum, { usage }) => sum + usage.decisions, 0),
    micros: bodies.reduce((sum, { usage }) => sum + Math.round(usage.cost_usd * 1_000_000), 0),
  };
}

describe('after known requests', () => {
  test('a replayed answer is counted by itself, and charged once', async () => {
    const fresh = await startWatchedService();
    const { key } = await addAccount(fresh.service);
    for (const idempotency_key of ['one', 'one', 'one', 'other']) {
      const response = await fresh.service.fetch('/v1/decisions', {
        method: 'POST',
        headers: { 'x-api-key': key, 'idempotency-key': idempotency_key },
        body: JSON.stringify(SMALL_REQUEST),
      });
      await response.arrayBuffer();
    }
    const text = await fresh.scrape();
    const labels = '{model="decision-1",mode="fast"}';
    expect(metricIn(text, `tds_replayed_requests_total${labels}`)).toBe(2);
    expect(metricIn(text, `tds_questions_total${labels}`)).toBe(2);
    await fresh.close();
  });

  test('the batches of the model are a histogram of their tokens, and its cache has a size', async () => {
    const { key } = await addAccount(watched.service);
    expect((await ask(watched.service, key)).status).toBe(200);
    const text = await watched.scrape();
    const decodes = metricIn(text, 'tds_decodes_total{model="decision-1"}');
    expect(decodes).toBeGreaterThan(0);
    expect(metricIn(text, 'tds_batch_tokens_count{model="decision-1"}')).toBe(decodes);
    const buckets = seriesOf(text, 'tds_batch_tokens_bucket').map((line) => Number(line.split(' ').at(-1)));
    expect(buckets).toHaveLength(14);
    expect(buckets).toEqual(buckets.toSorted((one, other) => one - other));
    expect(metricIn(text, 'tds_batch_tokens_bucket{le="1",model="decision-1"}')).toBeLessThan(decodes);
    expect(metricIn(text, 'tds_batch_tokens_bucket{le="+Inf",model="decision-1"}')).toBe(decodes);
    const read = metricIn(text, 'tds_read_tokens_total{model="decision-1"}');
    expect(metricIn(text, 'tds_batch_tokens_sum{model="decision-1"}')).toBeGreaterThanOrEqual(read);
    expect(text).toContain('# TYPE tds_batch_tokens histogram');
    expect(metricIn(text, 'tds_kv_cache_bytes{model="decision-1"}')).toBeGreaterThan(1e6);
  });

  test('one that a full queue refused has waited for nothing, and makes no wait look shorter', async () => {
    const gate = new Gate();
    const fresh = await startWatchedService({
      queue_limit: 1,
      openEngine: (engine) => waitingAt(engine, gate),
    });
    const { key } = await addAccount(fresh.service);
    const answered = ask(fresh.service, key);
    await gate.reached;
    expect((await ask(fresh.service, key, { state: 'Another record.' })).status).toBe(502);
    gate.open();
    expect((await answered).status).toBe(200);
    const text = await fresh.scrape();
    for (const name of ['request', 'platform', 'queue', 'model'])
      expect(metricIn(text, `tds_${name}_seconds_count{model="decision-1",mode="fast"}`)).toBe(1);
    await fresh.close();
  });

  test('each is counted once, by endpoint, mode and code', async () => {
    const fresh = await startWatchedService();
    const { service } = fresh;
    const account = await addAccount(service);
    const fast = [await ask(service, account.key), await ask(service, account.key)];
    const consistent = [
      await post(service, account.key, { ...SMALL_REQUEST, mode: 'consistent' }, '/v1/systemone'),
    ];
    const others = [
      await service.fetch('/v1/decisions', { method: 'POST' }),
      await post(service, account.key, '{'),
      await ask(service, account.key, { mode: 'slow' }),
      await ask(service, account.key, { model: 'no-such-model' }),
      await service.fetch('/v1/models', { headers: { 'x-api-key': account.key } }),
      await service.fetch('/v1/models', { method: 'DELETE' }),
      await service.fetch('/no/such/path'),
      await service.fetch('/healthz'),
      await service.fetch('/readyz'),
      await service.fetch('/readyz', { method: 'POST' }),
    ];
    await Promise.all(others.map((response) => response.arrayBuffer()));
    await sendRaw(service.server.address, 'no request\r\n\r\n');
    const text = await fresh.scrape();
    expect([...seriesOf(text, 'tds_requests_total')].sort()).toEqual(
      [
        'tds_requests_total{endpoint="/v1/decisions",model="decision-1",mode="fast",status="200",code="ok"} 2',
        'tds_requests_total{endpoint="/v1/systemone",model="decision-1",mode="consistent",status="200",code="ok"} 1',
        'tds_requests_total{endpoint="/v1/decisions",model="none",mode="none",status="401",code="missing_api_key"} 1',
        'tds_requests_total{endpoint="/v1/decisions",model="none",mode="none",status="400",code="invalid_json"} 1',
        'tds_requests_total{endpoint="/v1/decisions",model="none",mode="none",status="422",code="invalid_mode"} 1',
        'tds_requests_total{endpoint="/v1/decisions",model="none",mode="none",status="404",code="model_not_found"} 1',
        'tds_requests_total{endpoint="/v1/models",model="none",mode="none",status="200",code="ok"} 1',
        'tds_requests_total{endpoint="/v1/models",model="none",mode="none",status="405",code="method_not_allowed"} 1',
        'tds_requests_total{endpoint="/readyz",model="none",mode="none",status="405",code="method_not_allowed"} 1',
        'tds_requests_total{endpoint="other",model="none",mode="none",status="404",code="not_found"} 1',
        'tds_requests_total{endpoint="other",model="none",mode="none",status="400",code="malformed_request"} 1',
      ].sort(),
    );
    for (const [mode, responses] of [
      ['fast', fast],
      ['consistent', consistent],
    ] as const) {
      const { tokens, questions, micros } = await usageOf(responses);
      const labels = `{model="decision-1",mode="${mode}"}`;
      expect(metricIn(text, `tds_input_tokens_total${labels}`)).toBe(tokens);
      expect(metricIn(text, `tds_questions_total${labels}`)).toBe(questions);
      expect(metricIn(text, `tds_charged_micros_total${labels}`)).toBe(micros);
      expect(micros).toBeGreaterThan(0);
      for (const part of ['request', 'platform', 'queue', 'model']) {
        expect([part, metricIn(text, `tds_${part}_seconds_count${labels}`)]).toEqual([
          part,
          responses.length,
        ]);
      }
      const sumOf = (part: string) => metricIn(text, `tds_${part}_seconds_sum${labels}`);
      expect(sumOf('platform') + sumOf('queue') + sumOf('model')).toBeCloseTo(sumOf('request'), 6);
      expect(sumOf('model')).toBeGreaterThan(0);
    }
    await fresh.close();
  });

  test('a record that is asked again is reused: tokens read and saved make the same plan', async () => {
    const account = await addAccount(watched.service);
    const counted = async () => {
      const text = await watched.scrape();
      return {
        read: metricIn(text, 'tds_read_tokens_total{model="decision-1"}'),
        reused: metricIn(text, 'tds_reused_tokens_total{model="decision-1"}'),
      };
    };
    const before = await counted();
    await (await ask(watched.service, account.key)).arrayBuffer();
    const once = await counted();
    await (await ask(watched.service, account.key)).arrayBuffer();
    const twice = await counted();
    expect(once.reused).toBe(before.reused);
    expect(twice.reused).toBeGreaterThan(once.reused);
    expect(twice.read - once.read + (twice.reused - once.reused)).toBe(once.read - before.read);
  });

  test('one whose client went away is not counted, but its times are, because they may be why', async () => {
    const begun = Promise.withResolvers<void>();
    const left = await startWatchedService({
      openEngine: (engine) => goingOnWithoutClient(engine, begun.resolve),
    });
    const { key } = await addAccount(left.service);
    const client = new AbortController();
    const asked = left.service.fetch('/v1/decisions', {
      method: 'POST',
      headers: { 'x-api-key': key },
      body: JSON.stringify(SMALL_REQUEST),
      signal: client.signal,
    });
    await begun.promise;
    client.abort();
    await expect(asked).rejects.toThrow();
    const labels = '{model="decision-1",mode="fast"}';
    await eventually(async () => (await left.value(`tds_request_seconds_count${labels}`)) === 1);
    const text = await left.scrape();
    expect(seriesOf(text, 'tds_requests_total')).toEqual([]);
    expect(seriesOf(text, 'tds_questions_total')).toEqual([]);
    await left.close();
  });

  test('a failure of ours is counted by its step, and the request by its code', async () => {
    const account = await addAccount(watched.service);
    const before = await watched.value('tds_problems_total{step="hold"}');
    const refused = await withoutTable(watched.service, 'ledger_entries', () =>
      ask(watched.service, account.key),
    );
    expect(refused.status).toBe(503);
    await refused.arrayBuffer();
    expect(await watched.value('tds_problems_total{step="hold"}')).toBe(before + 1);
    expect(
      await watched.value(
        'tds_requests_total{endpoint="/v1/decisions",model="decision-1",mode="fast",status="503",code="billing_unavailable"}',
      ),
    ).toBe(1);
  });

  test('an audit tells of its violations, and of none once the books are right again', async () => {
    const { service } = watched;
    const account = await addAccount(service);
    const { problems, ...services } = service.service.services;
    if (!(problems instanceof ProblemLog)) throw new Error('no log of problems');
    const history = new HistoryThread(service.db.$client.filename);
    // The service's own connection never waits for the lock, which one of its threads may have.
    const beside = connectDatabase(service.db.$client.filename);
    const shift = (micros: number) =>
      beside.$client.run('UPDATE organizations SET credit_micros = credit_micros + ?1 WHERE id = ?2', [
        micros,
        account.organization_id,
      ]);
    const audit = () =>
      hourly({
        ...services,
        history,
        problems,
        log: { ...services.log, problem: () => {} },
        beginsHourlyRun: () => Promise.resolve(true),
        usage_retention_days: null,
        audit_log_retention_days: 365,
      });
    shift(1);
    await audit();
    expect(await watched.value('tds_audit_violations')).toBeGreaterThan(0);
    shift(-1);
    await audit();
    expect(await watched.value('tds_audit_violations')).toBe(0);
    expect(await watched.value('tds_audit_timestamp_seconds')).toBeGreaterThan(0);
    beside.$client.close();
  });

  test('a start says when the last clean audit was, and nothing of one that never was', async () => {
    using folder = temporaryDirectory();
    const audit_s = async (run: (service: TestService) => unknown) => {
      const started = await startWatchedService({ directory: folder.path, cold: true });
      const at_s = await started.value('tds_audit_timestamp_seconds');
      await run(started.service);
      await started.close();
      return at_s;
    };
    let audited_ms = 0;
    expect(
      await audit_s(({ db, clock }) => {
        audited_ms = clock.now_ms();
        continueAudit(db, { now_ms: audited_ms });
      }),
    ).toBe(0);
    expect(await audit_s(() => undefined)).toBe(audited_ms / 1_000);
  });

  test('the writes of one turn of the event loop are one commit', async () => {
    // Readiness looks once, and again never: what it writes is none of the writes that are counted.
    const still = await startWatchedService({ clock: MovableClock.stopped() });
    await still.scrape();
    const { organization_id, project_id } = await addAccount(still.service);
    const { books } = still.service.service.services;
    const counted = async () => {
      const text = await still.scrape();
      return [metricIn(text, 'tds_commit_seconds_count'), metricIn(text, 'tds_commit_writes_total')] as const;
    };
    const [commits, writes] = await counted();
    const held = await Promise.all(
      [1, 2, 3].map((number) =>
        books.hold({ organization_id, project_id, request_id: `req_${number}`, amount_micros: 1, at_ms: 0 }),
      ),
    );
    expect(await counted()).toEqual([commits + 1, writes + 3]);
    expect(books.open).toEqual({ holds: 3, oldest_at_ms: 0 });
    await Promise.all(held.map((result) => (result.held ? books.release(result.hold, null) : undefined)));
    expect(await counted()).toEqual([commits + 2, writes + 6]);
    expect(books.open).toEqual({ holds: 0, oldest_at_ms: null });
    await still.close();
  });

  test('an event loop that was held up is seen', async () => {
    Bun.sleepSync(400);
    await eventually(async () => (await watched.value('tds_event_loop_lag_seconds_sum')) >= 0.25);
  });
});

test(`a scrape while ${REQUESTS} requests are at the model sees them and their holds, and none afterwards`, async () => {
  const go_on = Promise.withResolvers<void>();
  let at_model = 0;
  const busy = await startWatchedService({
    openEngine: (engine) =>
      intercepted(engine, async (run, { scope }) => {
        if (scope !== 'warm-up') {
          at_model += 1;
          await go_on.promise;
        }
        return await run();
      }),
  });
  const accounts = [await addAccount(busy.service), await addAccount(busy.service)];
  const asked = Array.from({ length: REQUESTS }, (_, index) =>
    ask(busy.service, accounts[index % 2]?.key ?? ''),
  );
  await eventually(() => at_model >= REQUESTS);
  busy.service.clock.advance(7_000);
  const during = await busy.scrape();
  expect(metricIn(during, 'tds_model_requests')).toBe(REQUESTS);
  expect(metricIn(during, 'tds_holds_open')).toBe(REQUESTS);
  expect(metricIn(during, 'tds_hold_oldest_seconds')).toBeGreaterThanOrEqual(7);
  go_on.resolve();
  const { tokens } = await usageOf(await Promise.all(asked));
  const after = await busy.scrape();
  expect(metricIn(after, 'tds_model_requests')).toBe(0);
  expect(metricIn(after, 'tds_holds_open')).toBe(0);
  expect(metricIn(after, 'tds_hold_oldest_seconds')).toBe(0);
  expect(
    metricIn(
      after,
      'tds_requests_total{endpoint="/v1/decisions",model="decision-1",mode="fast",status="200",code="ok"}',
    ),
  ).toBe(REQUESTS);
  expect(metricIn(after, 'tds_input_tokens_total{model="decision-1",mode="fast"}')).toBe(tokens);
  await busy.close();
});

describe('for alerts', () => {
  test('each check of readiness has a value, and that of a full disk is the one that fails', async () => {
    let free_bytes = 0;
    const full = await startWatchedService({ freeBytes: () => Promise.resolve(free_bytes) });
    const ready = async () => {
      full.service.clock.advance(1_000);
      return seriesOf(await full.scrape(), 'tds_ready');
    };
    const well = ['draining', 'model', 'database'].map((check) => `tds_ready{check="${check}"} 1`);
    expect(await ready()).toEqual([...well, 'tds_ready{check="disk"} 0']);
    free_bytes = 1e12;
    expect(await ready()).toEqual([...well, 'tds_ready{check="disk"} 1']);
    await full.close();
  });

  test('the database says how large it is and what its disk has left', async () => {
    const { filename } = watched.service.db.$client;
    const stored = () => [filename, `${filename}-wal`].reduce((sum, path) => sum + Bun.file(path).size, 0);
    // A scrape may write, for the check of readiness; the write below is for where that check was just made.
    await watched.scrape();
    // A reader keeps the thread of the checkpoints from emptying the log.
    using reader = new Database(filename, { readonly: true, strict: true });
    reader.run('BEGIN; SELECT count(*) FROM organizations');
    await watched.service.execute('UPDATE organizations SET name = name');
    const before = stored();
    const text = await watched.scrape();
    expect(metricIn(text, 'tds_database_bytes')).toBeWithin(before, stored() + 1);
    expect(before).toBeGreaterThan(Bun.file(filename).size);
    expect(metricIn(text, 'tds_disk_free_bytes')).toBeGreaterThan(0);
    // PostgreSQL's.
    expect(seriesOf(text, 'tds_database_pool_under_way')).toEqual([]);
  });

  test('a payment event that belongs to nobody is there until the operator has decided about it', async () => {
    const { accounts } = watched.service;
    const waiting = () => watched.value('tds_payment_events_unresolved');
    expect(await waiting()).toBe(0);
    const { body, signature } = sign(transaction('transaction.completed'), {
      now_ms: accounts.clock.now_ms(),
    });
    await handleWebhook(accounts, paddleProvider(SETTINGS), Buffer.from(body), signature);
    expect(await waiting()).toBe(1);
    await dismissPaymentEvent(accounts, OPERATOR, eventId(body));
    expect(await waiting()).toBe(0);
  });

  test('a database that does not say leaves no value, and the rest is read', async () => {
    const metrics = new PrometheusMetrics({ version: '1', commit: 'abc', runtime: 'test' });
    metrics.watch({
      models: () => [],
      schedulerLoad: () => ({ requests: 0, waiting_plans: 0, running_tokens: 0 }),
      answerDrifts: () => [{ model: 'support-1', index: 0.31 }],
      books: { open: { holds: 0, oldest_at_ms: null }, unwritten: 0 },
      problems: watched.service.service.services.problems,
      readiness: { failing: () => Promise.resolve(['database']) },
      databaseState: () => Promise.reject(new Error('it is away')),
      unresolvedEvents: () => Promise.reject(new Error('it is away')),
      now_ms: () => 0,
    });
    const text = await metrics.text();
    metrics.close();
    expect(seriesOf(text, 'tds_database_bytes')).toEqual([]);
    expect(seriesOf(text, 'tds_payment_events_unresolved')).toEqual([]);
    expect(metricIn(text, 'tds_ready{check="database"}')).toBe(0);
    expect(metricIn(text, 'tds_answer_drift_index{model="support-1"}')).toBe(0.31);
    expect(text).toContain('tds_build_info{version="1",commit="abc",runtime="test"} 1');
  });
});

test('the scheduler knows what waits and what runs', async () => {
  const scheduler = new ModelScheduler(8, { monotonic_ms: () => 0 });
  const done = Promise.withResolvers<void>();
  const signal = new AbortController().signal;
  const plan = { tokens: 10, decoder: 'small', decoder_tokens: 15 } as const;
  const entered = ['a', 'b', 'c'].map(async (organization) => {
    using slot = await scheduler.take(organization);
    await slot.run(plan, () => done.promise, signal);
  });
  await eventually(() => scheduler.load().waiting_plans > 0);
  expect(scheduler.load()).toEqual({ requests: 3, waiting_plans: 1, running_tokens: 20 });
  done.resolve();
  await Promise.all(entered);
  expect(scheduler.load()).toEqual({ requests: 0, waiting_plans: 0, running_tokens: 0 });
});

test('nothing that a client wrote, and no id, is in labels or values', async () => {
  const { service } = watched;
  const account = await addAccount(service);
  const marker = 'Quetzalcoatl';
  const responses = [
    await post(service, marker, SMALL_REQUEST),
    await service.fetch(`/${marker}?${marker}=${marker}`, { headers: { [`x-${marker}`]: marker } }),
    await ask(service, account.key, { model: marker }),
    await ask(service, account.key, { mode: marker }),
    await post(service, account.key, SMALL_REQUEST, `/v1/decisions?mode=${marker}`),
    await ask(service, account.key, {
      state: marker,
      questions: {
        [marker]: { type: 'choice', instructions: marker, criteria: { [marker]: marker, b: marker } },
      },
    }),
    await ask(service, account.key, { questions: { [marker]: { type: marker } } }),
  ];
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 401, 404, 422]));
  const ids = responses.map((response) => response.headers.get('x-request-id') ?? '');
  await Promise.all(responses.map((response) => response.arrayBuffer()));
  const text = await watched.scrape();
  expect(text.toLowerCase()).not.toContain(marker.toLowerCase());
  const { organization_id, project_id, key_id, key } = account;
  for (const id of [...ids, organization_id, project_id, key_id, key]) expect(text).not.toContain(id);
  const labels = [...text.matchAll(/[{,](\w+)="/g)].map(([, label]) => label ?? '');
  expect([...new Set(labels)].sort()).toEqual(LABELS);
});

describe('the listener', () => {
  const CONNECTIONS = CONNECTION_LIMITS.total;

  test('has the type of the format, and nothing else at other paths', async () => {
    const { url } = watched.listener;
    const response = await fetch(url);
    expect(response.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    await response.arrayBuffer();
    const elsewhere = await fetch(url.replace('/metrics', '/v1/models'));
    expect([elsewhere.status, await elsewhere.text()]).toEqual([404, 'The metrics are at /metrics.\n']);
    const posted = await fetch(url, { method: 'POST', body: 'x' });
    expect([posted.status, posted.headers.get('allow'), await posted.text()]).toEqual([
      405,
      'GET, HEAD',
      'Metrics are only read.\n',
    ]);
    const head = await sendRaw(url, 'HEAD /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    expect(parseRaw(head)).toMatchObject({ status: 200, body: '' });
    expect((await watched.service.fetch('/metrics')).status).toBe(404);
  });

  test('metrics that cannot be read are an error whose cause is reported', async () => {
    const { problems } = watched.service.service.services;
    const unreadable = { content_type: 'text/plain', text: () => Promise.reject(new TypeError('gone')) };
    const listener = await startMetricsListener(unreadable, { host: '127.0.0.1', port: 0 }, problems);
    expect((await fetch(listener.url)).status).toBe(500);
    await listener.stop();
    expect(problems.recent({ limit: 1 })).toMatchObject([
      { request_id: null, step: 'http', error: 'TypeError' },
    ]);
  });

  test.each([
    ['say nothing', ''],
    ['do not end their request', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n'],
    ['do not end a body', 'POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1'],
    ['are kept open', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['do not read answers', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(200)],
  ])('connections that %s keep nobody from the metrics', async (_, bytes) => {
    // Of its own, because `fetch` would take a connection that another test left open, and that makes room here.
    const listener = await startMetricsListener(
      watched.metrics,
      { host: '127.0.0.1', port: 0 },
      watched.service.service.services.problems,
    );
    const { hostname, port } = new URL(listener.url);
    const silent = Array.from({ length: CONNECTIONS + 8 }, () => {
      const socket = connect(Number(port), hostname).pause();
      socket.on('error', () => {});
      socket.write(bytes);
      return socket;
    });
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    for (let scrapes = 0; scrapes < 40; scrapes += 1) {
      const response = await fetch(listener.url, { keepalive: false });
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('tds_build_info');
    }
    for (const socket of silent) socket.destroy();
    await listener.stop();
  });

  test('connections that begin while the metrics are read do not close the one that reads', async () => {
    const reading = Promise.withResolvers<void>();
    const may_end = Promise.withResolvers<void>();
    const slow = {
      content_type: watched.metrics.content_type,
      text: async () => {
        reading.resolve();
        await may_end.promise;
        return await watched.metrics.text();
      },
    };
    const { problems } = watched.service.service.services;
    const listener = await startMetricsListener(slow, { host: '127.0.0.1', port: 0 }, problems);
    const { hostname, port } = new URL(listener.url);
    const open = () => connect(Number(port), hostname).on('error', () => {});
    // By a socket, because `fetch` may ask again after its connection was closed.
    const scrape = open();
    scrape.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await reading.promise;
    const others: ReturnType<typeof open>[] = [];
    for (let count = 0; count < 2 * CONNECTIONS; count += 1) {
      const other = open();
      others.push(other);
      other.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      await once(other, 'data');
    }
    may_end.resolve();
    expect(await text(scrape)).toContain('tds_build_info');
    for (const socket of others) socket.destroy();
    await listener.stop();
  });

  test('a stop does not wait for connections that are kept open', async () => {
    const listener = await startMetricsListener(
      watched.metrics,
      { host: '127.0.0.1', port: 0 },
      watched.service.service.services.problems,
    );
    await (await fetch(listener.url)).arrayBuffer();
    await listener.stop();
    await expect(fetch(listener.url)).rejects.toThrow();
  });
});
