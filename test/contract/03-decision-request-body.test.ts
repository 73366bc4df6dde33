import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { OPERATOR } from '../../src/access/actor.ts';
import { seedCatalog } from '../../src/catalog/catalog.ts';
import {
  closeModel,
  openModel,
  removeModelAlias,
  setModelAlias,
  setModelPrice,
} from '../../src/catalog/changes.ts';
import { booksOf, closeAudited, usageOf } from '../support/money.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startTestService();
  key = (await addAccount(service)).key;
});
afterAll(() => closeAudited(service));

const { questions, state } = SMALL_REQUEST;

describe('model', () => {
  for (const [name, model] of Object.entries({
    missing: undefined,
    null: null,
    empty: '',
    'a number': 7,
    'a number beyond 2^53': 'NUMBER',
    'an object': { id: 'decision-1' },
  })) {
    test(`${name}: 400 missing_model on /v1/decisions`, async () => {
      const body = JSON.stringify({ model, state, questions }).replace('"NUMBER"', '12345678901234567890');
      await expectError(await post(service, key, body), 'missing_model', 'model');
    });
  }

  test('optional on /v1/systemone, where the default is decision-1', async () => {
    for (const model of [undefined, null]) {
      const response = await post(service, key, { model, state, questions }, '/v1/systemone');
      expect((await expectDecision(response)).model).toBe('decision-1');
    }
  });

  test('given on /v1/systemone: looked up as on /v1/decisions', async () => {
    const found = await post(service, key, SMALL_REQUEST, '/v1/systemone');
    expect((await expectDecision(found)).model).toBe('decision-1');
    const unknown = await post(service, key, { ...SMALL_REQUEST, model: 'jev-1' }, '/v1/systemone');
    await expectError(unknown, 'model_not_found', 'model');
  });

  for (const [name, model] of Object.entries({
    empty: '',
    'a number': 7,
    'a number beyond 2^53': 'NUMBER',
    'a boolean': false,
    'an object': { id: 'decision-1' },
    'an array': ['decision-1'],
  })) {
    test(`${name}: 404 model_not_found on /v1/systemone, where it is never missing`, async () => {
      const body = JSON.stringify({ model, state, questions }).replace('"NUMBER"', '12345678901234567890');
      await expectError(await post(service, key, body, '/v1/systemone'), 'model_not_found', 'model');
      // Like the id of a model that does not exist: after the fields that are missing.
      const without = await post(service, key, { model, questions }, '/v1/systemone');
      await expectError(without, 'missing_state', 'state');
    });
  }

  for (const model of ['decision-2', 'DECISION-1', ' decision-1', '__proto__', "' OR 1=1 --", 'chat-1']) {
    test(`unknown or not open: 404 model_not_found for ${JSON.stringify(model)}`, async () => {
      await expectError(await ask(service, key, { model }), 'model_not_found', 'model');
    });
  }

  test('a live model that is not a decision model: 400 wrong_endpoint', async () => {
    await service.execute(
      "UPDATE models SET status = 'live', context_tokens = 8192, input_price_micros_per_million_tokens = 1000000 WHERE id = 'chat-1'",
    );
    try {
      for (const path of ['/v1/decisions', '/v1/systemone']) {
        const response = await post(service, key, { ...SMALL_REQUEST, model: 'chat-1' }, path);
        await expectError(response, 'wrong_endpoint', 'model');
      }
    } finally {
      await service.execute(
        "UPDATE models SET status = 'coming_soon', context_tokens = NULL, input_price_micros_per_million_tokens = NULL WHERE id = 'chat-1'",
      );
    }
    await expectError(await ask(service, key, { model: 'chat-1' }), 'model_not_found', 'model');
  });
});

