import { expect, test } from 'bun:test';
import { type OwnOrigin, requireOwnPage } from '../../src/console/api/own-page.ts';
import { ConsoleRefusal } from '../../src/console/api/refusals.ts';

const UNKNOWN: OwnOrigin = { public_origin: null, is_https: false };
const OVER_TLS: OwnOrigin = { public_origin: null, is_https: true };
const PUBLIC: OwnOrigin = { public_origin: 'https://tds.example.com', is_https: true };

/** Returns the answer to a change with these headers; "taken" for one of our own page. */
function answerTo(own: OwnOrigin, headers: Record<string, string>, body?: Uint8Array<ArrayBuffer>): string {
  const request = new Request('http://localhost/console/api/keys', {
    method: 'POST',
    headers,
    ...(body === undefined ? {} : { body }),
  });
  try {
    requireOwnPage(request, own);
    return 'taken';
  } catch (error) {
    return error instanceof ConsoleRefusal ? error.code : String(error);
  }
}

test.each<[what: string, own: OwnOrigin, headers: Record<string, string>, answer: string]>([
  ['the host that was asked', UNKNOWN, { host: 'a:81', origin: 'http://a:81' }, 'taken'],
  ['a proxy that speaks TLS', UNKNOWN, { host: 'a', origin: 'https://a' }, 'taken'],
  ['another port of the host', UNKNOWN, { host: 'a:81', origin: 'http://a:82' }, 'wrong_origin'],
  ['no host, from a sandboxed page', UNKNOWN, { origin: 'null' }, 'wrong_origin'],
  ['another scheme', UNKNOWN, { host: 'a', origin: 'ftp://a' }, 'wrong_origin'],
  ['the same host in the clear', OVER_TLS, { host: 'a', origin: 'http://a' }, 'wrong_origin'],
  ['the same host over TLS', OVER_TLS, { host: 'a', origin: 'https://a' }, 'taken'],
  ['the public origin', PUBLIC, { host: '10.0.0.1', origin: 'https://tds.example.com' }, 'taken'],
  ['the public origin in the clear', PUBLIC, { host: 'a', origin: 'http://tds.example.com' }, 'wrong_origin'],
  ['the host beside a public origin', PUBLIC, { host: 'evil', origin: 'https://evil' }, 'wrong_origin'],
])('a change from %s', (_, own, headers, answer) => {
  expect(answerTo(own, headers)).toBe(answer);
});

test('a body is JSON by name, and no body needs no name', () => {
  const own = { host: 'a', origin: 'http://a' };
  const body = new TextEncoder().encode('{}');
  expect(answerTo(UNKNOWN, own, body)).toBe('unsupported_media_type');
  expect(answerTo(UNKNOWN, { ...own, 'content-type': 'text/plain; application/json' }, body)).toBe(
    'unsupported_media_type',
  );
  expect(answerTo(UNKNOWN, { ...own, 'content-type': 'application/json; charset=utf-8' }, body)).toBe(
    'taken',
  );
  expect(answerTo(UNKNOWN, own)).toBe('taken');
});
