import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { EvaluationFailed } from '../../native/engine.ts';
import { parseOtlpEndpoint } from '../../src/config/otlp.ts';
import { seededRandom } from '../../src/eval/random.ts';
import { callerOf, OtlpTracing } from '../../src/observability/otlp-tracing.ts';
import { systemClock } from '../../src/time/clock.ts';
import { startChildServer } from '../support/child-server.ts';
import { goingOnWithoutClient, intercepted } from '../support/faults.ts';
import { OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts';
import { RecordedLog } from '../support/problems.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
  type TestServiceOptions,
} from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const Answer = Type.Object({ usage: Type.Object({ input_tokens: Type.Number() }) });

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER_ID = '00f067aa0ba902b7';
const SERVER = 2;
const INTERNAL = 1;
const ERROR = 2;
const STEPS_OF_AN_ANSWER = ['key', 'request', 'admission', 'hold', 'wait', 'model', 'charge', 'response'];

/** A service whose traces go to a receiver. */
interface Traced {
  readonly service: TestService;
  readonly account: TestAccount;
  /** Everything that was sent, once the service has ended. */
  spans(): Promise<readonly ReceivedSpan[]>;
}

let receiver: OtlpReceiver;
let ended: (() => Promise<void>)[];
beforeEach(() => {
  receiver = new OtlpReceiver();
  ended = [];
});
afterEach(async () => {
  for (const end of ended) await end();
  await receiver[Symbol.asyncDispose]();
});

function tracingTo(endpoint: string, ratio = 1): OtlpTracing {
  return new OtlpTracing({
    url: parseOtlpEndpoint(endpoint),
    headers: { 'x-collector-key': 'secret' },
    ratio,
    random: seededRandom(1),
    version: '1.2.3',
    instance_id: 'proc_1',
    clock: systemClock,
  });
}

async function startTraced(options: TestServiceOptions & { readonly ratio?: number } = {}): Promise<Traced> {
  const tracing = tracingTo(receiver.endpoint, options.ratio);
  const service = await startTestService({ ...options, tracing });
  ended.push(() => service.close());
  return {
    service,
    account: await addAccount(service),
    async spans() {
      await tracing.close();
      return receiver.spans;
    },
  };
}

/** The span of the only request, and those of its steps in the order of their begin. */
function requestOf(spans: readonly ReceivedSpan[]) {
  const [request, ...others] = spans.filter(({ kind }) => kind === SERVER);
  if (request === undefined || others.length > 0) throw new Error(`${1 + others.length} requests`);
  const steps = spans.filter((span) => span !== request);
  for (const step of steps) {
    expect(step).toMatchObject({ kind: INTERNAL, traceId: request.traceId, parentSpanId: request.spanId });
  }
  const began = ({ startTimeUnixNano }: ReceivedSpan) => BigInt(startTimeUnixNano);
  return { request, steps: steps.sort((left, right) => (began(left) < began(right) ? -1 : 1)) };
}

