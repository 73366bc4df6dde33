import { describe, expect, test } from 'bun:test';
import { extractKey, keyDisplayPrefix } from '../../src/accounts/key-format.ts';
import { KEY_LENGTH, randomIdentifiers } from '../../src/contract/identifiers.ts';
import { secretHash } from '../../src/hashing/secret-hash.ts';

const FIRST = `sk_svc_${'a'.repeat(32)}`;
const SECOND = `sk_svc_${'B-_9'.repeat(8)}`;

interface Row {
  readonly name: string;
  readonly headers: Record<string, string>;
  /** The key that is found; else why there is none, in the words that its client reads. */
  readonly key?: string;
  readonly reason?: string;
}

const ROWS: readonly Row[] = [
  { name: 'no header', headers: {}, reason: 'No API key found: send it as' },
  { name: 'Bearer', headers: { authorization: `Bearer ${FIRST}` }, key: FIRST },
  { name: 'Bearer in lower case', headers: { authorization: `bearer ${FIRST}` }, key: FIRST },
  { name: 'Bearer in upper case', headers: { authorization: `BEARER ${FIRST}` }, key: FIRST },
  { name: 'Bearer and several spaces', headers: { authorization: `Bearer   ${FIRST}  ` }, key: FIRST },
  { name: 'X-API-Key', headers: { 'x-api-key': SECOND }, key: SECOND },
  { name: 'X-API-Key with spaces around', headers: { 'x-api-key': `  ${SECOND} ` }, key: SECOND },
  {
    name: 'Bearer wins over X-API-Key',
    headers: { authorization: `Bearer ${FIRST}`, 'x-api-key': SECOND },
    key: FIRST,
  },
  {
    name: 'a Bearer without a value does not fall back',
    headers: { authorization: 'Bearer', 'x-api-key': SECOND },
    reason: 'the scheme Bearer and no key',
  },
  {
    name: 'a Bearer of another kind of key does not fall back',
    headers: { authorization: `Bearer pk_${'a'.repeat(40)}`, 'x-api-key': SECOND },
    reason: 'start with "sk_svc_"',
  },
  {
    name: 'a Bearer that is too short does not fall back',
    headers: { authorization: 'Bearer sk_svc_abc', 'x-api-key': SECOND },
    reason: 'is cut: it has 10 characters of 39',
  },
  {
    name: 'another scheme leaves X-API-Key in force',
    headers: { authorization: `Basic ${FIRST}`, 'x-api-key': SECOND },
    key: SECOND,
  },
  {
    name: 'another scheme alone',
    headers: { authorization: `Basic ${FIRST}` },
    reason: 'another scheme than Bearer',
  },
  { name: 'a key without a scheme', headers: { authorization: FIRST }, reason: 'has no scheme' },
  {
    name: 'no space after the scheme',
    headers: { authorization: `Bearer${FIRST}` },
    reason: 'has no scheme',
  },
  {
    name: 'the prefix in upper case',
    headers: { 'x-api-key': FIRST.toUpperCase() },
    reason: 'start with "sk_svc_"',
  },
  {
    name: 'another prefix',
    headers: { 'x-api-key': `sk_other_${'a'.repeat(40)}` },
    reason: 'start with "sk_svc_"',
  },
  {
    name: 'the prefix alone',
    headers: { 'x-api-key': 'sk_svc_' },
    reason: 'is cut: it has 7 characters of 39',
  },
  {
    name: 'one character too short',
    headers: { 'x-api-key': FIRST.slice(0, -1) },
    reason: 'is cut: it has 38 characters of 39',
  },
  { name: 'longer than a key', headers: { 'x-api-key': `${FIRST}a` }, key: `${FIRST}a` },
  { name: 'an empty X-API-Key', headers: { 'x-api-key': '' }, reason: 'No API key found' },
];

describe('extractKey', () => {
  for (const row of ROWS) {
    test(row.name, () => {
      const found = extractKey(new Headers(row.headers));
      if (typeof found === 'string') expect(found).toBe(row.key ?? '');
      else expect(found.message).toContain(row.reason ?? 'a key is found');
    });
  }
});

test('why there is no key never quotes what was sent', () => {
  for (const value of ['sk_svc_mySecret', `sk_other_${'mySecret'.repeat(5)}`, 'mySecret']) {
    for (const headers of [
      { authorization: `Bearer ${value}` },
      { authorization: value },
      { 'x-api-key': value },
    ])
      expect(extractKey(new Headers(headers))).not.toMatchObject({
        message: expect.stringContaining('mySecret'),
      });
  }
});

test('a generated key is accepted as it is', () => {
  const secret = randomIdentifiers.apiKey();
  expect(secret).toHaveLength(KEY_LENGTH);
  expect(secret).toMatch(/^sk_svc_[A-Za-z0-9_-]{32}$/);
  expect(extractKey(new Headers({ 'x-api-key': secret }))).toBe(secret);
});

test('what is stored of a key is its SHA-256, what is shown are its first 12 characters', () => {
  expect(secretHash('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(keyDisplayPrefix(SECOND)).toBe('sk_svc_B-_9B');
});
