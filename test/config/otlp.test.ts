import { describe, expect, test } from 'bun:test';
import { InvalidArgumentError } from 'commander';
import fc from 'fast-check';
import { parseOtlpEndpoint, parseOtlpHeaders } from '../../src/config/otlp.ts';

describe('the address of a collector', () => {
  test.each([
    ['http://127.0.0.1:4318', 'http://127.0.0.1:4318/v1/traces'],
    ['http://127.0.0.1:4318/', 'http://127.0.0.1:4318/v1/traces'],
    ['https://collector.example.com/otlp', 'https://collector.example.com/otlp/v1/traces'],
    ['https://collector.example.com/otlp/', 'https://collector.example.com/otlp/v1/traces'],
    // Already the whole one, as some collectors document it.
    ['http://127.0.0.1:4318/v1/traces', 'http://127.0.0.1:4318/v1/traces'],
    ['http://[::1]:4318/v1/traces/', 'http://[::1]:4318/v1/traces'],
  ])('%s means %s', (given, url) => {
    expect(parseOtlpEndpoint(given)).toBe(url);
  });

  test.each(['', '127.0.0.1:4318', 'collector:4317', 'grpc://a:4317', 'http://', 'http://user:key@a'])(
    '%p is none',
    (given) => {
      expect(() => parseOtlpEndpoint(given)).toThrow(InvalidArgumentError);
    },
  );
});

describe('the headers for a collector', () => {
  test('are read as OpenTelemetry writes them', () => {
    expect(parseOtlpHeaders('authorization=Basic%20dTpw==, X-Scope-OrgID = 7')).toEqual({
      authorization: 'Basic dTpw==',
      'x-scope-orgid': '7',
    });
    const value = fc.stringMatching(/^[!-~][ -~]*$/).filter((text) => !text.endsWith(' '));
    fc.assert(
      fc.property(value, value, (first, second) => {
        const written = `a=${encodeURIComponent(first)},b=${encodeURIComponent(second)}`;
        expect(parseOtlpHeaders(written)).toEqual({ a: first, b: second });
      }),
    );
  });

  test.each([
    'secret',
    '=secret',
    'a b=secret',
    'a=',
    'a=secret,',
    'a=secret%0d%0ab: c',
    'a=%zzsecret',
    'a=sécret',
  ])('%p is refused, without a word of it', (given) => {
    expect(() => parseOtlpHeaders(given)).toThrow('It must be name=value, with commas between several.');
  });
});