describe('the trace of a request', () => {
  test('has its facts, and a span for every step, one after the other', async () => {
    const { service, account, spans } = await startTraced();
    const response = await ask(service, account.key, { mode: 'consistent', questions: ALL_TYPES });
    const { usage } = Value.Parse(Answer, await response.json());
    const { request, steps } = requestOf(await spans());
    expect(request.name).toBe('POST /v1/decisions');
    expect(request.parentSpanId).toBeUndefined();
    expect(request.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v1/decisions',
      'http.response.status_code': 200,
      'tds.request_id': response.headers.get('x-request-id') ?? '',
      'tds.organization_id': account.organization_id,
      'tds.project_id': account.project_id,
      'tds.key_id': account.key_id,
      'tds.model': 'decision-1',
      'tds.mode': 'consistent',
      'tds.questions': 3,
      'tds.input_tokens': usage.input_tokens,
    });
    expect(steps.map(({ name }) => name)).toEqual(STEPS_OF_AN_ANSWER);
    let before = BigInt(request.startTimeUnixNano);
    for (const step of steps) {
      expect(BigInt(step.startTimeUnixNano)).toBeGreaterThanOrEqual(before);
      before = BigInt(step.endTimeUnixNano);
      expect(step.attributes).toEqual({});
    }
    expect(BigInt(request.endTimeUnixNano)).toBeGreaterThanOrEqual(before);
    expect(receiver.posts[0]?.path).toBe('/v1/traces');
    expect(receiver.posts[0]?.headers.get('x-collector-key')).toBe('secret');
    expect(receiver.resources[0]).toEqual({
      'service.name': 'tds',
      'service.version': '1.2.3',
      'service.instance.id': 'proc_1',
    });
  });

  test('ends at the step that refused it, with the code, which is an error for our own faults only', async () => {
    const { service, account, spans } = await startTraced();
    const refused = await ask(service, account.key, { model: 'no-such-model' });
    expect(refused.status).toBe(404);
    const { request, steps } = requestOf(await spans());
    expect(request.attributes).toMatchObject({
      'http.response.status_code': 404,
      'error.type': 'model_not_found',
    });
    expect(steps.map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
      ['key', undefined],
      ['request', 'model_not_found'],
      ['response', undefined],
    ]);
    for (const { status } of [request, ...steps]) expect(status.code).not.toBe(ERROR);
  });

  test('shows a model that failed, and that its hold was released', async () => {
    let is_broken = false;
    const { service, account, spans } = await startTraced({
      openEngine: (engine) =>
        intercepted(engine, async (run) => {
          const scores = await run();
          if (is_broken) throw new EvaluationFailed('broken');
          return scores;
        }),
    });
    is_broken = true;
    expect((await ask(service, account.key)).status).toBe(502);
    const { request, steps } = requestOf(await spans());
    expect(request.status.code).toBe(ERROR);
    expect(steps.map(({ name, status }) => [name, status.code === ERROR])).toEqual([
      ['key', false],
      ['request', false],
      ['admission', false],
      ['hold', false],
      ['wait', false],
      ['model', true],
      ['release', false],
      ['response', false],
    ]);
  });

  test('has no error where its client went away, in no step', async () => {
    const begun = Promise.withResolvers<void>();
    const { service, account, spans } = await startTraced({
      openEngine: (engine) => goingOnWithoutClient(engine, begun.resolve),
    });
    const client = new AbortController();
    const asked = service.fetch('/v1/decisions', {
      method: 'POST',
      headers: { 'x-api-key': account.key },
      body: JSON.stringify(SMALL_REQUEST),
      signal: client.signal,
    });
    await begun.promise;
    client.abort();
    await expect(asked).rejects.toThrow();
    await service.close();
    const { request, steps } = requestOf(await spans());
    expect(request.attributes).toMatchObject({ 'http.response.status_code': 499, 'tds.model': 'decision-1' });
    expect(steps.map(({ name }) => name)).toContain('wait');
    for (const { status, attributes } of [request, ...steps]) {
      expect([status.code === ERROR, attributes['error.type']]).toEqual([false, undefined]);
    }
  });

  test('has its model and mode also where the model was not asked: a replay, and a count of tokens', async () => {
    const { service, account, spans } = await startTraced();
    for (const path of ['/v1/decisions', '/v1/decisions', '/v1/tokens']) {
      const headers = { 'x-api-key': account.key, 'idempotency-key': 'once' };
      const response = await service.fetch(path, {
        method: 'POST',
        headers,
        body: JSON.stringify(SMALL_REQUEST),
      });
      expect(response.status).toBe(200);
    }
    const requests = (await spans()).filter(({ kind }) => kind === SERVER);
    const asked = requests.map(({ attributes }) => [attributes['tds.model'], attributes['tds.mode']]);
    expect(asked).toEqual(Array.from({ length: 3 }, () => ['decision-1', 'fast']));
  });

  test('has none of what the client sent, whatever became of the request', async () => {
    const { service, account, spans } = await startTraced();
    const marker = (place: string) => `zq${place}${crypto.randomUUID().replaceAll('-', '')}`;
    const [record, question, id, option, path] = ['record', 'question', 'id', 'option', 'path'].map(marker);
    const body = {
      ...SMALL_REQUEST,
      state: `${record} ${SMALL_REQUEST.state}`,
      questions: {
        [`${id}`]: {
          type: 'choice',
          instructions: `${question}?`,
          criteria: { [`${option}`]: `${option}`, b: 'b' },
        },
      },
    };
    const statuses = [
      (await post(service, account.key, body)).status,
      (await post(service, account.key, { ...body, model: record })).status,
      (await post(service, account.key, { ...body, mode: record })).status,
      (await post(service, account.key, `${JSON.stringify(body)}}`)).status,
      (await post(service, `sk_svc_${record}`, body)).status,
      (
        await service.fetch(`/v1/${path}?${path}`, {
          headers: { traceparent: `${record}`, tracestate: `a=${record}` },
        })
      ).status,
    ];
    expect(statuses).toEqual([200, 404, 422, 400, 401, 404]);
    expect((await spans()).filter(({ kind }) => kind === SERVER)).toHaveLength(statuses.length);
    const sent = receiver.posts.map(({ text }) => text).join('\n');
    for (const word of [record, question, id, option, path, account.key, 'charged twice']) {
      expect(sent).not.toContain(`${word}`);
    }
  });

  test('probes have none, as they have no line in the log', async () => {
    const { service, account, spans } = await startTraced();
    for (const path of ['/healthz', '/readyz']) await service.fetch(path);
    await service.fetch('/v1/models', { headers: { 'x-api-key': account.key } });
    expect((await spans()).map(({ name }) => name)).toEqual(['GET /v1/models']);
  });
});

