import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { booksOf, closeAudited, usageOf } from '../support/money.ts';
import { asResponse, parseRaw, sendRaw } from '../support/raw-http.ts';
import { ask, post, SMALL_REQUEST } from '../support/requests.ts';
import {
  addAccount,
  MODEL_TEST_TIMEOUT_MS,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts';
import { expectDecision, expectError, platformHeaders } from './expectations.ts';
import { BODY_BYTES_MAX } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let account: TestAccount;
beforeAll(async () => {
  service = await startTestService();
  account = await addAccount(service);
});
afterAll(() => closeAudited(service));

const MEGABYTE = Buffer.alloc(1_048_576, ' ');

/** The small request as text, with spaces after it up to `bytes`. */
function padded(bytes: number): string {
  return JSON.stringify(SMALL_REQUEST).padEnd(bytes);
}

/** Resolves with the response to a request with these header lines and this body. */
async function raw(head: readonly string[], body: Iterable<string | Uint8Array> = []) {
  return parseRaw(await sendRaw(service.server.address, `${head.join('\r\n')}\r\n\r\n`, body));
}

describe('POST /v1/decisions', () => {
  test('a body of exactly 1 MB is read', async () => {
    await expectDecision(await post(service, account.key, padded(BODY_BYTES_MAX)));
  });

  test('a byte more: 413 request_too_large', async () => {
    await expectError(await post(service, account.key, padded(BODY_BYTES_MAX + 1)), 'request_too_large');
  });

  test('the size counts in bytes, not in characters', async () => {
    const body = JSON.stringify({ ...SMALL_REQUEST, state: 'é'.repeat(BODY_BYTES_MAX / 2) });
    expect(body.length).toBeLessThan(BODY_BYTES_MAX);
    await expectError(await post(service, account.key, body), 'request_too_large');
  });
});

describe('413 with our error shape for any size', () => {
  const head = (lines: readonly string[]) => [
    'POST /v1/decisions HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${account.key}`,
    ...lines,
  ];

  test('300 MB announced and sent: refused at once, by Content-Length', async () => {
    const pieces = Array.from({ length: 300 }, () => MEGABYTE);
    const lines = [`Content-Length: ${300 * MEGABYTE.length}`, 'Connection: close'];
    await expectError(asResponse(await raw(head(lines), pieces)), 'request_too_large');
  });

  test('300 MB announced with Expect: 100-continue', async () => {
    const lines = [`Content-Length: ${300 * MEGABYTE.length}`, 'Expect: 100-continue', 'Connection: close'];
    const pieces = Array.from({ length: 300 }, () => MEGABYTE);
    await expectError(asResponse(await raw(head(lines), pieces)), 'request_too_large');
  });

  test('5 MB in chunks: refused once more than 1 MB has come', async () => {
    function* chunks() {
      for (let count = 0; count < 5; count += 1) {
        yield `${MEGABYTE.length.toString(16)}\r\n`;
        yield MEGABYTE;
        yield '\r\n';
      }
      yield '0\r\n\r\n';
    }
    const lines = ['Transfer-Encoding: chunked', 'Connection: close'];
    await expectError(asResponse(await raw(head(lines), chunks())), 'request_too_large');
  });

  test('the connection can be used for the next request', async () => {
    const next = [
      'GET /v1/models HTTP/1.1',
      'Host: localhost',
      `X-API-Key: ${account.key}`,
      'Connection: close',
    ];
    const both = await sendRaw(
      service.server.address,
      `${head([`Content-Length: ${3 * MEGABYTE.length}`]).join('\r\n')}\r\n\r\n`,
      [MEGABYTE, MEGABYTE, MEGABYTE, `${next.join('\r\n')}\r\n\r\n`],
    );
    expect(both.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 200']);
  });

  test('chunks that stay within 1 MB are read', async () => {
    const json = JSON.stringify(SMALL_REQUEST);
    const pieces = [...json].map((character) => `1\r\n${character}\r\n`);
    const answered = await raw(head(['Transfer-Encoding: chunked', 'Connection: close']), [
      ...pieces,
      '0\r\n\r\n',
    ]);
    await expectDecision(asResponse(answered));
  });

  test('none of it cost anything or was recorded', async () => {
    const fresh = await addAccount(service);
    const before = await booksOf(service, fresh);
    await expectError(await post(service, fresh.key, padded(BODY_BYTES_MAX + 1)), 'request_too_large');
    expect(await booksOf(service, fresh)).toEqual(before);
  });
});

describe('POST /v1/systemone', () => {
  test('the same request and response, recorded under its own endpoint', async () => {
    const fresh = await addAccount(service);
    await expectDecision(await post(service, fresh.key, SMALL_REQUEST, '/v1/systemone'));
    await expectDecision(await post(service, fresh.key, SMALL_REQUEST, '/v1/decisions'));
    const [first, second] = await usageOf(service, fresh);
    expect(first?.endpoint).toBe('/v1/systemone');
    expect(second?.endpoint).toBe('/v1/decisions');
    expect(first?.input_tokens).toBe(second?.input_tokens ?? 0);
    expect(first?.cost_micros).toBe(second?.cost_micros ?? 0);
  });

  test('what clients of the open format send: null instructions, null criteria, a state of parts', async () => {
    const body = {
      state: [
        { type: 'json', value: { message: 'Refund me.' } },
        { type: 'text', text: 'Now.' },
      ],
      questions: {
        a: { type: 'noul', instructions: null, criteria: { true: null, false: null } },
        b: {
          type: 'choice',
          instructions: { ask: 'Which team?' },
          criteria: { billing: null, sales: ['new'] },
        },
        c: { type: 'score', instructions: ['How urgent?'], criteria: ['low', 'high'] },
      },
      stream: false,
    };
    await expectDecision(await post(service, account.key, body, '/v1/systemone'));
  });
});

describe('An unknown path', () => {
  for (const path of [
    '/v1',
    '/v1/',
    '/v2/decisions',
    '/v1/decisions/1',
    '/v1/Decisions',
    '//v1/models',
    '/v1/chat/completions',
    '/v1/models%2F',
    '/%zz%00',
    '/v1/models;x',
  ]) {
    test(`404 not_found: ${path}`, async () => {
      const response = await raw([`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close']);
      await expectError(asResponse(response), 'not_found');
    });
  }

  test('whatever the method, with or without a key', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const headers = { authorization: `Bearer ${account.key}` };
      await expectError(await service.fetch('/v1/nothing', { method, headers }), 'not_found');
      await expectError(await service.fetch('/v1/nothing', { method }), 'not_found');
    }
    for (const method of ['TRACE', 'FROB', 'get']) {
      const response = await raw([`${method} /v1/nothing HTTP/1.1`, 'Host: localhost', 'Connection: close']);
      await expectError(asResponse(response), 'not_found');
    }
  });
});

describe('A known path with a wrong method', () => {
  // Also methods that are registered nowhere, and such as differ from one in their case only.
  const METHODS = [
    ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'],
    ...['FROB', 'get', 'post', 'Post', 'options'],
  ];
  const ALLOWED: Readonly<Record<string, string>> = {
    '/v1/decisions': 'POST',
    '/v1/systemone': 'POST',
    '/v1/models': 'GET, HEAD',
    '/swagger': 'GET, HEAD',
    '/swagger/json': 'GET, HEAD',
    '/openapi.json': 'GET, HEAD',
  };

  for (const [path, allow] of Object.entries(ALLOWED)) {
    for (const method of METHODS.filter((each) => !allow.includes(each))) {
      test(`405 with Allow and our error shape: ${method} ${path}`, async () => {
        const response = await raw([
          `${method} ${path} HTTP/1.1`,
          'Host: localhost',
          'Content-Length: 0',
          'Connection: close',
        ]);
        expect(response.headers.allow).toBe(allow);
        await expectError(asResponse(response), 'method_not_allowed');
      });
    }

    test(`a browser's preflight is not served, because keys have no place there: ${path}`, async () => {
      const headers = { origin: 'https://example.com', 'access-control-request-method': 'POST' };
      const response = await service.fetch(path, { method: 'OPTIONS', headers });
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control-'))).toEqual([]);
      await expectError(response, 'method_not_allowed');
    });

    test(`HEAD ${path} has no body`, async () => {
      const headers = { 'x-api-key': account.key };
      const response = await service.fetch(path, { method: 'HEAD', headers });
      expect(response.status).toBe(allow.includes('HEAD') ? 200 : 405);
      expect(response.headers.get('x-request-id')).toMatch(/^req_/);
      expect(await response.text()).toBe('');
    });
  }
});

describe('Trailing slash and query noise are harmless', () => {
  for (const path of [
    '/v1/decisions/',
    '/v1/decisions?',
    '/v1/decisions?utm=1&&&=%zz&a[]=b',
    '/v1/decisions/?x',
    '/v1/systemone/',
  ]) {
    test(`POST ${path}`, async () => {
      const body = JSON.stringify(SMALL_REQUEST);
      const head = [
        `POST ${path} HTTP/1.1`,
        'Host: localhost',
        `X-API-Key: ${account.key}`,
        `Content-Length: ${body.length}`,
        'Connection: close',
      ];
      await expectDecision(asResponse(await raw(head, [body])));
    });
  }

  test('the wrong method on a path with a slash is 405, too', async () => {
    await expectError(await service.fetch('/v1/decisions/?a=b'), 'method_not_allowed');
  });

  test('mode is found beside other parameters', async () => {
    const response = await post(
      service,
      account.key,
      SMALL_REQUEST,
      '/v1/decisions/?a=b&mode=consistent&c=%zz',
    );
    expect((await expectDecision(response)).mode).toBe('consistent');
  });
});

describe('The host that a request names does not matter', () => {
  for (const host of [
    'Host: a',
    'Host: tds',
    'Host: [bad',
    'Host: two words',
    'Host: 1.2.3.4:5:6',
    'Host: ',
  ]) {
    test(host, async () => {
      const response = await raw([
        'GET /v1/models HTTP/1.1',
        host,
        `X-API-Key: ${account.key}`,
        'Connection: close',
      ]);
      expect(response.status).toBe(200);
    });
  }

  test('HTTP/1.0 without a host', async () => {
    expect((await raw(['GET /v1/models HTTP/1.0', `X-API-Key: ${account.key}`])).status).toBe(200);
  });

  test('a body comes through under a host that is none', async () => {
    const body = JSON.stringify(SMALL_REQUEST);
    const head = ['POST /v1/decisions?mode=consistent HTTP/1.1', 'Host: [bad', `X-API-Key: ${account.key}`];
    const response = await raw([...head, `Content-Length: ${body.length}`, 'Connection: close'], [body]);
    expect((await expectDecision(asResponse(response))).mode).toBe('consistent');
  });

  test('a fragment in the target is no part of the path', async () => {
    const head = [
      'GET /v1/models#x HTTP/1.1',
      'Host: localhost',
      `X-API-Key: ${account.key}`,
      'Connection: close',
    ];
    expect((await raw(head)).status).toBe(200);
  });
});

describe('A body that does not arrive', () => {
  test('no body at all: 400 invalid_json', async () => {
    const head = [
      'POST /v1/decisions HTTP/1.1',
      'Host: localhost',
      `X-API-Key: ${account.key}`,
      'Connection: close',
    ];
    await expectError(asResponse(await raw(head)), 'invalid_json');
  });

  test('the client leaves in the middle: nothing is counted or recorded', async () => {
    const fresh = await addAccount(service);
    const client = new AbortController();
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"model":'));
        client.signal.addEventListener('abort', () => controller.error(client.signal.reason));
        setTimeout(() => client.abort(), 20);
      },
    });
    const outcome = service
      .fetch('/v1/decisions', {
        method: 'POST',
        headers: { 'x-api-key': fresh.key },
        body,
        signal: client.signal,
      })
      .then(
        () => 'answered',
        () => 'left',
      );
    expect(await outcome).toBe('left');
    const response = await ask(service, fresh.key);
    await expectDecision(response);
    expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('299');
  });
});

describe('Every response carries x-request-id, another one each time', () => {
  test('also those of documents and of errors', async () => {
    const ids = new Set<string>();
    const paths = [
      '/v1/models',
      '/nothing',
      '/swagger',
      '/swagger/json',
      '/openapi.json',
      '/docs/style.css',
      '/v1/decisions',
    ];
    for (const path of paths) {
      const response = await service.fetch(path);
      await response.arrayBuffer();
      const id = response.headers.get('x-request-id') ?? '';
      expect(id).toMatch(/^req_[0-9A-Za-z]{24}$/);
      ids.add(id);
      expect(platformHeaders(response)).toEqual([]);
    }
    expect(ids.size).toBe(paths.length);
  });

  test('a request id sent by the client is not taken over', async () => {
    const headers = { 'x-request-id': 'req_chosen' };
    const response = await service.fetch('/v1/models', { headers });
    expect(response.headers.get('x-request-id')).not.toBe('req_chosen');
    await response.text();
  });
});
