import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { MovableClock } from '../support/clock.ts';
import { booksOf, closeAudited } from '../support/money.ts';
import { MAIN } from '../support/program.ts';
import { rejection } from '../support/rejection.ts';
import { ALL_TYPES, ask, post, SMALL_REQUEST, UNKNOWN_KEY } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ clock: MovableClock.stopped() });
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

  test('is told which fields of its questions nothing read', async () => {
    await using client = await connected(transportFor((await addAccount(service)).key));
    const questions = { refund: { ...ALL_TYPES.refund, threshhold: 0.9 } };
    const { text } = await call(client, 'decide', { ...ARGUMENTS, questions });
    expect(JSON.parse(text).ignored_fields).toEqual(['threshhold']);
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
    const without = await call(client, 'decide', {});
    expect(JSON.parse(without.text).error).toMatchObject({ code: 'missing_state', param: 'record' });
    expect((await call(client, 'usage', { days: 1.5 })).isError).toBe(true);
    expect(await booksOf(service, account)).toEqual(before);
  });

  test('lists the models', async () => {
    await using client = await connected(transportFor((await addAccount(service)).key));
    const { text } = await call(client, 'list_models', {});
    expect(JSON.parse(text).models).toEqual([expect.objectContaining({ name: 'decision-1' })]);
  });
});

/** A connection that ends with its block. */
async function connected(transport: Parameters<typeof connect>[0]) {
  const client = await connect(transport);
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

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