describe('an alias of a model', () => {
  test('is answered by the model, whose id is in the answer and in the usage; unknown again when taken away', async () => {
    const account = await addAccount(service);
    const body = { ...SMALL_REQUEST, model: 'decision-latest' };
    await expectError(await post(service, account.key, body), 'model_not_found', 'model');
    await setModelAlias(service.accounts, OPERATOR, { alias: 'decision-latest', model_id: 'decision-1' });
    for (const path of ['/v1/decisions', '/v1/systemone']) {
      const decision = await expectDecision(await post(service, account.key, body, path));
      expect(decision.model).toBe('decision-1');
    }
    expect(await usageOf(service, account)).toMatchObject([{ model: 'decision-1' }, { model: 'decision-1' }]);
    await removeModelAlias(service.accounts, OPERATOR, 'decision-latest');
    await expectError(await post(service, account.key, body), 'model_not_found', 'model');
  });

  test('jev-latest is one from the start, and stays away when it is taken away', async () => {
    const body = { ...SMALL_REQUEST, model: 'jev-latest' };
    const { model } = await expectDecision(await post(service, key, body, '/v1/systemone'));
    expect(model).toBe('decision-1');
    await removeModelAlias(service.accounts, OPERATOR, 'jev-latest');
    // As every start does.
    await service.accounts.store.transaction(({ catalog }) => seedCatalog(catalog));
    await expectError(await post(service, key, body, '/v1/systemone'), 'model_not_found', 'model');
  });

  test('of a model that is coming soon: 404 model_not_found', async () => {
    await setModelAlias(service.accounts, OPERATOR, { alias: 'chat-latest', model_id: 'chat-1' });
    await expectError(await ask(service, key, { model: 'chat-latest' }), 'model_not_found', 'model');
  });

  test('never stands before a model that has its name', async () => {
    await service.execute("INSERT INTO model_aliases (alias, model_id) VALUES ('decision-1', 'chat-1')");
    expect((await expectDecision(await ask(service, key))).model).toBe('decision-1');
    await removeModelAlias(service.accounts, OPERATOR, 'decision-1');
  });
});

describe('the catalog', () => {
  test('a decision model that no engine answers for is not open, whatever its row says', async () => {
    await service.execute(
      "INSERT INTO models (id, kind, status, description, context_tokens, input_price_micros_per_million_tokens) VALUES ('decision-3', 'decision', 'live', '', 16384, 1)",
    );
    await expectError(await ask(service, key, { model: 'decision-3' }), 'model_not_found', 'model');
  });

  test('a closed model is not found, and answers again when it is opened; its price is what is charged', async () => {
    await closeModel(service.accounts, OPERATOR, 'decision-1');
    await expectError(await ask(service, key), 'model_not_found', 'model');
    await openModel(service.accounts, OPERATOR, 'decision-1');
    const { usage } = await expectDecision(await ask(service, key));
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 1_000_000);
    const dearer = await expectDecision(await ask(service, key));
    expect(dearer.usage.cost_usd).toBe(usage.input_tokens / 1e6);
    await setModelPrice(service.accounts, OPERATOR, 'decision-1', 500_000);
  });
});

describe('state', () => {
  for (const [name, value] of Object.entries({
    'a string': 'Please refund me.',
    'an empty string': '',
    'an object': { subject: 'Refund', lines: [{ sku: 'A-1', count: 2 }], paid: true, note: null },
    'an empty object': {},
    'an array, as clients of the open format send it': [{ type: 'json', value: { text: 'Refund me.' } }],
    'a string with control characters': '\u0000\u0007\u001b[31m\r\n\t',
    'a string with a lone surrogate': 'a \ud800 b',
  })) {
    test(`${name} is a record`, async () => {
      await expectDecision(await ask(service, key, { state: value }));
    });
  }

  for (const [name, value] of Object.entries({
    missing: undefined,
    null: null,
    'a number': 7,
    'a boolean': true,
  })) {
    test(`${name}: 400 missing_state`, async () => {
      await expectError(await ask(service, key, { state: value }), 'missing_state', 'state');
    });
  }

  test('a number beyond 2^53 is a number: 400 missing_state', async () => {
    const body = JSON.stringify({ ...SMALL_REQUEST, state: 'NUMBER' }).replace(
      '"NUMBER"',
      '12345678901234567890',
    );
    await expectError(await post(service, key, body), 'missing_state', 'state');
  });

  test('an object is rendered compactly as text', async () => {
    const record = { order: { id: 'A-77', status: 'late', items: ['lamp', 'cable'] }, customer: 'Kim' };
    const asObject = await expectDecision(await ask(service, key, { state: record }));
    const asJson = await expectDecision(await ask(service, key, { state: JSON.stringify(record) }));
    expect(asObject.usage.input_tokens).toBeLessThan(asJson.usage.input_tokens);
  });

  test('a number that a double cannot hold is read as it was written', async () => {
    const answerTo = async (json: string) => {
      const body = JSON.stringify({ ...SMALL_REQUEST, state: { id: 'NUMBER' } }).replace('"NUMBER"', json);
      const { answers, usage } = await expectDecision(await post(service, key, body));
      return { answers, usage };
    };
    expect(await answerTo('9007199254740993')).toEqual(await answerTo('"9007199254740993"'));
  });
});

