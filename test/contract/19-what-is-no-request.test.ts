import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { asResponse, parseRaw, sendRaw } from '../support/raw-http.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import { addAccount, MODEL_TEST_TIMEOUT_MS, startTestService, type TestService } from '../support/service.ts';
import { expectDecision, expectError } from './expectations.ts';
import type { Code } from './spec.ts';

setDefaultTimeout(MODEL_TEST_TIMEOUT_MS);

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startTestService();
  key = (await addAccount(service)).key;
});
afterAll(() => service.close());

/** Sends the text, with KEY replaced by a valid one, and waits until the service has closed the connection. */
async function send(text: string): Promise<string> {
  return await sendRaw(service.server.address, text.replaceAll('KEY', key));
}

function statuses(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 ([2-5]\d\d)/g)].map(([, status]) => Number(status));
}

const GET = 'GET /v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\n';
const POST = 'POST /v1/decisions HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\n';
const BODY = JSON.stringify(SMALL_REQUEST);
const CHUNKED_BODY = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

describe('Bytes that are no request: one error of our shape, and the connection is closed', () => {
  const cases: Readonly<Record<string, readonly [text: string, code: Code]>> = {
    'no request line': ['HELO\r\n\r\n', 'malformed_request'],
    'the start of TLS': [
      `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${'a'.repeat(500)}`,
      'malformed_request',
    ],
    'HTTP/0.9': ['GET /v1/models\r\n', 'malformed_request'],
    'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'malformed_request'],
    'HTTP/2 in the form of HTTP/1': ['GET /v1/models HTTP/2.0\r\nHost: a\r\n\r\n', 'malformed_request'],
    'another protocol': ['DESCRIBE /v1/models RTSP/1.0\r\n\r\n', 'malformed_request'],
    'a method that is no token': ['G(T /v1/models HTTP/1.1\r\nHost: a\r\n\r\n', 'malformed_request'],
    'a tunnel': ['CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n', 'malformed_request'],
    'a target without a path': ['GET a:443 HTTP/1.1\r\nHost: a\r\n\r\n', 'malformed_request'],
    'OPTIONS of no path': ['OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 'malformed_request'],
    'a NUL in the target': ['GET /v1/models\0 HTTP/1.1\r\nHost: a\r\n\r\n', 'malformed_request'],
    'a NUL in a header': [`${GET}X: a\0b\r\n\r\n`, 'malformed_request'],
    'a folded header': [`${GET}X: a\r\n b\r\n\r\n`, 'malformed_request'],
    'a space before the colon': [`${GET}X : a\r\n\r\n`, 'malformed_request'],
    'a header without a colon': [`${GET}X\r\n\r\n`, 'malformed_request'],
    'lines that end with LF only': [`${GET}\r\n`.replaceAll('\r', ''), 'malformed_request'],
    'one line that ends with LF only': [`${GET}X: a\nY: b\r\n\r\n`, 'malformed_request'],
    'a CR in a header': [`${GET}X: a\rb\r\n\r\n`, 'malformed_request'],
    'two lengths': [`${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `, 'malformed_request'],
    'a list of lengths': [`${POST}Content-Length: 2, 2\r\n\r\n{}`, 'malformed_request'],
    'a length that is none': [`${POST}Content-Length: -1\r\n\r\n{}`, 'malformed_request'],
    'a length beyond counting': [`${POST}Content-Length: ${'9'.repeat(30)}\r\n\r\n{}`, 'malformed_request'],
    'a length beside chunks': [
      `${POST}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED_BODY}`,
      'malformed_request',
    ],
    'a transfer coding without an end': [`${POST}Transfer-Encoding: gzip\r\n\r\n{}`, 'malformed_request'],
    'chunks inside another coding': [
      `${POST}Transfer-Encoding: chunked, gzip\r\n\r\n${CHUNKED_BODY}`,
      'malformed_request',
    ],
    'a chunk without a size': [`${POST}Transfer-Encoding: chunked\r\n\r\nzz\r\n`, 'malformed_request'],
    'a second chunk without a size': [
      `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n`,
      'malformed_request',
    ],
    'headers above 16 kB': [`${GET}X: ${'a'.repeat(20_000)}\r\n\r\n`, 'headers_too_large'],
    'a target above 16 kB': [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 'headers_too_large'],
    'a trailer above 16 kB': [
      `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
      'headers_too_large',
    ],
  };
  for (const [name, [text, code]] of Object.entries(cases)) {
    test(name, async () => {
      const received = await send(text);
      expect(statuses(received)).toHaveLength(1);
      const response = parseRaw(received);
      expect(response.headers.connection).toBe('close');
      await expectError(asResponse(response), code);
    });
  }
});

describe('Odd requests that are answered as others', () => {
  const CLOSE = 'Connection: close\r\n';
  const models: Readonly<Record<string, string>> = {
    'an absolute target': GET.replace(' /', ' http://example.com/'),
    'empty lines before it': `\r\n\r\n${GET}`,
    'no host': GET.replace('Host: a\r\n', ''),
    'an upgrade that is not offered': `${GET}Connection: Upgrade\r\nUpgrade: websocket\r\n`,
  };
  for (const [name, head] of Object.entries(models)) {
    test(name, async () => {
      const response = asResponse(parseRaw(await send(`${head}${CLOSE}\r\n`)));
      expect([response.status, response.headers.has('x-request-id')]).toEqual([200, true]);
    });
  }

  const decisions: Readonly<Record<string, string>> = {
    'one length, twice': `Content-Length: ${BODY.length}\r\nContent-Length: ${BODY.length}\r\n${CLOSE}\r\n${BODY}`,
    chunks: `Transfer-Encoding: chunked\r\n${CLOSE}\r\n${CHUNKED_BODY}`,
    'an expectation that nobody knows': `Expect: tea\r\nContent-Length: ${BODY.length}\r\n${CLOSE}\r\n${BODY}`,
  };
  for (const [name, rest] of Object.entries(decisions)) {
    test(name, async () => {
      await expectDecision(asResponse(parseRaw(await send(POST + rest))));
    });
  }

  for (const garbage of ['GARBAGE\r\n\r\n', '\0', '{"a":1}']) {
    test(`a request with something else behind it: ${JSON.stringify(garbage)}`, async () => {
      const received = await send(`${POST}Content-Length: ${BODY.length}\r\n\r\n${BODY}${garbage}`);
      const [answer = ''] = received.split(/(?=HTTP\/1\.1 400)/);
      await expectDecision(asResponse(parseRaw(answer)));
    });
  }
});
