import { describe, expect, test } from 'bun:test';
import { clientAddress } from '../../src/http/client-address.ts';

describe('without a header', () => {
  for (const [peer, counted] of [
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:C000:0207', '192.0.2.7'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::99', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
    ['nonsense', ''],
  ] as const) {
    test(`${peer} is counted as ${counted || 'nothing'}`, () => {
      expect(clientAddress(null, peer)).toBe(counted);
    });
  }

  test('a connection without an address is counted as nothing', () => {
    expect(clientAddress(null, null)).toBe('');
  });
});

describe('with the header of a proxy', () => {
  test('the last address is taken: the others are what the client wrote', () => {
    expect(clientAddress('10.0.0.1, 203.0.113.9', '192.0.2.7')).toBe('203.0.113.9');
    expect(clientAddress('2001:db8:a:b::1', '192.0.2.7')).toBe('2001:db8:a:b::/64');
  });

  test('a port beside the address does not count, nor do the brackets of IPv6', () => {
    for (const port of ['', ':0', ':47011']) {
      expect(clientAddress(`10.0.0.1, 203.0.113.9${port}`, '192.0.2.7')).toBe('203.0.113.9');
      expect(clientAddress(`[2001:db8:a:b::1]${port}`, '192.0.2.7')).toBe('2001:db8:a:b::/64');
      expect(clientAddress(`[fe80::1%eth0]${port}`, '192.0.2.7')).toBe('fe80:0:0:0::/64');
    }
  });

  test('without the header, or with no address in it, the connection counts', () => {
    for (const forwarded of [
      null,
      '',
      'unknown',
      '203.0.113.9, _hidden',
      '[203.0.113.9:1',
      '1.2.3.4:x',
      '[]',
      ':1',
    ]) {
      expect(clientAddress(forwarded, '192.0.2.7')).toBe('192.0.2.7');
    }
  });
});
