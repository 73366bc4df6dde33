import { describe, expect, test } from 'bun:test';
import { extractKey, keyDisplayPrefix } from '../../src/accounts/key-format.ts';
import { secretHash } from '../../src/accounts/secret-hash.ts';
import { KEY_LENGTH, randomIdentifiers } from '../../src/identifiers.ts';

const FIRST = `sk_svc_${'a'.repeat(32)}`;
const SECOND = `sk_svc_${'B-_9'.repeat(8)}`;

interface Row {
  readonly name: string;
  readonly headers: Record<string, string>;
  readonly key: string | null;
}

const ROWS: readonly Row[] = [
  { name: 'no header', headers: {}, key: null },
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
    key: null,
  },
  {
    name: 'a Bearer of another kind of key does not fall back',
    headers: { authorization: `Bearer pk_${'a'.repeat(40)}`, 'x-api-key': SECOND },
    key: null,
  },
  {
    name: 'a Bearer that is too short does not fall back',
    headers: { authorization: 'Bearer sk_svc_abc', 'x-api-key': SECOND },
    key: null,
  },
  {
    name: 'another scheme leaves X-API-Key in force',
    headers: { authorization: `Basic ${FIRST}`, 'x-api-key': SECOND },
    key: SECOND,
  },
  { name: 'another scheme alone', headers: { authorization: `Basic ${FIRST}` }, key: null },
  { name: 'a key without a scheme', headers: { authorization: FIRST }, key: null },
  { name: 'no space after the scheme', headers: { authorization: `Bearer${FIRST}` }, key: null },
  { name: 'the prefix in upper case', headers: { 'x-api-key': FIRST.toUpperCase() }, key: null },
  { name: 'another prefix', headers: { 'x-api-key': `sk_other_${'a'.repeat(40)}` }, key: null },
  { name: 'the prefix alone', headers: { 'x-api-key': 'sk_svc_' }, key: null },
  { name: 'one character too short', headers: { 'x-api-key': FIRST.slice(0, -1) }, key: null },
  { name: 'longer than a key', headers: { 'x-api-key': `${FIRST}a` }, key: `${FIRST}a` },
  { name: 'an empty X-API-Key', headers: { 'x-api-key': '' }, key: null },
];

describe('extractKey', () => {
  for (const row of ROWS) {
    test(row.name, () => expect(extractKey(new Headers(row.headers))).toBe(row.key));
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