describe('questions', () => {
  for (const [name, value] of Object.entries({
    missing: undefined,
    null: null,
    'a string': 'refund?',
    'a number': 1,
    'an array': [{ type: 'noul' }],
    empty: {},
  })) {
    test(`${name}: 400 missing_questions`, async () => {
      await expectError(await ask(service, key, { questions: value }), 'missing_questions', 'questions');
    });
  }

  const manyQuestions = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`q${index}`, { type: 'noul' }]));

  test('1 to 32 entries on Tier 1', async () => {
    const tier1 = await addAccount(service, { tier: 1 });
    const { answers } = await expectDecision(await ask(service, tier1.key, { questions: manyQuestions(32) }));
    expect(Object.keys(answers)).toHaveLength(32);
    const refused = await ask(service, tier1.key, { questions: manyQuestions(33) });
    await expectError(refused, 'too_many_questions', 'questions');
  });

  test('up to 64 from Tier 2', async () => {
    const tier2 = await addAccount(service, { tier: 2 });
    const { usage } = await expectDecision(await ask(service, tier2.key, { questions: manyQuestions(64) }));
    expect(usage.decisions).toBe(64);
    const refused = await ask(service, tier2.key, { questions: manyQuestions(65) });
    await expectError(refused, 'too_many_questions', 'questions');
  });

  test('question ids come back as the keys of answers, whatever they are', async () => {
    const ids = [
      '',
      ' ',
      'a.b',
      'a"b',
      '\\',
      '__proto__',
      'constructor',
      'hasOwnProperty',
      '7',
      'żółć',
      '🦊',
      '\ud800',
      '\u0000',
      'x'.repeat(2_000),
    ];
    const asked = Object.fromEntries(ids.map((id) => [id, { type: 'noul' }]));
    const { answers } = await expectDecision(await ask(service, key, { questions: asked }));
    expect(Object.keys(answers).sort()).toEqual([...ids].sort());
  });
});

describe('mode', () => {
  const modeOf = async (body: unknown, query: string) =>
    (await expectDecision(await post(service, key, body, `/v1/decisions${query}`))).mode;

  test('fast by default', async () => {
    expect(await modeOf(SMALL_REQUEST, '')).toBe('fast');
    expect(await modeOf({ ...SMALL_REQUEST, mode: null }, '')).toBe('fast');
  });

  test('fast or consistent, in the body or as a query parameter', async () => {
    expect(await modeOf({ ...SMALL_REQUEST, mode: 'consistent' }, '')).toBe('consistent');
    expect(await modeOf({ ...SMALL_REQUEST, mode: 'fast' }, '')).toBe('fast');
    expect(await modeOf(SMALL_REQUEST, '?mode=consistent')).toBe('consistent');
    expect(await modeOf(SMALL_REQUEST, '?mode=fast')).toBe('fast');
  });

  test('if both are given the body wins', async () => {
    expect(await modeOf({ ...SMALL_REQUEST, mode: 'fast' }, '?mode=consistent')).toBe('fast');
    expect(await modeOf({ ...SMALL_REQUEST, mode: 'consistent' }, '?mode=fast')).toBe('consistent');
    expect(await modeOf({ ...SMALL_REQUEST, mode: 'fast' }, '?mode=nonsense')).toBe('fast');
    expect(await modeOf({ ...SMALL_REQUEST, mode: 'fast' }, '?mode=slow&mode=consistent')).toBe('fast');
    expect(await modeOf({ ...SMALL_REQUEST, mode: null }, '?mode=consistent')).toBe('consistent');
    const wrongBody = await post(service, key, { ...SMALL_REQUEST, mode: 'slow' }, '/v1/decisions?mode=fast');
    await expectError(wrongBody, 'invalid_mode', 'mode');
  });

  for (const mode of ['slow', 'FAST', ' fast', '', 1, true, [], {}]) {
    test(`${JSON.stringify(mode)}: 422 invalid_mode`, async () => {
      await expectError(await ask(service, key, { mode }), 'invalid_mode', 'mode');
    });
  }

  // Several are none, also equal ones and in any order.
  const several = ['?mode=fast&mode=consistent', '?mode=fast&mode=fast', '?mode=fast&a=b&mode='];
  for (const query of ['?mode=slow', '?mode=', '?mode', '?mode=FAST', ...several]) {
    test(`${query}: 422 invalid_mode`, async () => {
      const response = await post(service, key, SMALL_REQUEST, `/v1/decisions${query}`);
      await expectError(response, 'invalid_mode', 'mode');
    });
  }
});

