import { expect, setDefaultTimeout, test } from 'bun:test';
import { Writable } from 'node:stream';
import { type AdjustableLog, createLog } from '../../src/log/log.ts';
import { BoundedOutput } from '../../src/log/standard-output.ts';
import { OtlpTracing } from '../../src/observability/otlp-tracing.ts';
import { systemClock } from '../../src/time/clock.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
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
