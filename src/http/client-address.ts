import { isIP, isIPv4 } from 'node:net';

/** The groups of an IPv6 address that form its network; a client usually has all addresses of one. */
const NETWORK_GROUPS = 4;
const GROUPS = 8;

/** An IPv4 address with a port, or an IPv6 address in brackets, as some proxies write them into their header. */
const WITH_PORT = /^(?:\[(?<six>[^\]]*)\]|(?<four>[^:]*))(?::\d+)?$/;

/**
 * Returns the address that a client counts by: an IPv4 address, or the /64 network of an IPv6 address, in one
 * spelling. `forwarded` is the header in which our own proxy names the client. Its last address counts,
 * because the client may have invented all earlier ones. Without a valid one the connection's address counts;
 * empty when none is known.
 */
export function clientAddress(forwarded: string | null, peer_address: string | null): string {
  const last = forwarded?.split(',').at(-1)?.trim() ?? '';
  const { six, four } = WITH_PORT.exec(last)?.groups ?? {};
  return network(six ?? four ?? last) ?? network(peer_address ?? '') ?? '';
}

function network(address: string): string | null {
  if (isIPv4(address)) return address;
  const [without_zone = ''] = address.split('%');
  if (isIP(without_zone) !== 6) return null;
  // The URL parser writes an IPv6 address in its canonical form.
  const groups = groupsOf(new URL(`http://[${without_zone}]`).hostname.slice(1, -1));
  const mapped = mappedIPv4(groups);
  if (mapped !== null) return mapped;
  return `${groups
    .slice(0, NETWORK_GROUPS)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** Returns the eight numbers of a canonical IPv6 address. */
function groupsOf(canonical: string): readonly number[] {
  const [head = '', tail = ''] = canonical.split('::').map((part) => part);
  const before = numbersOf(head);
  const after = numbersOf(tail);
  return [...before, ...Array<number>(GROUPS - before.length - after.length).fill(0), ...after];
}

function numbersOf(part: string): readonly number[] {
  return part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
}

/** Returns the IPv4 address of `::ffff:0:0/96`, as a dual-stack socket writes it. */
function mappedIPv4(groups: readonly number[]): string | null {
  const [high = 0, low = 0] = groups.slice(-2);
  const is_mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  return is_mapped ? [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.') : null;
}
