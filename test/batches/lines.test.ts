import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expectDecision, expectError } from '../contract/expectations.ts';
import { instantEngine } from '../support/instant-engine.ts';
import { closeAudited, usageOf } from '../support/money.ts';
import { ALL_TYPES, ask, SMALL_REQUEST, UNKNOWN_KEY } from '../support/requests.ts';
import {
  addAccount,
  addRichlyLimited,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { answersOf, type BatchAnswer, codesOf, HEADER, ndjson, record, sendBatch } from './support.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

const MEGABYTE = 1_048_576;

let service: TestService;
let account: TestAccount;
/** One whose model answers at once. */
let instant: TestService;
let instant_account: TestAccount;
beforeAll(async () => {
  service = await startTestService();
  account = await addRichlyLimited(service, 100_000_000);
  instant = await startTestService({ openEngine: instantEngine });
  instant_account = await addRichlyLimited(instant, 100_000_000);
});
afterAll(async () => {
  await closeAudited(service);
  await closeAudited(instant);
});

/** Returns the decision's own id of an answer. */
function idOf(answer: BatchAnswer | undefined): string {
  return answer !== undefined && 'decision_id' in answer ? answer.decision_id : '';
}

const batch = (body: Parameters<typeof sendBatch>[2], options?: Parameters<typeof sendBatch>[3]) =>
  sendBatch(service, account.key, body, options);

describe('a batch that has no first line is an ordinary error', () => {
  const BAD_QUESTION = { questions: { q: { type: 'essay' } } };
  test.each([
    ['an empty body', '', 'invalid_json', null],
    ['nothing but space', '\n \t\r\n\n', 'invalid_json', null],
    ['a first line that is no JSON', '{"state":\n{"state":"a"}\n', 'invalid_json', null],
    ['a first line that is not UTF-8', new Uint8Array([0x22, 0xff, 0x22, 0x0a]), 'invalid_json', null],
    ['more empty lines than a batch has', `${'\n'.repeat(100_000)}{}`, 'request_too_large', null],
    ['a first line above 1 MB', `"${'a'.repeat(MEGABYTE)}"\n`, 'request_too_large', null],
    ['a header with a question of no type', [BAD_QUESTION], 'invalid_question_type', 'questions.q.type'],
    ['a header without questions', [{ questions: {} }], 'missing_questions', 'questions'],
    ['a header with an unknown model', [{ ...HEADER, model: 'gpt-9' }], 'model_not_found', 'model'],
    ['a header with an unknown mode', [{ ...HEADER, mode: 'slow' }], 'invalid_mode', 'mode'],
    ['a header of an unknown model alone', [{ model: 'gpt-9' }], 'model_not_found', 'model'],
    ['a header of an unknown mode alone', [{ mode: 'slow' }], 'invalid_mode', 'mode'],
  ] as const)('%s', async (_, body, code, param) => {
    await expectError(await batch(body), code, param);
  });

  test('a list of records, as a file of JSON has it', async () => {
    const response = await batch([[record(1), record(2)]]);
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({
        error: expect.objectContaining({
          code: 'invalid_request',
          message: 'Each line of a batch is a JSON object.',
        }),
      }),
    ]);
  });

  test('no key, an unknown key, and an organization without a top-up', async () => {
    await expectError(
      await service.fetch('/v1/decisions/batch', { method: 'POST', body: ndjson([HEADER]) }),
      'missing_api_key',
    );
    await expectError(await sendBatch(service, UNKNOWN_KEY, [HEADER]), 'invalid_api_key');
    const poor = await addAccount(service, { credit_dollars: 0 });
    await expectError(await sendBatch(service, poor.key, [HEADER]), 'insufficient_credit');
  });

  test('a mode in the query that is none', async () => {
    await expectError(await batch([HEADER], { query: '?mode=slow' }), 'invalid_mode', 'mode');
  });

  test('another method, and another coding', async () => {
    expect((await service.fetch('/v1/decisions/batch')).status).toBe(405);
    const response = await batch([HEADER], { headers: { 'content-encoding': 'compress' } });
    expect(response.headers.get('accept-encoding')).toBe('gzip, deflate, br, zstd');
    await expectError(response, 'unsupported_encoding');
  });
});

