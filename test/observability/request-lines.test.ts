import { expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { Writable } from 'node:stream';
import { OVERLOADS } from '../../src/errors/errors.ts';
import { projectFile } from '../../src/files/project-root.ts';
import { PORT_REFUSAL_LINES } from '../../src/http/request-records.ts';
import { BodyBudget } from '../../src/limits/body-budget.ts';
import { type AdjustableLog, createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { OtlpTracing } from '../../src/observability/otlp-tracing.ts';
import { PrometheusMetrics } from '../../src/observability/prometheus-metrics.ts';
import { RecentActivity } from '../../src/observability/recent-activity.ts';
import { systemClock } from '../../src/time/clock.ts';
import { MovableClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { seriesOf } from '../support/metrics.ts';
import { RecordedLog } from '../support/problems.ts';
import { parseRaw, sendRaw } from '../support/raw-http.ts';
import { ask, callTool, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

/**
 * The lines of the requests that one service answered: a decision, one that was refused for its key, and where that is
 * wanted the first one again.
 */
async function linesOf(
  options: Parameters<typeof createLog>[2],
  is_repeated = false,
): Promise<readonly Record<string, unknown>[]> {
  let text = '';
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      text += chunk;
      done();
    },
  });
  const output = new BoundedOutput(stream);
  const log: AdjustableLog = createLog('info', output, options);
  const collector = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({}) });
  const tracing = new OtlpTracing({
    url: `${collector.url}v1/traces`,
    headers: {},
    ratio: 1,
    random: () => 0,
    version: '1',
    instance_id: 'process_1',
    clock: systemClock,
  });
  const service = await startTestService({ log, tracing });
  const { key } = await addAccount(service);
  for (const used of [key, 'sk_svc_wrong', ...(is_repeated ? [key] : [])]) {
    const response = await service.fetch('/v1/decisions', {
      method: 'POST',
      headers: {
        'x-api-key': used,
        traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01`,
        ...(is_repeated ? { 'idempotency-key': 'one' } : {}),
      },
      body: JSON.stringify(SMALL_REQUEST),
    });
    await response.arrayBuffer();
  }
  await service.close();
  await tracing.close();
  await collector.stop(true);
  await output.flush(60_000);
  const lines = text.split('\n').slice(0, -1);
  return lines
    .map((line): Record<string, unknown> => JSON.parse(line))
    .filter(({ msg }) => msg === 'request');
}

test('the line of a request has its model, mode, tokens and trace, and a level that is a word', async () => {
  const [answered, refused] = await linesOf({});
  expect(answered).toMatchObject({
    level: 'info',
    status: 200,
    model: 'decision-1',
    mode: 'fast',
    input_tokens: expect.any(Number),
    trace_id: TRACE_ID,
  });
  expect(refused).toMatchObject({
    status: 401,
    model: null,
    mode: null,
    input_tokens: null,
    trace_id: TRACE_ID,
  });
  for (const line of [answered, refused]) {
    expect(String(line?.duration_ms)).toMatch(/^\d+(\.\d{1,3})?$/);
    // It is personal data.
    expect(line).not.toHaveProperty('client_address');
  }
});

test('with --log-client-address the line names the client', async () => {
  const lines = await linesOf({ has_client_address: true });
  expect(lines.map(({ client_address }) => client_address)).toEqual(['127.0.0.1', '127.0.0.1']);
});

test('the line of a replayed answer says so, and no other', async () => {
  const [first, , second] = await linesOf({}, true);
  expect(first).not.toHaveProperty('is_replayed');
  expect(second).toMatchObject({ status: 200, model: 'decision-1', input_tokens: null, is_replayed: true });
});

test('the line of a refusal says what refused, and after how many seconds a retry makes sense', async () => {
  const recorded = new RecordedLog();
  const budget = new BodyBudget({ owner_bytes: 1, total_bytes: 1, body_bytes_min: 1 });
  const service = await startTestService({ cold: true, log: recorded.log, body_limits: { budget } });
  const { key } = await addAccount(service);
  const full = await ask(service, key);
  service.service.drain();
  const stopping = await ask(service, key);
  const wrong = await service.fetch('/v1/nothing');
  await service.close();
  const lines = await recorded.lines();
  const lineOf = (response: Response) =>
    lines.find(({ request_id }) => request_id === response.headers.get('x-request-id'));
  const overloaded = { status: 503, code: 'overloaded' };
  expect(lineOf(full)).toMatchObject({ ...overloaded, reason: 'arriving_bodies', retry_after_s: 1 });
  expect(lineOf(stopping)).toMatchObject({ ...overloaded, reason: 'stopping', retry_after_s: 5 });
  expect(lineOf(wrong)).toMatchObject({ status: 404 });
  for (const name of ['reason', 'retry_after_s']) expect(lineOf(wrong)).not.toHaveProperty(name);
});

test('a refusal that an agent reads is one in the log, the metrics and the refusals, and its answer is none', async () => {
  const recorded = new RecordedLog();
  const metrics = new PrometheusMetrics({ version: '1', commit: 'abc', runtime: 'test' });
  const activity = new RecentActivity(metrics, systemClock);
  const service = await startTestService({ log: recorded.log, metrics: activity });
  const { key, organization_id } = await addAccount(service);
  const { state: record, questions } = SMALL_REQUEST;
  for (const [name, given] of [
    ['decide', { record, questions, model: 'no-such-model' }],
    ['usage', { days: 0 }],
    ['decide', { record, questions }],
  ] as const) {
    const response = await callTool(service, key, name, given);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  }
  await service.close();
  const text = await metrics.text();
  metrics.close();
  const lines = (await recorded.lines()).filter(({ msg }) => msg === 'request');
  expect(lines.map(({ status, code }) => [status, code])).toEqual([
    [404, 'model_not_found'],
    [422, 'invalid_request'],
    [200, null],
  ]);
  const series = (model: string, mode: string, status: number, code: string) =>
    `tds_requests_total{endpoint="/mcp",model="${model}",mode="${mode}",status="${status}",code="${code}"} 1`;
  expect(seriesOf(text, 'tds_requests_total')).toEqual([
    series('none', 'none', 404, 'model_not_found'),
    series('none', 'none', 422, 'invalid_request'),
    series('decision-1', 'fast', 200, 'ok'),
  ]);
  const codes = activity.refusalsOf(organization_id).map(({ code, requests }) => [code, requests]);
  expect(codes).toEqual([
    ['invalid_request', 1],
    ['model_not_found', 1],
  ]);
});

test('what is no request has a line with its id and none of its text, for each address only so many', async () => {
  const recorded = new RecordedLog();
  const clock = MovableClock.stopped();
  const service = await startTestService({ cold: true, log: recorded.log, clock });
  const refused = async () => parseRaw(await sendRaw(service.server.address, 'my secret\r\n\r\n'));
  const ids: (string | undefined)[] = [];
  for (let count = 0; count < PORT_REFUSAL_LINES.at_once + 5; count += 1) {
    const { status, headers } = await refused();
    expect(status).toBe(400);
    ids.push(headers['x-request-id']);
  }
  clock.advance(PORT_REFUSAL_LINES.refill_ms);
  const later = (await refused()).headers['x-request-id'];
  await service.close();
  const lines = (await recorded.lines()).filter(({ msg }) => msg === 'request');
  const listed = [...ids.slice(0, PORT_REFUSAL_LINES.at_once), later];
  expect(lines.map(({ request_id }) => request_id ?? undefined)).toEqual(listed);
  for (const line of lines)
    expect(line).toMatchObject({ path: null, status: 400, code: 'malformed_request' });
  expect(recorded.text).not.toContain('secret');
});

test('a client that leaves within its body has the status 499 in the log, and is not counted', async () => {
  const recorded = new RecordedLog();
  const metrics = new PrometheusMetrics({ version: '1', commit: 'abc', runtime: 'test' });
  const service = await startTestService({ cold: true, log: recorded.log, metrics });
  const { key } = await addAccount(service);
  const { hostname, port } = new URL(service.server.address);
  const paths = ['/v1/decisions', '/v1/tokens', '/v1/decisions/batch', '/mcp'];
  for (const path of paths) {
    for (const leave of ['destroy', 'resetAndDestroy'] as const) {
      const client = connect(Number(port), hostname);
      const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${key}\r\nContent-Length: 100\r\n`;
      // It is asked for its body once the body is read.
      const is_read = new Promise((resolve) => client.once('data', resolve));
      client.write(`${head}Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n`);
      await is_read;
      client.write('{"state":');
      client[leave]();
    }
  }
  const lines = async () => (await recorded.lines()).filter(({ msg }) => msg === 'request');
  await eventually(async () => (await lines()).length === 2 * paths.length);
  for (const line of await lines()) expect(line).toMatchObject({ status: 499, code: null });
  await service.close();
  expect(seriesOf(await metrics.text(), 'tds_requests_total')).toEqual([]);
  metrics.close();
});

test('OPERATIONS.md says of every reason where it comes from', () => {
  const text = readFileSync(projectFile('OPERATIONS.md'), 'utf8');
  const told = [...text.matchAll(/^\| `overloaded` \| `(\w+)` \|/gm)].map(([, reason]) => reason ?? '');
  expect(told.sort()).toEqual(Object.keys(OVERLOADS).sort());
});
