import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '../support/eventually.ts';

/** A request to a member. */
export interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly accept_encoding: string | string[] | undefined;
  readonly body: string;
}

/** A member's behaviour for one request for decisions. `onList` serves the list of models. */
export type Behaviour = (
  received: Received,
  response: ServerResponse,
  /** Answers as the server behind it does. */
  forward: () => Promise<void>,
) => void | Promise<void>;

/** Answers as the server behind it does. */
export const honest: Behaviour = (_received, _response, forward) => forward();

/** Never answers. */
export const hanging: Behaviour = () => {};

/** Answers with that status and body. */
export function answering(status: number, body: string, headers: Record<string, string> = {}): Behaviour {
  return (_received, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(body);
  };
}

/** Begins an answer and ends the connection in the middle of it. */
export const halfAnswering: Behaviour = (_received, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"answers":{"q1":', () => response.destroy());
};

/** Repeats what it was sent in an error, as some servers do. */
export const echoing: Behaviour = (received, response) => {
  response.writeHead(500, { 'content-type': 'application/json', 'x-echo': 'yes' });
  response.end(JSON.stringify({ error: { message: `cannot answer ${received.body}`, sent: received.body } }));
};

/** A server between a pool and what answers for it, which does as it is told. */
export class TestMember {
  behaviour: Behaviour = honest;
  onList: Behaviour = honest;
  /** Requests for decisions, trials among them. */
  readonly received: Received[] = [];
  #server: Server | undefined;
  #port = 0;

  private constructor(private readonly target: string) {}

  /** On a free port, before the server at that address. */
  static async start(target = 'http://127.0.0.1:1'): Promise<TestMember> {
    const member = new TestMember(target);
    await member.revive();
    return member;
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Ends all connections at once, and takes no new ones. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  /** Listens again, at the same address. */
  async revive(): Promise<void> {
    const server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = portOf(server.address());
    this.#server = server;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const received = {
      path: request.url ?? '',
      authorization: request.headers.authorization,
      accept_encoding: request.headers['accept-encoding'],
      body: Buffer.concat(chunks).toString(),
    };
    const is_decision = request.method === 'POST';
    if (is_decision) this.received.push(received);
    const behave = is_decision ? this.behaviour : this.onList;
    await behave(received, response, () => this.#forward(request, received, response));
  }

  async #forward(request: IncomingMessage, received: Received, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const { authorization, path, body } = received;
    const answer = await fetch(`${this.target}${path}`, {
      method: request.method ?? 'GET',
      headers: {
        'content-type': 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
      },
      body: request.method === 'POST' ? body : null,
      signal: gone.signal,
    });
    const text = await answer.text();
    const retry_after = answer.headers.get('retry-after');
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      ...(retry_after === null ? {} : { 'retry-after': retry_after }),
    });
    response.end(text);
  }
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}

/** The answer of a server of another make to the health probe of a trial, or to any one yes/no question. */
export const YES = JSON.stringify({
  model: 'other',
  answers: { q1: { type: 'noul', noul: 0.9 } },
  usage: { input_tokens: 7, output_tokens: 0 },
});

/** Time and callbacks that a test moves by hand. */
export class ManualTime {
  now = 0;
  readonly #due = new Map<object, { readonly at_ms: number; readonly callback: () => void }>();

  readonly now_ms = () => this.now;
  readonly schedule = (callback: () => void, delay_ms: number) => {
    const key = {};
    this.#due.set(key, { at_ms: this.now + delay_ms, callback });
    return () => void this.#due.delete(key);
  };

  /** Lets so much time pass, with all that is due in it, in order. */
  advance(duration_ms: number): void {
    const end_ms = this.now + duration_ms;
    for (;;) {
      const [next] = [...this.#due]
        .filter(([, { at_ms }]) => at_ms <= end_ms)
        .sort(([, one], [, other]) => one.at_ms - other.at_ms);
      if (next === undefined) break;
      this.#due.delete(next[0]);
      this.now = next[1].at_ms;
      next[1].callback();
    }
    this.now = end_ms;
  }

  get pending(): number {
    return this.#due.size;
  }
}

/** Resolves when the condition holds, as `eventually`. Calls back after each check in vain. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  between: () => void = () => {},
): Promise<void> {
  await eventually(
    async () => {
      if (await isSo()) return true;
      between();
      return false;
    },
    undefined,
    `This did not come true: ${isSo}`,
  );
}