describe('lines', () => {
  test('each gets the answer, the price and the usage row that a request of its own gets', async () => {
    const alone = await expectDecision(await ask(service, account.key, { questions: ALL_TYPES }));
    const before = (await usageOf(service, account)).length;
    const response = await batch([{ questions: ALL_TYPES }, { id: 'a', state: SMALL_REQUEST.state }]);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const [answer] = await answersOf(response);
    expect(answer).toEqual({
      id: 'a',
      line: 2,
      request_id: expect.stringMatching(/^req_/),
      decision_id: expect.stringMatching(/^dec_/),
      object: 'decision',
      created: expect.any(Number),
      model: 'decision-1',
      mode: 'fast',
      answers: alone.answers,
      usage: alone.usage,
      latency_ms: expect.any(Number),
    });
    expect(answer?.request_id).not.toBe(response.headers.get('x-request-id'));
    const [row, ...others] = (await usageOf(service, account)).slice(before);
    expect(others).toEqual([]);
    expect(row).toMatchObject({
      request_id: answer?.request_id,
      endpoint: '/v1/decisions/batch',
      status: 200,
      input_tokens: alone.usage.input_tokens,
    });
  });

  test('ids are given back as they were sent, and a line without one is known by its number', async () => {
    const ids = ['', 'a', 'ä\u{1f600}"\\\n', 'x'.repeat(255), 0, -7, Number.MAX_SAFE_INTEGER, null];
    const lines = ids.map((id) => ({ id, state: 'Late again.' }));
    const answers = await answersOf(await batch([HEADER, ...lines, { state: 'Late again.' }]));
    expect(answers.map(({ id }) => id)).toEqual([...ids, null]);
    expect(answers.map(({ line }) => line)).toEqual(answers.map((_, index) => index + 2));
    expect(codesOf(answers).every(([, code]) => code === null)).toBe(true);
  });

  test.each([
    ['a longer string', 'x'.repeat(256)],
    ['a number that a double rounds', 2 ** 53],
    ['a fraction', 1.5],
    ['an object', {}],
    ['true', true],
  ])('an id that is %s has an error', async (_, id) => {
    const answers = await answersOf(await batch([HEADER, { id, state: 'a' }, record(1)]));
    expect(answers[0]).toMatchObject({ id: null, line: 2, error: { code: 'invalid_request', param: 'id' } });
    expect(answers[1]).toMatchObject({ id: 'r1', line: 3, object: 'decision' });
  });

  test('a broken line has an error with its number, and all others are answered', async () => {
    const broken: readonly (readonly [unknown, string])[] = [
      ['{"id":"b1","state":', 'invalid_json'],
      ['nothing', 'invalid_json'],
      [`{"id":"b3","state":"${'\u0000'}"}`, 'invalid_json'],
      [['a', 'list'], 'invalid_request'],
      ['null', 'invalid_request'],
      [{ id: 'b6' }, 'missing_state'],
      [{ id: 'b7', state: 5 }, 'missing_state'],
      [{ id: 'b8', state: 'a', questions: { q: { type: 'essay' } } }, 'invalid_question_type'],
      [{ id: 'b9', state: 'a', questions: { q: { type: 'choice', criteria: {} } } }, 'invalid_criteria'],
      [{ id: 'b10', state: 'a', mode: 'slow' }, 'invalid_mode'],
      [{ id: 'b11', state: 'a', model: 'gpt-9' }, 'model_not_found'],
      [{ id: 'b12', state: [{ type: 'image', image: 'data:' }] }, 'invalid_request'],
      [`{"id":"b13","state":${'['.repeat(70)}${']'.repeat(70)}}`, 'invalid_request'],
      [`{"id":"b14","state":"${'a'.repeat(MEGABYTE)}"}`, 'request_too_large'],
    ];
    const lines = broken.flatMap(([line], index) => [line, record(index)]);
    const answers = await answersOf(await batch([HEADER, ...lines]));
    expect(codesOf(answers)).toEqual(
      broken.flatMap(([, code], index) => [
        [2 * index + 2, code],
        [2 * index + 3, null],
      ]),
    );
    expect(answers[0]).toMatchObject({
      id: null,
      error: {
        type: 'invalid_request_error',
        message: 'The line is not valid JSON: it ends too early, at column 20.',
        param: null,
      },
    });
    expect(answers[10]).toMatchObject({ id: 'b6', error: { code: 'missing_state', param: 'state' } });
  });

  test('questions, mode and model of the first line are those of every line that has none of its own', async () => {
    const own = { urgency: ALL_TYPES.urgency };
    const answers = await answersOf(
      await batch([
        { id: 1, state: 'a', questions: SMALL_REQUEST.questions, mode: 'consistent', model: 'decision-1' },
        { id: 2, state: 'b' },
        { id: 3, state: 'c', questions: own, mode: 'fast' },
        { id: 4, state: 'd', questions: null, mode: null, model: null },
      ]),
    );
    const seen = answers.map((answer) =>
      'error' in answer ? answer.error : [answer.mode, Object.keys(answer.answers)],
    );
    expect(seen).toEqual([
      ['consistent', ['refund']],
      ['consistent', ['refund']],
      ['fast', ['urgency']],
      ['consistent', ['refund']],
    ]);
  });

  test('the mode of the query is that of lines for which nothing else says one', async () => {
    const lines = [HEADER, { state: 'a' }, { state: 'a', mode: 'fast' }];
    const answers = await answersOf(await batch(lines, { query: '?mode=consistent' }));
    expect(answers.map((answer) => ('mode' in answer ? answer.mode : null))).toEqual(['consistent', 'fast']);
  });

  test('empty lines count as lines and are not answered; ends of lines are those of any system', async () => {
    const [header, one, two] = [HEADER, record(1), record(2)].map((line) => JSON.stringify(line));
    const answers = await answersOf(await batch(`\n\ufeff${header}\r\n\r\n  ${one}\t\r\n${two}`));
    expect(answers.map(({ id, line }) => [id, line])).toEqual([
      ['r1', 4],
      ['r2', 5],
    ]);
  });

  test('with an Idempotency-Key each id is one decision, which is charged once', async () => {
    const headers = { 'idempotency-key': 'run-1' };
    const lines = [HEADER, record(1), { state: 'no id' }];
    const [first, anonymous] = await answersOf(await batch(lines, { headers }));
    const before = (await usageOf(service, account)).length;
    const again = await answersOf(await batch([...lines, { id: 'r1', state: 'Another.' }], { headers }));
    expect(again[0]).toMatchObject({ id: 'r1', line: 2, decision_id: idOf(first), replayed: true });
    expect(again[1]).toMatchObject({ id: null, decision_id: expect.not.stringMatching(idOf(anonymous)) });
    expect(codesOf(again)).toEqual([
      [2, null],
      [3, null],
      [4, 'idempotency_key_reused'],
    ]);
    expect((await usageOf(service, account)).length).toBe(before + 1);
    await expectError(
      await batch(lines, { headers: { 'idempotency-key': 'x'.repeat(256) } }),
      'invalid_idempotency_key',
    );
  });

  test.each([
    [{ model: 'decision-1', mode: 'consistent' }, 'consistent'],
    [{ mode: 'consistent' }, 'consistent'],
    [{ model: 'decision-1' }, 'fast'],
  ])('a header may have no questions: %j', async (header, mode) => {
    const answers = await answersOf(await batch([header, { ...HEADER, ...record(1) }, record(2)]));
    expect(codesOf(answers)).toEqual([
      [2, null],
      [3, 'missing_questions'],
    ]);
    expect(answers[0]).toMatchObject({ id: 'r1', model: 'decision-1', mode });
  });

  test('a header alone is answered with nothing', async () => {
    const response = await batch([HEADER]);
    expect([response.status, await response.text()]).toEqual([200, '']);
  });

  test('a line of 1 MB is read, and fields that nothing reads are named', async () => {
    const head = '{"id":"large","thresold":1,"state":"';
    const line = `${head}${' '.repeat(MEGABYTE - head.length - 2)}"}`;
    expect(line).toHaveLength(MEGABYTE);
    const response = await sendBatch(instant, instant_account.key, [HEADER, line]);
    const [answer] = await answersOf(response);
    expect(answer).toMatchObject({ id: 'large', object: 'decision', ignored_fields: ['thresold'] });
  });

  test('a record that is too long has the number of its tokens that were not read, as its replay has', async () => {
    const headers = { 'idempotency-key': 'long' };
    const body = [HEADER, record(1), { id: 'long', state: 'item '.repeat(30_000) }];
    const left_out = async () => {
      const answers = await answersOf(await sendBatch(instant, instant_account.key, body, { headers }));
      return answers
        .map((answer) => ('record_tokens_left_out' in answer ? answer.record_tokens_left_out : null))
        .sort();
    };
    const [first, again] = [await left_out(), await left_out()];
    expect(first).toEqual([expect.any(Number), null]);
    expect(again).toEqual(first);
  });

  test('above 100,000 the batch ends with the line to go on with', async () => {
    const empty = '\n'.repeat(99_998);
    const body = `${ndjson([HEADER, record(1)])}${empty}${ndjson([record(2), record(3)])}`;
    const answers = await answersOf(await batch(body));
    expect(answers.map(({ id, line }) => [id, line])).toEqual([
      ['r1', 2],
      ['r2', 100_001],
      [null, 100_002],
    ]);
    expect(answers[2]).toMatchObject({
      error: {
        code: 'request_too_large',
        message:
          'A batch has at most 100000 lines. The batch ends here: send the lines from line 100002 on again, and earlier ones whose error can be retried.',
      },
    });
  });
});

