import { expect, test } from 'bun:test';
import { clientOf, forwardedClient } from '../../src/http/client-address.ts';

test('an IPv4 address is one client, also as an IPv6 socket names it', () => {
  expect(clientOf('203.0.113.9')).toBe('203.0.113.9');
  expect(clientOf('::ffff:203.0.113.9')).toBe('203.0.113.9');
});

test('the IPv6 addresses of one network of 64 bits are one client, however they are written', () => {
  const network = clientOf('2001:db8:0:1::1');
  for (const same of ['2001:0DB8:0000:0001:ffff::', '2001:db8:0:1:2:3:4:5', '2001:db8::1:0:0:0:9']) {
    expect(clientOf(same)).toBe(network);
  }
  expect(clientOf('2001:db8:0:2::1')).not.toBe(network);
  expect(clientOf('fe80::1%eth0')).toBe(clientOf('fe80::2'));
  expect(clientOf('::1')).not.toBe(network);
});

test('a proxy names its client last, whatever the client wrote before', () => {
  expect(forwardedClient('198.51.100.7, 203.0.113.9')).toBe('203.0.113.9');
  expect(forwardedClient(' 203.0.113.9 ')).toBe('203.0.113.9');
  for (const missing of [undefined, '', '203.0.113.9, ']) expect(forwardedClient(missing)).toBeNull();
});
