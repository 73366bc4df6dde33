import { afterAll, beforeAll, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { textLines } from '../../src/json/text-lines.ts';
import { DAY_MS, HOUR_MS } from '../../src/time/clock.ts';
import { ReadTookTooLong } from '../../src/usage/fair-reader.ts';
import { MovableClock } from '../support/clock.ts';
import { aborted, Gate, intercepted } from '../support/faults.ts';
import { booksOf, closeAudited, untilHeld } from '../support/money.ts';
import { MAIN } from '../support/program.ts';
import { rejection } from '../support/rejection.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST, UNKNOWN_KEY } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
/** Holds evaluations back while there is one. */
let gate: Gate | null = null;
beforeAll(async () => {
  service = await startTestService({
    embedded: true,
    clock: MovableClock.stopped(),
    openEngine: (engine) =>
      intercepted(engine, async (run, { signal }) => {
        if (gate !== null) await Promise.race([gate.pass(), aborted(signal)]);
        return await run();
      }),
  });
});
afterAll(() => closeAudited(service));

function overHttp(key: string) {
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  return new StreamableHTTPClientTransport(new URL('/mcp', service.server.address), { requestInit });
}

function overStdio(key: string) {
  return new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'mcp', '--url', service.server.address],
    env: { TDS_API_KEY: key, PATH: process.env.PATH ?? '' },
  });
}

async function connect(
  transport: ReturnType<typeof overHttp> | ReturnType<typeof overStdio>,
): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  return client;
}

/** The JSON of a tool's result, and whether it is an error. */
async function call(client: Client, name: string, given: Record<string, unknown>) {
  const { content, isError = false } = await client.callTool({ name, arguments: given });
  const [part] = content;
  if (part?.type !== 'text') throw new TypeError('a tool answers with text');
  return { isError, text: part.text };
}

/** All keys of objects in a value. */
function keysOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => [key, ...keysOf(member)]);
}

const ARGUMENTS = { record: SMALL_REQUEST.state, questions: ALL_TYPES };