describe.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
] as const)('%s', (name, compress) => {
  const headers = { 'content-encoding': name };

  test('a compressed batch is answered', async () => {
    const body = compress(Buffer.from(ndjson([HEADER, record(1), record(2)])));
    const answers = await answersOf(await sendBatch(instant, instant_account.key, body, { headers }));
    expect(codesOf(answers)).toEqual([
      [2, null],
      [3, null],
    ]);
  });

  test('one that is cut ends with an error, after the answers to the lines that came', async () => {
    // Random text, so that the first half of the bytes has lines in it.
    const text = () => Buffer.from(crypto.getRandomValues(new Uint8Array(1_000))).toString('hex');
    const lines = Array.from({ length: 200 }, (_, index) => ({ id: index, state: text() }));
    const whole = compress(Buffer.from(ndjson([HEADER, ...lines])));
    const answers = await answersOf(
      await sendBatch(instant, instant_account.key, whole.subarray(0, whole.byteLength / 2), { headers }),
    );
    const last = answers.at(-1);
    expect(answers.length).toBeGreaterThan(1);
    expect(codesOf(answers.slice(0, -1)).every(([, code]) => code === null)).toBe(true);
    expect(last).toMatchObject({ id: null, line: answers.length + 1, error: { code: 'invalid_json' } });
  });
});
