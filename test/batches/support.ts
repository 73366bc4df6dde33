import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Static } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { BatchAnswerSchema } from '../../src/http/batch-route.ts';
import { parseRaw } from '../support/raw-http.ts';
import { SMALL_REQUEST } from '../support/requests.ts';
import type { TestService } from '../support/service.ts';

/** A line of the response to a batch. */
export type BatchAnswer = Static<typeof BatchAnswerSchema>;

/** The shared question of the tests, as the first line. */
export const HEADER = { questions: SMALL_REQUEST.questions };

/** A line with a record, whose id says which it is. */
export function record(number: number): { readonly id: string; readonly state: string } {
  return { id: `r${number}`, state: `I was charged twice for order ${number}.` };
}

/** Lines as they are sent: text as it is, anything else as JSON. */
export function ndjson(lines: readonly unknown[]): string {
  return lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
}

/** Sends a batch whole. */
export function sendBatch(
  service: Pick<TestService, 'fetch'>,
  key: string,
  body: string | Uint8Array | readonly unknown[],
  { query = '', headers = {} }: { readonly query?: string; readonly headers?: Record<string, string> } = {},
): Promise<Response> {
  return service.fetch(`/v1/decisions/batch${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/x-ndjson', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : ndjson(body),
  });
}

/** One line of a response, which must be as the reference says. */
export function answerOf(text: string): BatchAnswer {
  const answer: unknown = JSON.parse(text);
  if (Value.Check(BatchAnswerSchema, answer)) return answer;
  throw new Error(`no line of a batch's response: ${text.slice(0, 500)}`);
}

/** The lines of a response to a batch, in the order of their numbers. */
export async function answersOf(response: Response): Promise<readonly BatchAnswer[]> {
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text}`);
  if (!text.endsWith('\n')) throw new Error('the last line of the response has no end');
  return text
    .split('\n')
    .slice(0, -1)
    .map(answerOf)
    .sort((one, other) => one.line - other.line);
}

/** The codes of lines, by number; null for an answer. */
export function codesOf(answers: readonly BatchAnswer[]): readonly (readonly [number, string | null])[] {
  return answers.map((answer) => [answer.line, 'error' in answer ? answer.error.code : null]);
}

/** Where a service can be reached. */
interface Served {
  readonly server: { readonly address: string };
}

/** A client that sends and reads at the same time, as fast as the test lets it. */
export class BatchClient {
  readonly #request: ClientRequest;
  readonly response: Promise<IncomingMessage>;

  constructor({ server }: Served, key: string) {
    const { hostname, port } = new URL(server.address);
    const answered = Promise.withResolvers<IncomingMessage>();
    this.response = answered.promise;
    this.#request = request({
      hostname,
      port,
      path: '/v1/decisions/batch',
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
    })
      .on('response', answered.resolve)
      .on('error', answered.reject);
    // The rejection goes to those who wait for the response.
    this.response.catch(() => undefined);
  }

  /** Sends lines; false where the service has stopped reading, as `writable.write` says it. */
  write(...lines: readonly unknown[]): boolean {
    return this.#request.write(ndjson(lines));
  }

  /** Resolves when what was written is sent. */
  get sent(): Promise<void> {
    return new Promise((resolve) => this.#request.once('drain', resolve));
  }

  end(): void {
    this.#request.end();
  }

  /** Goes away. */
  leave(): void {
    this.#request.destroy();
  }

  /** The lines of the response as they come. */
  async *answers(): AsyncGenerator<BatchAnswer> {
    for await (const line of createInterface({ input: await this.response })) yield answerOf(line);
  }
}

/** A client on a connection of its own, which knows exactly how much of a body the service has taken. */
export class RawBatchClient {
  readonly socket: Socket;
  /** Bytes of the body that were sent, or are on their way in the operating system. */
  sent_bytes = 0;
  received = '';
  readonly closed: Promise<void>;

  /** The response is not read before `read`. */
  constructor(
    { server }: Served,
    key: string,
    private readonly lines: readonly string[],
    version: '1.0' | '1.1' = '1.0',
  ) {
    const body_bytes = lines.reduce((sum, { length }) => sum + length, 0);
    const { hostname, port } = new URL(server.address);
    this.socket = connect({ host: hostname, port: Number(port) }).pause();
    // A service that has answered may close before everything is sent.
    this.socket.on('error', () => {});
    this.socket.on('data', (data) => {
      this.received += data.toString('latin1');
    });
    this.socket.pause();
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()));
    this.socket.write(
      `POST /v1/decisions/batch HTTP/${version}\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body_bytes}\r\n\r\n`,
    );
  }

  /** Sends all lines, as fast as they are taken. */
  async send(): Promise<void> {
    for (const line of this.lines) {
      if (this.socket.destroyed) return;
      if (!this.socket.write(line))
        await Promise.race([this.closed, new Promise((resolve) => this.socket.once('drain', resolve))]);
      this.sent_bytes += line.length;
    }
  }

  /** Reads until the service closes the connection. */
  async read(): Promise<readonly BatchAnswer[]> {
    this.socket.resume();
    await this.closed;
    return parseRaw(this.received).body.split('\n').slice(0, -1).map(answerOf);
  }
}
