import { describe, expect, test } from 'bun:test';
import { clientAddress } from '../../src/http/client-address.ts';

const HEADER = 'x-forwarded-for';

function forwarded(value: string): Request {
  return new Request('http://localhost/', { headers: { [HEADER]: value } });
}
const plain = new Request('http://localhost/');

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
      expect(clientAddress(plain, peer, null)).toBe(counted);
    });
  }

  test('what a client says of itself changes nothing', () => {
    expect(clientAddress(forwarded('203.0.113.9'), '192.0.2.7', null)).toBe('192.0.2.7');
    expect(clientAddress(plain, null, null)).toBe('');
  });
});

describe('with the header of a proxy', () => {
  test('the last address is taken: the others are what the client wrote', () => {
    expect(clientAddress(forwarded('10.0.0.1, 203.0.113.9'), '192.0.2.7', HEADER)).toBe('203.0.113.9');
    expect(clientAddress(forwarded('2001:db8:a:b::1'), '192.0.2.7', HEADER)).toBe('2001:db8:a:b::/64');
  });

  test('without the header, or with no address in it, the connection counts', () => {
    for (const request of [plain, forwarded(''), forwarded('unknown'), forwarded('203.0.113.9, _hidden')]) {
      expect(clientAddress(request, '192.0.2.7', HEADER)).toBe('192.0.2.7');
    }
  });
});
