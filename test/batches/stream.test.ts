import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { connect } from 'node:net';
import { OPERATOR } from '../../src/access/actor.ts';
import { setTierSettings } from '../../src/accounts/organizations.ts';
import { type AnsweredRequest, NO_METRICS } from '../../src/observability/metrics.ts';
import { eventually } from '../support/eventually.ts';
import { aborted, Gate, intercepted } from '../support/faults.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { booksOf, closeAudited, untilHeld, usageOf } from '../support/money.ts';
import { RecordedLog } from '../support/problems.ts';
import { parseRaw } from '../support/raw-http.ts';
import {
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  POLL_MS,
  startTestService,
  type TestAccount,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts';
import {
  type BatchAnswer,
  BatchClient,
  codesOf,
  HEADER,
  ndjson,
  RawBatchClient,
  record,
  sendBatch,
} from './support.ts';

setDefaultTimeout(4 * MODEL_TEST_TIMEOUT_MS);

const CREDIT_MICROS = 100_000_000;
/** Lines of a batch that are under way at most. */
const AT_ONCE = 32;

let own: TestService | undefined;
afterEach(async () => {
  if (own !== undefined) await closeAudited(own);
  own = undefined;
});

/** A service whose model answers at once, unless `gate` is closed. */
async function start(options: TestServiceOptions = {}) {
  const gate: { closed: Gate | null } = { closed: null };
  const service = await startTestService({
    openEngine: (engine) =>
      intercepted(instantEngine(engine), async (run, { signal }) => {
        const given_up = Promise.withResolvers<never>();
        signal?.addEventListener('abort', () => given_up.reject(signal.reason));
        if (gate.closed !== null) await Promise.race([gate.closed.pass(), given_up.promise]);
        return await run();
      }),
    ...options,
  });
  own = service;
  return { service, account: await addRichlyLimited(service, CREDIT_MICROS), gate };
}

async function all(answers: AsyncIterable<BatchAnswer>): Promise<readonly BatchAnswer[]> {
  const read: BatchAnswer[] = [];
  for await (const answer of answers) read.push(answer);
  return read.sort((one, other) => one.line - other.line);
}

/** Returns a number once it does not change any more. */
async function settled(now: () => number): Promise<number> {
  let before = -1;
  for (let value = now(); value !== before || value === 0; value = now()) {
    before = value;
    await Bun.sleep(40 * POLL_MS);
  }
  return before;
}

/** Waits until so many lines have a place at the model. */
function untilAtModel(service: TestService, lines: number): Promise<void> {
  return eventually(() => service.service.services.models.schedulerLoad().requests >= lines);
}

const rowsOf = async (service: TestService, account: TestAccount) =>
  (await booksOf(service, account)).usage_rows;

test('a client that does not read stops the reading of its lines, and gets all answers once it reads', async () => {
  const { service, account } = await start();
  // The errors name the question, so that the answers are as large as the lines.
  const question = 'q'.repeat(100_000);
  const lines = Array.from({ length: 800 }, (_, id) =>
    ndjson([{ id, state: 'a', questions: { [question]: { type: 'essay' } } }]),
  );
  const all_lines = [ndjson([HEADER, record(0)]), ...lines, ndjson([record(1)])];
  const client = new RawBatchClient(service, account.key, all_lines);
  const sent = client.send();
  // Of 80 MB, the operating system keeps some in both directions: 14 on most runs, and at times 31.
  expect(await settled(() => client.sent_bytes)).toBeLessThan(50_000_000);
  const answers = await client.read();
  await sent;
  expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(['r0', 'r1', ...lines.keys()]));
  expect(answers).toHaveLength(802);
  expect(await rowsOf(service, account)).toBe(2);
});

test('no more than a few lines are taken that are not answered', async () => {
  const { service, account, gate } = await start();
  gate.closed = new Gate();
  const padding = 'x'.repeat(100_000);
  const lines = Array.from({ length: 400 }, (_, number) => ndjson([{ ...record(number), padding }]));
  const client = new RawBatchClient(service, account.key, [ndjson([HEADER]), ...lines]);
  const sent = client.send();
  await gate.closed.reached;
  expect(await settled(() => client.sent_bytes)).toBeLessThan(20_000_000);
  gate.closed.open();
  expect(await client.read()).toHaveLength(400);
  await sent;
});

test('a batch that ends early is told so while it sends on, and is closed', async () => {
  const { service } = await start({ timeouts: { request_ms: 10_000, idle_ms: 1_000 } });
  const account = await addRichlyLimited(service, 5);
  const endless = Array<string>(100_000).fill(ndjson([{ ...record(1), padding: 'x'.repeat(10_000) }]));
  const client = new RawBatchClient(service, account.key, [ndjson([HEADER]), ...endless], '1.1');
  client.socket.resume();
  await client.send();
  await client.closed;
  expect(client.received).toMatch(
    /\{"id":null,"line":\d+,.*"code":"insufficient_credit".*\}\n\r\n0\r\n\r\n$/,
  );
});

