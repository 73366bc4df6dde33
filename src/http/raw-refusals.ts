import { type Server as HttpServer, METHODS, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type CommonCode, Refusal } from '../errors/errors.ts';
import { BodyEndedEarly } from './body-bytes.ts';
import type { Connection, Connections } from './connections.ts';
import { type Exchange, isAmbiguous, urlOf } from './exchange.ts';
import { respond } from './request-answerer.ts';
import type { RequestHandler } from './request-handler.ts';

/** The largest head of a request. */
export const HEAD_BYTES_MAX = 16_384;

/**
 * Replaces a method that `Request` does not have and would treat as GET. `Request` has this one, and no path
 * allows it.
 */
const METHOD_OF_NO_PATH = 'TRACE';

/** A request line whose target is a path. The method is any token (RFC 9110, 5.6.2). */
const REQUEST_LINE = /^([\w!#$%&'*+.^`|~-]+) (\/\S*) HTTP\/1\.[01]\r\n/;

/** The errors of a connection that its client ended, within a request or by a reset. */
const ENDS: readonly (string | undefined)[] = ['HPE_INVALID_EOF_STATE', 'ECONNRESET'];

/** An error in the bytes of a connection, with its packet. */
type ParserError = Error & { readonly code?: string; readonly rawPacket?: Buffer };

/** Answers bytes that are not a request, as the last response of their connection. */
export class RawRefusals {
  constructor(
    private readonly handler: RequestHandler,
    private readonly connections: Connections,
  ) {}

  /**
   * Refuses the next request on the connection, after the response to an earlier one, if there is one to
   * come.
   */
  refuse(socket: Duplex, refusal: Refusal<CommonCode>): void {
    void this.#answer(socket, refusal, ({ address }) => this.handler.refuse(refusal, address));
  }

  /** Refuses the bytes that the server cannot read as a request, and tunnels. */
  listenTo(server: HttpServer): void {
    server.on('clientError', (error: ParserError, socket) => this.#refuseUnparsed(socket, error));
    server.on('connect', (_message, socket) => this.refuse(socket, new Refusal('malformed_request')));
  }

  /**
   * Refuses a request that the HTTP parser, or its clock, rejected. A method that only the parser does not
   * have is routed.
   */
  #refuseUnparsed(socket: Duplex, error: ParserError): void {
    const refusal = refusalOf(error.code);
    const connection = this.connections.of(socket);
    if (ENDS.includes(error.code)) failBody(connection?.newest ?? null, new BodyEndedEarly());
    // The clock says so once for each request, and ends nothing by itself.
    if (refusal.code === 'request_timeout' && connection?.newest?.is_stream === true) return;
    const target = targetOfUnknownMethod(error, (connection?.newest ?? null) !== null);
    if (connection === undefined || target === null || isAmbiguous(target)) {
      this.refuse(socket, refusal);
      return;
    }
    const makeRequest = () => new Request(urlOf(target), { method: METHOD_OF_NO_PATH });
    void this.#answer(socket, refusal, () => respond(this.handler, connection.address, makeRequest));
  }

  async #answer(
    socket: Duplex,
    refusal: Refusal<CommonCode>,
    makeResponse: (connection: Connection) => Response | Promise<Response>,
  ): Promise<void> {
    const connection = this.connections.of(socket);
    if (connection !== undefined && endsAfterNewest(connection, refusal)) return;
    // Each request gets one response: a second would count as that of the next request.
    const is_answered = connection?.newest?.message.complete === false;
    if (connection === undefined || !socket.writable || is_answered) {
      socket.destroy();
      return;
    }
    socket.end(await rawResponse(await makeResponse(connection)));
  }
}

/**
 * Returns true if the newest request of a connection is still being answered. Then its response becomes the
 * connection's last one, and the rest of its body fails with the refusal.
 */
function endsAfterNewest(connection: Connection, refusal: Refusal<CommonCode>): boolean {
  const { newest } = connection;
  if (connection.requests === 0 || newest === null || newest.is_closed) return false;
  newest.reply.shouldKeepAlive = false;
  newest.reply.once('close', () => connection.close());
  failBody(newest, refusal);
  return true;
}

/** Fails the rest of a request's body. One that has arrived is whole, whatever comes behind it. */
function failBody(newest: Exchange | null, refusal: Refusal): void {
  if (newest?.message.complete === false) newest.body_failure.abort(refusal);
}

/** Returns the refusal for an error of the HTTP parser, or its clock. */
function refusalOf(code: string | undefined): Refusal<CommonCode> {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Refusal('request_timeout');
  if (code === 'HPE_HEADER_OVERFLOW') return new Refusal('headers_too_large');
  return new Refusal('malformed_request');
}

/**
 * Returns the target of a request whose method the parser does not have. Null when the parser refused
 * something else, or when the packet may not begin with this request.
 */
function targetOfUnknownMethod(
  { code, rawPacket }: ParserError,
  has_earlier_requests: boolean,
): string | null {
  if (code !== 'HPE_INVALID_METHOD' || rawPacket === undefined) return null;
  const line = requestLine(rawPacket.toString('latin1', 0, HEAD_BYTES_MAX));
  if (line === null) return null;
  // A packet of several requests begins with one that was read, whose method the parser puts in lower case.
  if (has_earlier_requests && METHODS.includes(line.method.toUpperCase())) return null;
  return line.target;
}

/** Returns the method and the target of the request line at the start of `text`; null when there is none. */
function requestLine(text: string): { readonly method: string; readonly target: string } | null {
  const [, method, target] = REQUEST_LINE.exec(text) ?? [];
  return method === undefined || target === undefined ? null : { method, target };
}

/** Returns a response as the last bytes of its connection. */
async function rawResponse(response: Response): Promise<string> {
  const body = await response.text();
  const lines = [`HTTP/1.1 ${response.status} ${STATUS_CODES[response.status] ?? ''}`];
  response.headers.forEach((value, name) => {
    lines.push(`${name}: ${value}`);
  });
  lines.push('connection: close', `content-length: ${Buffer.byteLength(body)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