describe.each([
  ['over HTTP', overHttp],
  ['over standard input and output', overStdio],
])('an agent %s', (_, transportFor) => {
  test('lists the tools, and learns what each takes', async () => {
    await using client = await connected(transportFor((await addAccount(service)).key));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['decide', 'list_models', 'usage']);
    expect(tools[0]?.inputSchema.required).toEqual(['record', 'questions']);
    expect(tools[0]?.inputSchema.properties).toMatchObject({
      questions: { additionalProperties: { anyOf: [{ properties: { type: { enum: ['noul'] } } }, {}, {}] } },
      mode: { type: 'string', enum: ['fast', 'consistent'] },
    });
    // Gemini refuses tools with them, and other clients leave them out.
    expect(keysOf(tools).filter((key) => key === 'patternProperties' || key === 'const')).toEqual([]);
  });

  test('is shown a choice and a score that are answered as they stand', async () => {
    await using client = await connected(transportFor((await addAccount(service)).key));
    const [decide] = (await client.listTools()).tools;
    const shown = /"criteria": (\{.*\})\.$/m.exec(decide?.description ?? '')?.[1] ?? '';
    const { text } = await call(client, 'decide', { ...ARGUMENTS, questions: JSON.parse(shown) });
    expect(Object.values(JSON.parse(text).answers)).toMatchObject([{ type: 'choice' }, { type: 'score' }]);
  });

  test('gets the answers of the API, at its price', async () => {
    const account = await addAccount(service);
    const response = await ask(service, account.key, { questions: ALL_TYPES });
    const expected: { answers: unknown; usage: unknown } = JSON.parse(await response.text());
    const before = await booksOf(service, account);
    await using client = await connected(transportFor(account.key));
    const { isError, text } = await call(client, 'decide', ARGUMENTS);
    expect(isError).toBe(false);
    const { answers, usage } = JSON.parse(text);
    expect({ answers, usage }).toEqual({ answers: expected.answers, usage: expected.usage });
    const { credit_micros, usage_rows } = await booksOf(service, account);
    expect({ credit_micros, usage_rows }).toEqual({
      credit_micros: before.credit_micros - Math.round(usage.cost_usd * 1e6),
      usage_rows: before.usage_rows + 1,
    });
    const used = JSON.parse((await call(client, 'usage', {})).text);
    expect(used).toMatchObject({ days: 30, requests: 2, questions: 6, input_tokens: 2 * usage.input_tokens });
  });

  test('is told which of its arguments and of the fields of its questions nothing read', async () => {
    await using client = await connected(transportFor((await addAccount(service)).key));
    const questions = { refund: { ...ALL_TYPES.refund, threshhold: 0.9 } };
    const { answers } = JSON.parse((await call(client, 'decide', { ...ARGUMENTS, questions })).text);
    const sent = {
      state: 'Nobody can sign in.',
      ...ARGUMENTS,
      moed: 'consistent',
      questions,
      threshold: 0.9,
    };
    const given = JSON.parse((await call(client, 'decide', sent)).text);
    expect(given.ignored_fields).toEqual(['state', 'moed', 'threshold', 'threshhold']);
    expect(given.answers).toEqual(answers);
  });

  test('reads of a refusal as an error of the tool, and pays nothing', async () => {
    const account = await addAccount(service);
    const before = await booksOf(service, account);
    await using client = await connected(transportFor(account.key));
    const refused = await call(client, 'decide', { record: 'a', questions: { q: { type: 'riddle' } } });
    expect(refused.isError).toBe(true);
    expect(JSON.parse(refused.text).error).toMatchObject({
      code: 'invalid_question_type',
      param: 'questions.q.type',
    });
    const unknown = await call(client, 'guess', {});
    expect(unknown).toMatchObject({
      isError: true,
      text: expect.stringContaining('decide, list_models, usage'),
    });
    const message = 'Send "record": a text, an object or an array.';
    for (const given of [{}, { ...ARGUMENTS, record: 5 }, { state: 'a', questions: ALL_TYPES }]) {
      const { text } = await call(client, 'decide', given);
      expect(JSON.parse(text).error).toMatchObject({ code: 'missing_state', param: 'record', message });
    }
    expect((await call(client, 'usage', { days: 1.5 })).isError).toBe(true);
    expect(await booksOf(service, account)).toEqual(before);
  });

  test('lists the models', async () => {
    await using client = await connected(transportFor((await addAccount(service)).key));
    const { text } = await call(client, 'list_models', {});
    expect(JSON.parse(text).models).toEqual([expect.objectContaining({ name: 'decision-1' })]);
  });
});

describe('the tool usage', () => {
  const usage = async (key: string, days: number) => {
    await using client = await connected(overHttp(key));
    return await call(client, 'usage', { days });
  };

  test('sums whole days (UTC), as many as are asked for, today included', async () => {
    const { key } = await addAccount(service);
    const { clock } = service;
    const midnight_ms = Math.ceil(clock.now_ms() / DAY_MS) * DAY_MS;
    for (const hours of [1, 5, 24 + 1]) {
      clock.advance(midnight_ms + hours * HOUR_MS - clock.now_ms());
      expect((await ask(service, key)).status).toBe(200);
    }
    const [first, second] = [0, 1].map((day) => new Date(midnight_ms + day * DAY_MS).toISOString());
    for (const days of [7, 11]) {
      const { over_time, requests } = JSON.parse((await usage(key, days)).text);
      expect(over_time).toMatchObject([
        { from: first, requests: 2, questions: 2 },
        { from: second, requests: 1, questions: 1 },
      ]);
      expect([requests, over_time[0].cost_usd]).toEqual([3, 2 * over_time[1].cost_usd]);
    }
    const today = JSON.parse((await usage(key, 1)).text);
    expect(today).toMatchObject({ requests: 1, over_time: [{ from: second, requests: 1 }] });
  });

  test('that takes too long to add up is refused with a sentence, and is no failure of ours', async () => {
    const { key } = await addAccount(service);
    const { reader, problems } = service.service.services;
    const before = problems.counts();
    const late = spyOn(reader, 'series').mockRejectedValueOnce(new ReadTookTooLong());
    const { isError, text } = await usage(key, 90);
    late.mockRestore();
    expect(isError).toBe(true);
    const message = 'This takes too long to add up: ask for fewer days.';
    expect(JSON.parse(text).error).toMatchObject({ code: 'overloaded', message });
    expect(problems.counts()).toEqual(before);
    expect((await usage(key, 90)).isError).toBe(false);
  });
});