describe('the trace of a client', () => {
  const askWithin = async (traced: Traced, traceparent: string) => {
    const headers = { 'x-api-key': traced.account.key, traceparent };
    expect((await traced.service.fetch('/v1/models', { headers })).status).toBe(200);
  };

  test('goes on, as a part of the span that called', async () => {
    const traced = await startTraced();
    await askWithin(traced, `00-${TRACE_ID}-${CALLER_ID}-01`);
    expect(await traced.spans()).toMatchObject([{ traceId: TRACE_ID, parentSpanId: CALLER_ID }]);
  });

  test('that is not sampled is not, and one that cannot be read is none', async () => {
    const traced = await startTraced();
    await askWithin(traced, `00-${TRACE_ID}-${CALLER_ID}-00`);
    await askWithin(traced, `00-${TRACE_ID}-${CALLER_ID}-1`);
    const [span, ...others] = await traced.spans();
    expect([span?.parentSpanId, others.length]).toEqual([undefined, 0]);
  });

  test('cannot have more traced than the operator wants', async () => {
    const traced = await startTraced({ ratio: 0 });
    await askWithin(traced, `00-${TRACE_ID}-${CALLER_ID}-01`);
    expect(await traced.spans()).toEqual([]);
  });

  test('has the share traced that the operator wants, whatever ids the client chooses', () => {
    const tracing = tracingTo(receiver.endpoint, 0.01);
    ended.push(() => tracing.close());
    const isTraced = (_: unknown, number: number) => {
      // An id as small as this was among the sampled ones of any share.
      const trace_id = (number + 1).toString(16).padStart(32, '0');
      const headers = new Headers({ traceparent: `00-${trace_id}-${CALLER_ID}-01` });
      return tracing.begin(new Request('http://localhost', { headers }), null) !== null;
    };
    const traced = Array.from({ length: 1_000 }, isTraced).filter(Boolean);
    expect(traced.length).toBeWithin(1, 30);
  });

  test('is found in every traceparent that W3C Trace Context knows, and in nothing else', () => {
    const hex = (length: number) =>
      fc
        .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
        .map((digits) => digits.join(''));
    fc.assert(
      fc.property(hex(32), hex(16), hex(2), (trace_id, span_id, flags) => {
        const is_valid = !/^0+$/.test(trace_id) && !/^0+$/.test(span_id);
        const found = callerOf(`00-${trace_id}-${span_id}-${flags}`);
        expect(found?.traceId).toBe(is_valid ? trace_id : undefined);
      }),
    );
    const rest = `${TRACE_ID}-${CALLER_ID}-01`;
    expect(callerOf(`01-${rest}-later`)?.spanId).toBe(CALLER_ID);
    for (const wrong of [
      `ff-${rest}`,
      `00-${rest}-more`,
      `00-${rest.toUpperCase()}`,
      `00-${rest.slice(1)}`,
      '',
      null,
    ]) {
      expect(callerOf(wrong)).toBeUndefined();
    }
  });
});