describe('the body as a whole', () => {
  test('unknown fields are ignored', async () => {
    await expectDecision(await ask(service, key, { temperature: 2, stream: true, user: { id: 1 } }));
  });

  for (const body of ['[]', '"text"', '7', 'true', 'null']) {
    test(`JSON that is no object has none of the fields: ${body}`, async () => {
      await expectError(await post(service, key, body), 'missing_model', 'model');
      await expectError(await post(service, key, body, '/v1/systemone'), 'missing_state', 'state');
    });
  }

  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

  test('64 levels in a record are read', async () => {
    await expectDecision(await ask(service, key, { state: JSON.parse(nested(64)) }));
  });

  for (const levels of [65, 100, 1_000, 1_001, 100_000]) {
    test(`${levels} levels in a record, or anywhere else: 422 invalid_request, whatever the depth`, async () => {
      const account = await addAccount(service);
      const before = await booksOf(service, account);
      const deep = nested(levels);
      const question = `{"q":{"type":"noul","instructions":${deep}}}`;
      for (const body of [
        `{"model":"decision-1","state":${deep},"questions":{"q":{"type":"noul"}}}`,
        `{"model":"decision-1","state":"x","questions":${question}}`,
        `{"model":"decision-1","state":"x","questions":{"q":{"type":"noul"}},"extra":${deep}}`,
        `[${deep}`,
      ]) {
        const response = await post(service, account.key, body);
        expect(response.headers.has('x-ratelimit-limit-requests')).toBe(false);
        const { error } = await expectError(response, 'invalid_request', null);
        expect(error.message).toContain('65 levels');
      }
      expect(await booksOf(service, account)).toEqual(before);
      // None of them was counted.
      const counted = await ask(service, account.key);
      expect(counted.headers.get('x-ratelimit-remaining-requests')).toBe('299');
      await expectDecision(counted);
    });
  }

  const SMALL_JSON = JSON.stringify(SMALL_REQUEST);
  const send = (body: string | Uint8Array<ArrayBuffer>, encoding?: string, by = key) =>
    service.fetch('/v1/decisions', {
      method: 'POST',
      headers: { 'x-api-key': by, ...(encoding === undefined ? {} : { 'content-encoding': encoding }) },
      body,
    });

  for (const [encoding, body] of [
    ['gzip', gzipSync(SMALL_JSON)],
    ['X-Gzip', gzipSync(SMALL_JSON)],
    ['deflate', deflateSync(SMALL_JSON)],
    ['br', brotliCompressSync(SMALL_JSON)],
    ['zstd', zstdCompressSync(SMALL_JSON)],
    ['Identity', SMALL_JSON],
  ] as const) {
    test(`a body with Content-Encoding ${encoding} is answered and billed as it is without`, async () => {
      const plain = await expectDecision(await send(SMALL_JSON));
      const { answers, usage } = await expectDecision(await send(body, encoding));
      expect({ answers, usage }).toEqual({ answers: plain.answers, usage: plain.usage });
    });
  }

  test.each(['gzip, br', 'compress', 'aes128gcm', '', 'gzip;q=1'])(
    'a Content-Encoding of "%s" is 415, with those that there are, and is never charged',
    async (encoding) => {
      const account = await addAccount(service);
      const before = await booksOf(service, account);
      const response = await send(gzipSync(SMALL_JSON), encoding, account.key);
      expect(response.headers.get('accept-encoding')).toBe('gzip, deflate, br, zstd');
      await expectError(response, 'unsupported_encoding');
      expect(await booksOf(service, account)).toEqual(before);
    },
  );

  test('a compressed body without a word of it is 400 invalid_json', async () => {
    await expectError(await send(gzipSync(SMALL_JSON)), 'invalid_json');
  });

  test('the content type does not matter', async () => {
    for (const type of [
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'text/plain',
      'application/x-www-form-urlencoded',
    ]) {
      const headers = { 'x-api-key': key, 'content-type': type };
      const body = JSON.stringify(SMALL_REQUEST);
      await expectDecision(await service.fetch('/v1/decisions', { method: 'POST', headers, body }));
    }
  });
});
