import { isIPv6 } from 'node:net';

/** Hexadecimal groups of an IPv6 address that name one subscriber's network: 64 bits. */
const NETWORK_GROUPS = 4;
const GROUPS = 8;
/** An IPv4 address as a socket that takes both kinds names it. */
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * What one client is counted by: an IPv4 address, or the first 64 bits of an IPv6 address, because a subscriber has all
 * addresses below them. Other text is taken as it is.
 */
export function clientOf(address: string): string {
  const [, mapped] = MAPPED_IPV4.exec(address) ?? [];
  if (mapped !== undefined) return mapped;
  const [plain = ''] = address.split('%');
  if (!isIPv6(plain)) return address;
  const [head = '', tail] = plain.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const after = (tail ?? '').split(':').filter((group) => group !== '');
  while (tail !== undefined && groups.length + after.length < GROUPS) groups.push('0');
  const network = [...groups, ...after].slice(0, NETWORK_GROUPS);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}

/**
 * The client that a proxy names in a header: the last element of the list, because that is the one that the nearest
 * proxy wrote, and everything before it may be the client's own invention. Null when the header is missing or empty.
 */
export function forwardedClient(header: string | undefined): string | null {
  const last = header?.split(',').at(-1)?.trim() ?? '';
  return last === '' ? null : clientOf(last);
}