describe('a collector that does not take them', () => {
  test.each([
    [
      'refuses',
      () => new Response(null, { status: 401 }),
      'The collector answered with 401: 1 spans are lost.',
    ],
    [
      'takes a post without its spans',
      () => Response.json({ partialSuccess: { rejectedSpans: '1', errorMessage: 'no "room"' } }),
      'The collector took a post and refused 1 of its spans.',
    ],
    ['is not there', null, 'The collector cannot be reached (ECONNREFUSED): 1 spans are lost.'],
  ] as const)('and %s: requests are answered, and the log says it once', async (_, answer, message) => {
    const log = new RecordedLog();
    await using refusing = new OtlpReceiver(answer ?? undefined);
    // Nobody listens at port 1. The port of a receiver that was closed may be another test's by now.
    const endpoint = answer === null ? 'http://127.0.0.1:1' : refusing.endpoint;
    const tracing = tracingTo(endpoint);
    const service = await startTestService({ log: log.log, tracing });
    ended.push(() => service.close());
    const headers = { 'x-api-key': (await addAccount(service)).key };
    expect((await service.fetch('/v1/models', { headers })).status).toBe(200);
    await tracing.close();
    const problems = await log.problems();
    expect(problems).toMatchObject([{ step: 'trace_export', request_id: null, error: 'TraceExportFailed' }]);
    expect(problems[0]?.causes?.[0]).toMatchObject({ message });
    expect(log.text).not.toContain(endpoint);
  });

  test('and does not answer: no more than a bounded number waits, and what is lost is told', async () => {
    const waiting = Promise.withResolvers<void>();
    await using hanging = new OtlpReceiver(() => waiting.promise.then(() => Response.json({})));
    const tracing = tracingTo(hanging.endpoint);
    const lost: string[] = [];
    tracing.onFailure(({ message }) => lost.push(message));
    const facts = { request_id: 'req_1', status: 200, code: null } as const;
    const nobody = { organization_id: null, project_id: null, key_id: null } as const;
    for (let count = 0; count < 8_192 + 10; count += 1) {
      tracing.begin(new Request('http://localhost'), '/v1/models')?.end({ ...facts, ...nobody });
    }
    expect(lost).toEqual(Array.from({ length: 10 }, () => 'More than 8192 spans wait to be sent.'));
    waiting.resolve();
    await tracing.close();
    expect(lost).toHaveLength(10);
    expect(hanging.spans).toHaveLength(8_192);
  });
});

describe('tds serve', () => {
  let root: ReturnType<typeof temporaryDirectory>;
  beforeEach(() => {
    root = temporaryDirectory();
  });
  afterEach(() => root.remove());

  /** Serves one request with those traces, and stops. */
  async function served(endpoint: string): Promise<{ readonly code: number; readonly output: string }> {
    const flags = ['--otlp-endpoint', endpoint];
    const server = await startChildServer(join(root.path, 'data'), root.path, flags);
    const headers = { 'content-type': 'application/json', 'x-api-key': server.key ?? '' };
    const body = JSON.stringify(SMALL_REQUEST);
    const response = await fetch(`${server.address}/v1/decisions`, { method: 'POST', headers, body });
    expect(response.status).toBe(200);
    return { code: await server.stop(), output: server.output() };
  }

  test('sends the last spans before it ends', async () => {
    expect((await served(receiver.endpoint)).code).toBe(0);
    expect(requestOf(receiver.spans).steps.map(({ name }) => name)).toEqual(STEPS_OF_AN_ANSWER);
  });

  test('ends all the same where the collector never answers', async () => {
    await using hanging = new OtlpReceiver(() => new Promise<Response>(() => {}));
    const { code, output } = await served(hanging.endpoint);
    expect(code).toBe(0);
    expect(hanging.posts.length).toBeGreaterThan(0);
    expect(output).toContain('"step":"trace_export"');
  });
});
