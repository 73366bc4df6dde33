import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request of a connection, with its reply. */
export interface Exchange {
  readonly message: IncomingMessage;
  readonly reply: ServerResponse;
  /** Aborted with a refusal when the rest of its body cannot be read. */
  readonly body_failure: AbortController;
  /** Set once the reply is closed; the connection counts it until the next turn of the event loop. */
  is_closed: boolean;
  /** True once its client was asked by `HalfClosedClients`. */
  is_asked: boolean;
  /** True if the client may send and read without end: no clock of a whole request ends it. */
  is_stream: boolean;
}

/** The scheme and the host of an absolute URL. Neither must be well formed. */
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/**
 * Returns the URL of a request's target (the path, or the absolute URL, of its request line), on `localhost`.
 * The host is replaced because no route depends on it, and because it may be missing (HTTP/1.0) or malformed.
 * A fragment is dropped, because RFC 9112 allows none in a target.
 */
export function urlOf(target: string): string {
  const [path = ''] = target.replace(ORIGIN, '').split('#');
  return `http://localhost${path.startsWith('/') ? '' : '/'}${path}`;
}

/**
 * The parts of a path that programs read differently: a backslash, a segment of dots, encoded or not, and a
 * control character.
 */
const AMBIGUOUS = /\\|%5c|(?:^|\/|%2f)(?:\.|%2e){1,2}(?:\/|%2f|$)|[\0- \x7f]/i;

/**
 * Returns true if the path of a target may be read as another path. A proxy could let it through as a
 * harmless path, while the service reads one below `/console`.
 */
export function isAmbiguous(target: string): boolean {
  const [path = ''] = target.replace(ORIGIN, '').split(/[?#]/);
  return AMBIGUOUS.test(path);
}

/** The bytes of a body that are read ahead of its reader; the others stay in the connection. */
const UNREAD_BYTES_MAX = 65_536;

const METHODS_WITHOUT_BODY: readonly (string | undefined)[] = ['GET', 'HEAD'];

/** Responses without a body; that of 304 would have another length (RFC 9110, 8.6). */
const STATUSES_WITHOUT_LENGTH: readonly number[] = [204, 304];

/** Returns true if the head of a request announces a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The events of a request while it is answered. */
export interface RequestEvents {
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Aborted when the rest of the body cannot be read, with the reason for its reader. */
  readonly body_failure: AbortSignal;
  /** Called when the body is first read. */
  readonly onFirstRead: () => void;
  /** Called when the whole body has arrived. */
  readonly onReceived: () => void;
}

/**
 * Returns the request as the web's `Request`. Its body is not read before it is needed. A client that waits
 * with its body (`Expect: 100-continue`) is asked for it then.
 */
export function webRequest(message: IncomingMessage, events: RequestEvents): Request {
  const headers = new Headers();
  const { rawHeaders } = message;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
  }
  const has_body = hasBody(message) && !METHODS_WITHOUT_BODY.includes(message.method);
  return new Request(urlOf(message.url ?? '/'), {
    method: message.method ?? 'GET',
    headers,
    signal: events.signal,
    ...(has_body ? { body: bodyStream(message, events) } : {}),
  });
}

function bodyStream(
  message: IncomingMessage,
  { body_failure, onFirstRead, onReceived }: RequestEvents,
): ReadableStream<Uint8Array> {
  let is_started = false;
  let is_ended = false;
  const ended = (end: () => void) => {
    if (is_ended) return;
    is_ended = true;
    end();
  };
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (is_started) {
          message.resume();
          return;
        }
        is_started = true;
        const fail = () => ended(() => controller.error(body_failure.reason));
        if (body_failure.aborted) {
          fail();
          return;
        }
        body_failure.addEventListener('abort', fail, { once: true });
        onFirstRead();
        message.on('data', (chunk: Uint8Array) => {
          if (is_ended) return;
          controller.enqueue(chunk);
          if ((controller.desiredSize ?? 0) <= -UNREAD_BYTES_MAX) message.pause();
        });
        // The end of a body that nobody wanted is no more work: its connection may wait already.
        message.once('end', () =>
          ended(() => {
            onReceived();
            controller.close();
          }),
        );
        message.once('close', () => ended(() => controller.error(new Error('the connection was closed'))));
      },
      cancel() {
        is_ended = true;
        message.pause();
      },
    },
    // The first pull is the first read, not the stream's creation.
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );
}

/** Events of a response that is written. */
export interface WritingEvents {
  /** A piece waits to be read. */
  readonly onUnread: () => void;
  /** The client has read all that was written. */
  readonly onTaken: () => void;
  /** Called when all but the end is written, which waits for it; null to end at once. */
  readonly beforeEnd: (() => Promise<void>) | null;
}

/**
 * Writes a response and ends it. Resolves when the operating system has all of it or the client is gone. A
 * body with a length in the headers, or sent in chunks, is read at the client's speed. Only a piece of it is
 * in memory.
 */
export async function writeResponse(
  response: Response,
  reply: ServerResponse,
  events: WritingEvents,
): Promise<void> {
  const { headers } = response;
  const is_chunked = headers.has('transfer-encoding');
  // With chunks, a length would mean another end of the body (RFC 9112, 6.2).
  if (is_chunked) headers.delete('content-length');
  const is_read_in_pieces = response.body !== null && (is_chunked || headers.has('content-length'));
  const body = response.body === null || is_read_in_pieces ? null : await response.bytes();
  if (reply.destroyed || reply.headersSent) {
    if (is_read_in_pieces) await response.body?.cancel();
    return;
  }
  // HTTP/1.0 has no chunks; there the end of the connection is that of the body.
  if (is_chunked && reply.req.httpVersionMinor === 0) headers.delete('transfer-encoding');
  const lines: string[] = [];
  headers.forEach((value, name) => {
    lines.push(name, value);
  });
  // The response to a HEAD has the length of a body that it omits.
  if (!is_chunked && !headers.has('content-length') && !STATUSES_WITHOUT_LENGTH.includes(response.status)) {
    lines.push('content-length', String(body?.byteLength ?? 0));
  }
  events.onUnread();
  reply.writeHead(response.status, lines);
  if (is_read_in_pieces && response.body !== null) {
    // The first piece may be long in coming.
    if (is_chunked) reply.flushHeaders();
    await writePieces(response.body, reply, events);
  }
  if (events.beforeEnd !== null) {
    if (body === null) reply.flushHeaders();
    else reply.write(body);
    await events.beforeEnd();
    reply.end();
  } else if (body === null) reply.end();
  else reply.end(body);
}

async function writePieces(
  body: ReadableStream<Uint8Array>,
  reply: ServerResponse,
  { onUnread, onTaken }: WritingEvents,
): Promise<void> {
  onTaken();
  for await (const piece of body) {
    if (reply.destroyed) return;
    onUnread();
    if (!reply.write(piece)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      reply.once('drain', resolve).once('close', resolve);
      await promise;
      reply.off('drain', resolve).off('close', resolve);
    }
    if (!reply.destroyed) onTaken();
  }
  onUnread();
}
