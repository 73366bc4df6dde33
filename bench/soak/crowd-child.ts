import { connect, type Socket } from 'node:net';

/**
 * A process of connections that cost a service memory and little work. They are silent, were answered once, send slowly
 * or read slowly. Each is reopened soon after it was closed. Prints a line of JSON a second, and ends with its standard
 * input.
 */

const [address = '', key = '', idle = '0', slow = '0'] = process.argv.slice(2);
const { hostname, port } = new URL(address);

/** Connections from one address, fewer than the service accepts. */
const PER_ADDRESS = 700;
/** One idle connection in this many never sends anything. */
const SILENT_ONE_IN = 5;
/** One slow connection in this many reads slowly. The others send slowly. */
const READS_SLOWLY_ONE_IN = 5;
/** The time over which all are opened, and reopened while nobody listens. */
const OPENING_MS = 5_000;
/** The longest time before a connection that the service closed is reopened. */
const RETURN_MS = 1_000;
const TICK_MS = 1_000;
/** The largest response that needs no key, as often as one connection may ask before it is answered. */
const UNREAD_REQUESTS = 8;
const ANSWERED_ONCE = `GET /healthz HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`;
const UNREAD = `GET /openapi.json HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`.repeat(UNREAD_REQUESTS);
const SLOW_HEAD = `POST /v1/decisions HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${key}\r\n`;
const SLOW_BODY = `${SLOW_HEAD}Content-Length: 100000\r\n\r\n{"model": "decision-1", "state": "`;

type Kind = 'silent' | 'answered once' | 'slow head' | 'slow body' | 'slow reader';

const open = new Map<Kind, Set<Socket>>();
const statuses: Record<string, number> = {};

function kindOf(index: number): Kind {
  if (index < Number(idle)) return index % SILENT_ONE_IN === 0 ? 'silent' : 'answered once';
  if (index % READS_SLOWLY_ONE_IN === 0) return 'slow reader';
  return index % 2 === 0 ? 'slow head' : 'slow body';
}

const FIRST_BYTES: Readonly<Record<Kind, string>> = {
  silent: '',
  'answered once': ANSWERED_ONCE,
  'slow head': SLOW_HEAD,
  'slow body': SLOW_BODY,
  'slow reader': UNREAD,
};

function openOne(index: number): void {
  const kind = kindOf(index);
  const sockets = open.get(kind) ?? new Set();
  open.set(kind, sockets);
  const localAddress = `127.0.1.${1 + Math.floor(index / PER_ADDRESS)}`;
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => {});
  let was_open = false;
  socket.on('connect', () => {
    was_open = true;
    sockets.add(socket);
    socket.write(FIRST_BYTES[kind]);
    if (kind === 'slow reader') socket.pause();
  });
  socket.on('data', (data) => {
    const status = /^HTTP\/1\.1 (\d{3})/.exec(data.toString('latin1'))?.[1];
    if (status !== undefined) statuses[`${kind} ${status}`] = (statuses[`${kind} ${status}`] ?? 0) + 1;
    if (kind === 'slow reader') socket.pause();
  });
  socket.on('close', () => {
    sockets.delete(socket);
    reopen(index, was_open ? RETURN_MS : OPENING_MS);
  });
}

function reopen(index: number, within_ms: number): void {
  setTimeout(() => openOne(index), Math.random() * within_ms);
}

for (let index = 0; index < Number(idle) + Number(slow); index += 1) reopen(index, OPENING_MS);

setInterval(() => {
  for (const socket of open.get('slow head') ?? []) socket.write('x: y\r\n');
  for (const socket of open.get('slow body') ?? []) socket.write('a');
  // Slow readers read one more piece.
  for (const socket of open.get('slow reader') ?? []) socket.resume();
  const counts = Object.fromEntries([...open].map(([kind, sockets]) => [kind, sockets.size]));
  process.stdout.write(`${JSON.stringify({ open: counts, statuses })}\n`);
}, TICK_MS);

process.stdin.on('end', () => process.exit(0)).resume();