/** A connection that ends with its block. */
async function connected(transport: Parameters<typeof connect>[0]) {
  const client = await connect(transport);
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

/** The tool's answers to arguments as they are written, over HTTP and over standard input and output. */
async function answersOf(key: string, given: string) {
  const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"decide","arguments":${given}}}`;
  const headers = {
    authorization: `Bearer ${key}`,
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
  };
  const over_http = await (await service.fetch('/mcp', { method: 'POST', headers, body: message })).text();
  const agent = Bun.spawn([process.execPath, MAIN, 'mcp', '--url', service.server.address], {
    env: { ...process.env, TDS_API_KEY: key },
    stdin: 'pipe',
    stdout: 'pipe',
  });
  agent.stdin.write(`${message}\n`);
  await agent.stdin.flush();
  const { value: over_stdio = '' } = await textLines(agent.stdout).next();
  agent.stdin.end();
  await agent.exited;
  return { over_http, over_stdio };
}

/** The answers and the tokens in the message with a result, in their order as it was written. */
function decisionIn(text: string): string {
  return /"answers":.*"input_tokens":\d+/.exec(JSON.parse(text).result.content[0].text)?.[0] ?? '';
}

test('over standard input and output a record and its options are what they are over HTTP', async () => {
  const { over_http, over_stdio } = await answersOf(
    (await addAccount(service)).key,
    '{"record":{"order":12345678901234567890},"questions":{"q":{"type":"choice","criteria":{"10":null,"9":null,"a":null}}}}',
  );
  expect(decisionIn(over_stdio)).toBe(decisionIn(over_http));
  expect(decisionIn(over_http)).toContain('{"10":');
});

test('a record that is a number is refused however long it is, and not charged', async () => {
  const account = await addAccount(service);
  const before = await booksOf(service, account);
  const questions = JSON.stringify(ALL_TYPES);
  for (const record of ['12345678901234567890', '1e400']) {
    const answers = await answersOf(account.key, `{"record":${record},"questions":${questions}}`);
    for (const text of Object.values(answers)) expect(text).toContain('missing_state');
  }
  expect(await booksOf(service, account)).toEqual(before);
});

test('over standard input and output a call that is cancelled is ended, and not charged', async () => {
  const account = await addAccount(service);
  const before = await booksOf(service, account);
  await using client = await connected(overStdio(account.key));
  const held = new Gate();
  gate = held;
  const abort = new AbortController();
  const cancelled = client.callTool({ name: 'decide', arguments: ARGUMENTS }, { signal: abort.signal });
  await held.reached;
  abort.abort();
  await rejection(cancelled);
  await untilHeld(service, account, 0);
  held.open();
  gate = null;
  await call(client, 'list_models', {});
  expect(await booksOf(service, account)).toEqual(before);
});

test('over HTTP a key that does not exist is refused before anything is told', async () => {
  const error = await rejection(connect(overHttp(UNKNOWN_KEY)));
  expect(String(error)).toContain('invalid_api_key');
});

test('over standard input and output a key that does not exist is an error of the tool', async () => {
  await using client = await connected(overStdio(UNKNOWN_KEY));
  const refused = await call(client, 'decide', ARGUMENTS);
  expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('invalid_api_key') });
});

describe('what is no message of the protocol', () => {
  test.each([
    ['a batch', 422, [{ jsonrpc: '2.0', id: 1, method: 'ping' }]],
    ['a large envelope', 413, { jsonrpc: '2.0', id: 1, method: 'a'.repeat(70_000) }],
    ['no JSON', 400, '{'],
  ])('%s is refused in the shape of every error', async (_, status, body) => {
    const response = await post(service, (await addAccount(service)).key, body, '/mcp');
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ request_id: response.headers.get('x-request-id') ?? '' });
  });

  test('a stream of events is not opened', async () => {
    const { key } = await addAccount(service);
    const response = await service.fetch('/mcp', { headers: { authorization: `Bearer ${key}` } });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });
});
