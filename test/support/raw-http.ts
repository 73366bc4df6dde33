import { connect } from 'node:net';

/** The smallest request that is in order. */
export const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** One response as it came over the wire; header names in lower case. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Writes `head` (with its blank line), then what `body` gives, to a new connection of the server at `address`. Returns
 * everything that came back until the server closed it. For requests that `fetch` would not send.
 */
export async function sendRaw(
  address: string,
  head: string,
  body: Iterable<string | Uint8Array> = [],
): Promise<string> {
  const { hostname, port } = new URL(address);
  const socket = connect(Number(port), hostname);
  const received: Buffer[] = [];
  socket.on('data', (data) => received.push(Buffer.from(data)));
  // A server that has answered may close before everything is written.
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.write(head);
  for (const piece of body) {
    if (socket.destroyed) break;
    if (!socket.write(piece))
      await Promise.race([closed, new Promise((resolve) => socket.once('drain', resolve))]);
  }
  await closed;
  return Buffer.concat(received).toString('latin1');
}

/** The last response in what `sendRaw` returned (an interim `100 Continue` comes before it). */
export function parseRaw(received: string): RawResponse {
  const start = received.lastIndexOf('HTTP/1.1 ');
  const [head = '', ...rest] = received.slice(start).split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = lines.map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: rest.join('\r\n\r\n'),
  };
}

/** A raw answer as a `Response`, for the checks that those go through. */
export function asResponse({ status, headers, body }: RawResponse): Response {
  return new Response(body, { status, headers });
}