test('however much comes, the memory of a batch is that of a few lines', async () => {
  const { service, account } = await start();
  const client = new BatchClient(service, account.key);
  const padding = 'x'.repeat(100_000);
  client.write(HEADER);
  let answered = 0;
  const read = (async () => {
    for await (const answer of client.answers()) answered += 'object' in answer ? 1 : 0;
  })();
  let least_bytes = Number.POSITIVE_INFINITY;
  let growth_bytes = 0;
  const count = 2_000;
  for (let number = 0; number < count; number += 1) {
    if (!client.write({ ...record(number), padding })) await client.sent;
    if (number % 100 !== 99) continue;
    Bun.gc(true);
    const { rss } = process.memoryUsage();
    least_bytes = Math.min(least_bytes, rss);
    // Memory that other tests left may be given back meanwhile: only what comes after the least counts.
    growth_bytes = Math.max(growth_bytes, rss - least_bytes);
  }
  client.end();
  await read;
  expect(answered).toBe(count);
  // Of 200 MB.
  expect(growth_bytes).toBeLessThan(60_000_000);
});

describe('a client that leaves', () => {
  test('is charged for what it was answered, and for nothing that waits for the model, which has not failed', async () => {
    const recorded = new RecordedLog();
    const counted: number[] = [];
    const metrics = { ...NO_METRICS, requestAnswered: ({ status }: AnsweredRequest) => counted.push(status) };
    const { service, account, gate } = await start({ log: recorded.log, metrics });
    const client = new BatchClient(service, account.key);
    client.write(HEADER);
    const answers = client.answers();
    for (let number = 0; number < 10; number += 1) {
      client.write(record(number));
      expect((await answers.next()).value).toMatchObject({ id: `r${number}`, object: 'decision' });
    }
    gate.closed = new Gate();
    for (let number = 10; number < 100; number += 1) client.write(record(number));
    await gate.closed.reached;
    client.leave();
    await untilHeld(service, account, 0);
    const rows = await usageOf(service, account);
    expect(rows).toHaveLength(10);
    const spent = rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0);
    expect(await booksOf(service, account)).toMatchObject({ credit_micros: CREDIT_MICROS - spent });
    // Nothing of it is left: as many batches as ever find room. The batch ends after the last of its lines.
    await eventually(() => service.service.services.batch_lines.taken_bytes === 0);
    const statuses = (await recorded.lines()).flatMap(({ status }) => status ?? []);
    expect([...new Set(statuses)].sort()).toEqual([200, 499]);
    expect(new Set(counted)).toEqual(new Set([200]));
  });

  test('with answers unread leaves no more charged than it can have been sent, and nothing held', async () => {
    const { service, account } = await start();
    const client = new BatchClient(service, account.key);
    client.write(HEADER, ...Array.from({ length: 500 }, (_, number) => record(number)));
    const answers = client.answers();
    await answers.next();
    client.leave();
    const { batch_lines } = service.service.services;
    await eventually(() => batch_lines.taken_bytes === 0);
    const { held_micros, credit_micros } = await booksOf(service, account);
    const rows = await usageOf(service, account);
    expect(held_micros).toBe(0);
    expect(rows.every(({ status }) => status === 200)).toBe(true);
    expect(CREDIT_MICROS - credit_micros).toBe(rows.reduce((sum, { cost_micros }) => sum + cost_micros, 0));
  });

  test('while its lines wait for their limits, with all answers read, ends them', async () => {
    const waits = new Gate();
    const { service } = await start({
      pause: async (_, signal) => {
        await Promise.race([waits.pass(), aborted(signal)]);
      },
    });
    const account = await addRichlyLimited(service, CREDIT_MICROS);
    await setTierSettings(service.accounts, OPERATOR, account.organization_id, { requests_per_minute: 10 });
    const client = new BatchClient(service, account.key);
    client.write(HEADER, ...Array.from({ length: 200 }, (_, number) => record(number)));
    const answers = client.answers();
    for (let number = 0; number < 9; number += 1) await answers.next();
    await waits.reached;
    client.leave();
    const { batch_lines } = service.service.services;
    await eventually(() => batch_lines.taken_bytes === 0);
    expect(await rowsOf(service, account)).toBe(9);
  });

  test('but only has no more to send is answered', async () => {
    const { service, account } = await start();
    const body = ndjson([HEADER, ...Array.from({ length: 50 }, (_, number) => record(number))]);
    const { hostname, port } = new URL(service.server.address);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    let received = '';
    const ended = new Promise<void>((resolve) => socket.once('end', resolve));
    socket.on('data', (data) => {
      received += data.toString('latin1');
    });
    socket.end(
      `POST /v1/decisions/batch HTTP/1.0\r\nAuthorization: Bearer ${account.key}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await ended;
    expect(parseRaw(received).body.match(/"object":"decision"/g)).toHaveLength(50);
  });
});

describe('a stop of the service', () => {
  test.each([
    ['of all lines under way', {}, AT_ONCE],
    ['of those that have a slot at the model', { queue_limit: 8 }, 4],
  ])('waits for the answers %s, and says where to go on', async (_, options, at_model) => {
    const { service, account, gate } = await start(options);
    gate.closed = new Gate();
    const client = new BatchClient(service, account.key);
    client.write(HEADER, ...Array.from({ length: 200 }, (_, number) => record(number)));
    await gate.closed.reached;
    // A line that is planned only now would get a slot as soon as the others are answered.
    await eventually(() => service.service.services.books.open.holds === AT_ONCE);
    await untilAtModel(service, at_model);
    service.service.drain();
    const stopped = service.server.stop();
    gate.closed.open();
    const answers = await all(client.answers());
    const last = answers.at(-1);
    expect(last).toMatchObject({
      id: null,
      error: {
        type: 'overloaded_error',
        code: 'overloaded',
        message: expect.stringContaining(
          `send the lines from line ${last?.line} on again, and earlier ones whose error can be retried.`,
        ),
      },
    });
    expect(answers.slice(0, -1).map(({ line }) => line)).toEqual(
      Array.from({ length: (last?.line ?? 0) - 2 }, (_, index) => index + 2),
    );
    const codes = codesOf(answers.slice(0, -1)).map(([, code]) => code);
    // Lines are planned side by side, so the first at the model need not be the first that were sent.
    expect(codes.filter((code) => code === null)).toHaveLength(at_model);
    expect(codes.filter((code) => code === 'overloaded')).toHaveLength(codes.length - at_model);
    expect(await stopped).toBe(0);
    expect(await booksOf(service, account)).toMatchObject({ held_micros: 0, usage_rows: at_model });
  });

  test('ends one that waits for its client', async () => {
    const { service, account } = await start();
    const client = new BatchClient(service, account.key);
    client.write(HEADER, record(0));
    const answers = client.answers();
    expect((await answers.next()).value).toMatchObject({ id: 'r0', object: 'decision' });
    service.service.drain();
    expect((await answers.next()).value).toMatchObject({ id: null, line: 3, error: { code: 'overloaded' } });
    expect((await answers.next()).done).toBe(true);
    expect(await service.server.stop()).toBe(0);
  });

  test('cuts what is not answered in time: it has an error, and is not charged', async () => {
    const { service, account, gate } = await start({ drain_ms: 0 });
    gate.closed = new Gate();
    const client = new BatchClient(service, account.key);
    client.write(HEADER, record(0), record(1));
    client.end();
    await untilAtModel(service, 2);
    service.service.drain();
    const stopped = service.server.stop();
    expect(codesOf(await all(client.answers()))).toEqual([
      [2, 'model_unavailable'],
      [3, 'model_unavailable'],
    ]);
    expect(await stopped).toBe(1);
    expect(await booksOf(service, account)).toMatchObject({ credit_micros: CREDIT_MICROS, held_micros: 0 });
  });
});

test('a client that is silent for too long has its batch ended, after all answers', async () => {
  const { service, account } = await start({ body_limits: { deadline_ms: 1_000 } });
  const client = new BatchClient(service, account.key);
  client.write(HEADER, record(0));
  expect(codesOf(await all(client.answers()))).toEqual([
    [2, null],
    [3, 'request_timeout'],
  ]);
});

test('an organization has four batches at once, and one more is told to come back', async () => {
  const { service, account } = await start();
  const clients = Array.from({ length: 4 }, () => new BatchClient(service, account.key));
  for (const client of clients) client.write(HEADER);
  await Promise.all(clients.map(({ response }) => response));
  const refused = await sendBatch(service, account.key, [HEADER]);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '30']);
  const other = await addRichlyLimited(service, CREDIT_MICROS);
  expect((await sendBatch(service, other.key, [HEADER])).status).toBe(200);
  for (const client of clients) client.end();
  await Promise.all(clients.map((client) => all(client.answers())));
  expect((await sendBatch(service, account.key, [HEADER])).status).toBe(200);
});

test('the log has a line for each request, by its id, and nothing of a record, a question or an id', async () => {
  const recorded = new RecordedLog();
  const { service, account } = await start({ log: recorded.log });
  const response = await sendBatch(service, account.key, [
    { questions: { 'secret-question': { type: 'noul', instructions: 'secret-words' } } },
    { id: 'secret-id', state: 'secret-record' },
    '{"secret-broken',
  ]);
  const answers = (await response.text())
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  const lines = (await recorded.lines()).filter(({ msg }) => msg === 'request');
  expect(lines.map(({ request_id, status }) => [request_id, status]).sort()).toEqual(
    [
      [response.headers.get('x-request-id'), 200],
      ...answers.map(({ request_id, error }) => [request_id, error === undefined ? 200 : 400]),
    ].sort(),
  );
  expect(recorded.text).toContain('"msg":"a batch has ended"');
  expect(recorded.text).not.toContain('secret');
});
